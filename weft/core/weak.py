"""Weak references to tensors and modules by identity: `==` of tensors compares elements, so they cannot be plain keys.

>>> import weft as torch
>>> names = WeakIdKeyDictionary()
>>> tensor = torch.ones(2)
>>> names[tensor] = "ones"
>>> names[tensor], len(names)
('ones', 1)
>>> del tensor
>>> len(names)
0
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

from .tensor import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref):
    """A weak reference that is equal to another one of the same object, and hashes by identity."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Callable | None = None) -> None:
        self._id = id(key)
        super().__init__(key, callback)  # type: ignore[call-arg]

    def __call__(self) -> Any:
        found = super().__call__()
        if found is not None and hasattr(found, "_fix_weakref"):
            found._fix_weakref()
        return found

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine = self()
        theirs = other() if isinstance(other, WeakIdRef) else None
        if mine is not None and theirs is not None:
            return mine is theirs
        return self is other


class WeakIdKeyDictionary(MutableMapping):
    """A dict whose keys are found by identity, and which forgets a key when nobody else has it any more."""

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef) -> None:
        self.data: Any = {}
        self.ref_type = ref_type
        own = weakref.ref(self)

        def remove(reference: Any) -> None:
            table = own()
            if table is not None:
                table.data.pop(reference, None)

        self._remove = remove
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: Any) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # objects of this type cannot have weak references
            return False

    def __iter__(self) -> Iterator:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def keyrefs(self) -> list[Any]:
        """Return the weak references that are the keys."""
        return list(self.data)

    def copy(self) -> WeakIdKeyDictionary:
        """Return another dict with the same keys and values."""
        return type(self)(self, self.ref_type)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> WeakIdKeyDictionary:
        from copy import deepcopy

        return type(self)({key: deepcopy(value, memo) for key, value in _pairs(self)}, self.ref_type)

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        result = self.copy()
        result.update(other)
        return result

    def __ror__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        result = type(self)(other, self.ref_type)
        result.update(self)
        return result

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def update(self, dict: Any = None, **kwargs: Any) -> None:  # type: ignore[override]
        """Copy the keys and values of another mapping, or of pairs."""
        for key, value in [*_pairs(dict or ()), *kwargs.items()]:
            self[key] = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WeakIdKeyDictionary):
            return NotImplemented
        return {id(key): value for key, value in _pairs(self)} == {
            id(key): value for key, value in _pairs(other)
        }

    __hash__ = None  # type: ignore[assignment]


def _pairs(mapping: Any) -> list[tuple[Any, Any]]:
    """The keys and values of a mapping, of an object with `keys` and `[]`, or of pairs."""
    if hasattr(mapping, "items"):
        return list(mapping.items())
    return [(key, mapping[key]) for key in mapping.keys()] if hasattr(mapping, "keys") else list(mapping)


# PyTorch has the second name for tensors.
WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor: calling it gives the tensor, or None when it is gone."""

    ref: WeakIdRef

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = WeakIdRef(tensor)

    def __call__(self) -> Any:
        return self.ref()
