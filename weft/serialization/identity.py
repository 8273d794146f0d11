"""The persistent ids by which pickles refer to storages."""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

from ..core.dtype import DType
from .rebuild import storage_dtype
from .unpickler import as_text


class Identity(NamedTuple):
    """A storage as a pickle names it."""

    dtype: DType | None  # None for untyped storages
    key: str
    location: str
    nbytes: int
    extra: tuple  # what the old format adds


def parsed(identity: Any, extra: int) -> Identity:
    """The parts of ("storage", class, key, location, number of elements, ...); `extra` is how many follow.

    Raises: UnpicklingError if it is no such tuple.
    """
    if type(identity) is not tuple or len(identity) != 5 + extra or as_text(identity[0]) != "storage":
        raise pickle.UnpicklingError(
            "a persistent id is not ('storage', class, key, location, number of elements)"
        )
    _, kind, key, location, numel = identity[:5]
    key, location = as_text(key), as_text(location)
    try:
        dtype = storage_dtype(kind)
    except TypeError as error:
        raise pickle.UnpicklingError(f"persistent id: {error}") from None
    if not isinstance(key, str) or not isinstance(location, str):
        raise pickle.UnpicklingError("persistent id: key and location of a storage must be str")
    if type(numel) is not int or not 0 <= numel < 2**59:
        raise pickle.UnpicklingError(
            "persistent id: the number of elements of a storage must be an int from 0 to 2**59"
        )
    return Identity(dtype, key, location, numel * (dtype.itemsize if dtype else 1), identity[5:])
