"""Modules called with parameters and buffers that are not their own."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from ..core.restoring import contextmanager
from ..core.tensor import Tensor

__all__ = ["functional_call"]


def functional_call(
    module: Any,
    parameters_and_buffers: Mapping[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The older name of `torch.func.functional_call`."""
    warnings.warn(
        "This API is deprecated as of PyTorch 2.0 and will be removed in a future version of PyTorch. Please use "
        "torch.func.functional_call instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )


@contextmanager
def _reparametrize_module(
    module: Any,
    parameters_and_buffers: Mapping[str, Tensor],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:
    """A context in which a module has the tensors at some paths replaced. The arguments are those of `_functional_call`.

    stack_weights: of tensors with several names, put those back first that came last. That changes nothing here.
    """
    with _replaced(module, _complete(module, parameters_and_buffers, tie_weights, strict)):
        yield


def _functional_call(
    module: Any,
    parameters_and_buffers: Mapping[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with the tensors at some paths replaced; `args` is a tuple, or the one argument.

    With `tie_weights`, a tensor that the module has under several names is replaced under all of them. `strict`
    wants all parameters and buffers, and nothing else.
    Raises: RuntimeError for keys that are missing or unexpected, if `strict`; ValueError if tied names get
    different tensors; AttributeError for a path that leads nowhere.
    """
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _replaced(module, _complete(module, parameters_and_buffers, tie_weights, strict)):
        return module(*args, **(kwargs or {}))


def _complete(module: Any, given: Mapping[str, Tensor], tie_weights: bool, strict: bool) -> dict[str, Tensor]:
    """`given`, and the other names of the tensors in it."""
    names = defaultdict(list)  # by the tensor they have in the module
    own: dict[str, Tensor] = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    for name, tensor in own.items():
        names[tensor].append(name)
    result = dict(given)
    if tie_weights:
        for tied in names.values():
            _tie(tied, given, result)
    if strict:
        _check_keys(module, own, result)
    return result


def _tie(tied: list[str], given: Mapping[str, Tensor], result: dict[str, Tensor]) -> None:
    """If one name of a tensor gets a new value, give it to all names of the tensor."""
    present = [name for name in tied if name in given]
    if len({id(given[name]) for name in present}) > 1:
        raise ValueError(
            f"functional_call got multiple values for keys {sorted(present)}, which are tied. "
            "Consider using tie_weights=False"
        )
    if present:
        result.update(dict.fromkeys(tied, given[present[0]]))


def _check_keys(module: Any, own: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    problems = []
    for kind, keys in (("Unexpected", given.keys() - own.keys()), ("Missing", own.keys() - given.keys())):
        if keys:
            problems.append(f"{kind} key(s): {', '.join(sorted(keys))}.")
    if problems:
        raise RuntimeError(
            f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(problems)
        )


_ABSENT = object()


@contextmanager
def _replaced(module: Any, tensors: Mapping[str, Tensor]) -> Iterator[None]:
    """Within this context the tensors at these paths are others."""
    undo: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for path, tensor in tensors.items():
            if not isinstance(tensor, Tensor):
                raise TypeError(f"{tensor} is not an instance of torch.Tensor")
            owner_path, _, name = path.rpartition(".")
            owner = module.get_submodule(owner_path)
            places = (owner._parameters, owner._buffers)
            place = next((each for each in places if name in each), owner.__dict__)
            undo.append((place, name, place.get(name, _ABSENT)))
            place[name] = tensor
        yield
    finally:
        for place, name, tensor in reversed(undo):
            if tensor is _ABSENT:
                del place[name]
            else:
                place[name] = tensor
