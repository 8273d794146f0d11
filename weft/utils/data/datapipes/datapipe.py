"""The base classes of data pipes: datasets that are built from each other, `source.map(f).batch(8)`.

PyTorch keeps them for programs of old and develops them no further. A pipe class registers its functional form with
`@functional_datapipe("name")`, after which every pipe has a method of that name.

>>> from weft.utils.data.datapipes.iter import IterableWrapper
>>> list(IterableWrapper(range(5)).map(lambda x: x * 10).batch(2))
[[0, 10], [20, 30], [40]]
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, ClassVar, TypeVar

from ..dataset import Dataset, IterableDataset
from ._hook_iterator import _SnapshotState, hook_iterator

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"]

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class _Registered:
    """The base of both kinds of pipes, with the functional forms and the hooks of pickling."""

    functions: ClassVar[dict[str, Callable]]
    reduce_ex_hook: ClassVar[Callable | None] = None
    getstate_hook: ClassVar[Callable | None] = None
    str_hook: ClassVar[Callable | None] = None
    repr_hook: ClassVar[Callable | None] = None

    def __getattr__(self, name: str) -> Any:
        function = type(self).functions.get(name)
        if function is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return functools.update_wrapper(functools.partial(function, self), function, assigned=("__doc__",))

    @classmethod
    def register_function(cls, function_name: str, function: Callable) -> None:
        """Make `function(pipe, ...)` a method of all pipes of this kind."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: type, enable_df_api_tracing: bool = False
    ) -> None:
        """Make `cls_to_register(pipe, ...)` a method of all pipes of this kind.

        Raises: Exception if there is one of that name.
        """
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")

        def function(pipe: Any, *args: Any, **kwargs: Any) -> Any:
            return cls_to_register(pipe, *args, **kwargs)

        function.__doc__ = cls_to_register.__doc__
        cls.functions[function_name] = function

    def __reduce_ex__(self, *args: Any, **kwargs: Any) -> Any:
        hook = type(self).reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(*args, **kwargs)

    @classmethod
    def set_getstate_hook(cls, hook_fn: Callable | None) -> None:
        """Let `hook_fn(state)` be the state that is pickled; None takes the hook away.

        Raises: RuntimeError if there is a hook already.
        """
        if cls.getstate_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing getstate_hook")
        cls.getstate_hook = staticmethod(hook_fn) if hook_fn is not None else None  # type: ignore[assignment]

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn: Callable | None) -> None:
        """Let `hook_fn(pipe)` say how a pipe is pickled; None takes the hook away.

        Raises: RuntimeError if there is a hook already.
        """
        if cls.reduce_ex_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing reduce_ex_hook")
        cls.reduce_ex_hook = staticmethod(hook_fn) if hook_fn is not None else None  # type: ignore[assignment]

    def __getstate__(self) -> Any:
        state = {name: value for name, value in vars(self).items() if name != "_restored"}
        hook = type(self).getstate_hook
        return state if hook is None else hook(state)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        hook = type(self).repr_hook
        return type(self).__qualname__ if hook is None else hook(self)

    def __str__(self) -> str:
        hook = type(self).str_hook
        return type(self).__qualname__ if hook is None else hook(self)


class IterDataPipe(_Registered, IterableDataset[T_co]):
    """A pipe that is iterated. A subclass defines `__iter__`, and `reset` if an iteration has to begin anew.

    Only the iterator that was made last can go on; next() of an older one is a RuntimeError.
    """

    functions: ClassVar[dict[str, Callable]] = {}
    _valid_iterator_id: int | None = None
    _number_of_samples_yielded: int = 0
    _snapshot_state = _SnapshotState.NotStarted

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__iter__" in vars(cls):
            cls.__iter__ = hook_iterator(vars(cls)["__iter__"])  # type: ignore[method-assign]

    def __getattr__(self, name: str) -> Any:
        return super().__getattr__(name)

    @hook_iterator
    def __iter__(self) -> Iterator[T_co]:
        return self  # type: ignore[return-value] # a class that has `__next__` only

    def reset(self) -> None:
        """Called when an iterator is made."""

    def _begin(self) -> int:
        """Begin anew, unless the pipe was restored. Returns the number of the iterator that is made."""
        if self._snapshot_state is not _SnapshotState.Restored:
            self._number_of_samples_yielded = 0
            self.reset()
        self._snapshot_state = _SnapshotState.Iterating
        self._valid_iterator_id = 0 if self._valid_iterator_id is None else self._valid_iterator_id + 1
        return self._valid_iterator_id

    def _is_current(self, number: int) -> bool:
        """Whether no other iterator was made since this one."""
        return self._valid_iterator_id == number


class DFIterDataPipe(IterDataPipe):
    """A pipe of data frames."""

    def _is_dfpipe(self) -> bool:
        return True

    def __iter__(self) -> Iterator:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__")


class MapDataPipe(_Registered, Dataset[T_co]):
    """A pipe whose elements are found by index or key. A subclass defines `__getitem__`, and `__len__` if it has one."""

    functions: ClassVar[dict[str, Callable]] = {}


def lengths(pipe: Any, parts: Iterable[Any]) -> list[int]:
    """The lengths of the pipes that a pipe is made of.

    Raises: TypeError if one has none.
    """
    parts = list(parts)
    if not all(isinstance(each, Sized) for each in parts):
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")
    return [len(each) for each in parts]


class DataChunk(list[T]):
    """The elements of a batch. It prints as a list, and `raw_iterator` goes through it."""

    def __init__(self, items: Any) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """Return the elements as text, in brackets and after `indent`."""
        return f"{indent}[{', '.join(map(str, iter(self)))}]"

    def raw_iterator(self) -> Iterator[T]:
        """Its elements."""
        yield from self.items
