"""`torch.onnx.InputObserver`: sees what a model is called with, to export it with the right dynamic dimensions."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from .. import zeros
from ..core.pytree import tree_flatten, tree_map
from ..core.tensor import Tensor
from ..export import Dim
from ..nn import Module


class InputObserver:
    """Notes the inputs of the first calls of a module, and tells which dimensions differ from call to call.

    `value_if_missing` has values for arguments that some calls lack.

    >>> import weft as torch
    >>> model = torch.nn.Linear(3, 2)
    >>> observer = torch.onnx.InputObserver()
    >>> with observer(model):
    ...     _ = model(torch.ones(2, 3)), model(torch.ones(5, 3))
    >>> observer.infer_dynamic_shapes()
    ({0: _DimHint(type=<_DimHintType.DYNAMIC: 3>, min=None, max=None, _factory=True)},)
    """

    __module__ = "torch.onnx"

    def __init__(self, value_if_missing: dict[str | int, Any] | None = None):
        self.value_if_missing = value_if_missing or {}
        self._calls: list[tuple[tuple, dict[str, Any]]] = []
        self._results: list[Any] = []
        self._names: list[str] = []

    @contextlib.contextmanager
    def __call__(
        self, model: Module, store_n_calls: int = 3, method_name: str = "forward"
    ) -> Iterator[InputObserver]:
        """Inside, calls of the method are noted, up to `store_n_calls`."""
        method: Callable = getattr(model, method_name)
        self._names = list(inspect.signature(method).parameters)

        @functools.wraps(method)
        def noted(*args: Any, **kwargs: Any) -> Any:
            is_wanted = len(self._calls) < store_n_calls
            copies = tree_map(
                _copied, (args, {key: each for key, each in kwargs.items() if each is not None})
            )
            result = method(*args, **kwargs)
            if is_wanted:
                self._calls.append(copies)
                self._results.append(tree_map(_copied, result))
            return result

        own = vars(model).get(method_name)
        setattr(model, method_name, noted)
        try:
            yield self
        finally:
            if own is None:
                delattr(model, method_name)
            else:
                setattr(model, method_name, own)

    def num_obs(self) -> int:
        """How many calls were noted."""
        return len(self._calls)

    def _complete(self) -> list[tuple[tuple, dict[str, Any]]]:
        """The calls, with values for the arguments that only others have.

        Raises: RuntimeError if there are none, or if a value is missing.
        """
        if not self._calls:
            raise RuntimeError("No inputs were captured: call the model inside `with observer(model):` first")
        names = list(dict.fromkeys(name for _, kwargs in self._calls for name in kwargs))
        count = max(len(args) for args, _ in self._calls)
        return [
            (
                tuple(args[i] if i < len(args) else self._missing(i, count) for i in range(count)),
                {name: kwargs[name] if name in kwargs else self._missing(name, 0) for name in names},
            )
            for args, kwargs in self._calls
        ]

    def _missing(self, key: int | str, count: int) -> Any:
        if key in self.value_if_missing:
            return self.value_if_missing[key]
        for args, kwargs in self._calls:  # an empty tensor like that of another call
            found = kwargs.get(key) if isinstance(key, str) else args[key] if key < len(args) else None
            if isinstance(found, Tensor):
                return zeros(
                    (found.shape[0], 0, *found.shape[2:]) if found.dim() > 1 else (0,), dtype=found.dtype
                )
        raise RuntimeError(
            f"Some calls lack the argument {key!r}: say what it is with value_if_missing={{{key!r}: ...}}"
        )

    def infer_dynamic_shapes(self, set_batch_dimension_for: set[int | str] | bool | None = None) -> Any:
        """The `dynamic_shapes` of `export`: dimensions are dynamic that differ between the calls, and the first of those in
        `set_batch_dimension_for` (True for all)."""
        calls = self._complete()
        batched = set_batch_dimension_for

        def common(key: int | str) -> Callable:
            is_batch = batched is True or (isinstance(batched, set) and key in batched)

            def shapes(first: Any, *others: Any) -> Any:
                if not isinstance(first, Tensor):
                    return None
                return {
                    dim: Dim.DYNAMIC
                    for dim, size in enumerate(first.shape)
                    if (dim == 0 and is_batch) or any(each.shape[dim] != size for each in others)
                }

            return shapes

        args = tuple(
            tree_map(common(place), *(each[0][place] for each in calls)) for place in range(len(calls[0][0]))
        )
        kwargs = {name: tree_map(common(name), *(each[1][name] for each in calls)) for name in calls[0][1]}
        return args if not kwargs else {**dict(zip(self._names, args)), **kwargs}

    def infer_arguments(
        self, index_or_args_or_kwargs: Any = None, flat: bool = False, as_args_kwargs: bool = False
    ) -> Any:
        """The inputs of one call: the one with this index, or the largest. Given other inputs, these."""
        calls = self._complete()
        if isinstance(index_or_args_or_kwargs, int):
            args, kwargs = calls[index_or_args_or_kwargs]
        elif isinstance(index_or_args_or_kwargs, tuple):
            args, kwargs = index_or_args_or_kwargs, {}
        elif isinstance(index_or_args_or_kwargs, dict):
            args, kwargs = (), index_or_args_or_kwargs
        else:
            args, kwargs = max(calls, key=_elements)
        if flat:
            return tree_flatten((args, kwargs))[0]
        if as_args_kwargs:
            return args, kwargs
        return {**dict(zip(self._names, args)), **kwargs} if kwargs else args

    def check_discrepancies(
        self,
        onnx_program: Any,
        atol: float = 1e-4,
        rtol: float = 0.1,
        progress_bar: bool = False,
        initializer: Callable[..., Any] | None = None,
        skip_none: bool = True,
    ) -> list[dict[str, Any]]:
        """Run the ONNX model on all noted inputs; for each how far its outputs are from those of the model."""
        onnx_program.initialize_inference_session(initializer)
        return [
            self._discrepancy(place, onnx_program, call, result, atol, rtol, skip_none)
            for place, (call, result) in enumerate(zip(self._complete(), self._results))
        ]

    @staticmethod
    def _discrepancy(
        place: int, program: Any, call: tuple, result: Any, atol: float, rtol: float, skip_none: bool
    ) -> dict[str, Any]:
        args, kwargs = call
        expected = [each for each in tree_flatten(result)[0] if each is not None or not skip_none]
        found: dict[str, Any] = {"index": place, "abs": 0.0, "rel": 0.0, "SUCCESS": True}
        for ours, theirs in zip(expected, program(*args, **kwargs), strict=True):
            away = (ours.double() - theirs.double()).abs()
            if away.numel():
                found["abs"] = max(found["abs"], away.max().item())
                found["rel"] = max(found["rel"], (away / (ours.double().abs() + 1e-10)).max().item())
            found["SUCCESS"] &= bool((away <= atol + rtol * ours.double().abs()).all())
        return found


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value


def _elements(call: tuple) -> int:
    return sum(each.numel() for each in tree_flatten(call)[0] if isinstance(each, Tensor))


__all__ = ["InputObserver"]
