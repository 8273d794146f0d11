"""Defines the persistent ids by which pickles refer to storages."""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

from ..core.dtype import DType
from ..core.storage import Storage
from ..ops.tensor.storage import TypedStorage
from .unpickler import as_text


class Identity(NamedTuple):
    """A storage, as a persistent id describes it."""

    dtype: DType | None  # None for untyped storages
    key: str
    location: str
    nbytes: int
    extra: tuple  # further fields of the old format


def parsed(identity: Any, extra: int) -> Identity:
    """Return the parts of ("storage", class, key, location, number of elements, ...), and `extra` further fields.

    Raises: UnpicklingError for any other value.
    """
    if type(identity) is not tuple or len(identity) != 5 + extra or as_text(identity[0]) != "storage":
        raise pickle.UnpicklingError(
            "a persistent id is not ('storage', class, key, location, number of elements)"
        )
    _, kind, key, location, numel = identity[:5]
    key, location = as_text(key), as_text(location)
    dtype = storage_dtype(kind)
    if not isinstance(key, str) or not isinstance(location, str):
        raise pickle.UnpicklingError("persistent id: key and location of a storage must be str")
    if type(numel) is not int or not 0 <= numel < 2**59:
        raise pickle.UnpicklingError(
            "persistent id: the number of elements of a storage must be an int from 0 to 2**59"
        )
    return Identity(dtype, key, location, numel * (dtype.itemsize if dtype else 1), identity[5:])


def storage_dtype(kind: Any) -> DType | None:
    """Return the dtype of a class of typed storages; None for untyped ones.

    Raises: UnpicklingError for anything else.
    """
    if kind is Storage:
        return None
    if isinstance(kind, type) and issubclass(kind, TypedStorage) and kind is not TypedStorage:
        return kind.dtype
    raise pickle.UnpicklingError(f"a class of storages is expected, not an object of {type(kind)}")
