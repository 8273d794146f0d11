"""Undocumented functions of `torch.serialization` that programs use."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..core.dtype import DType
from ..core.registry import FUNCTIONS
from ..core.warn import user_level


class StorageType:
    """The class of a typed storage in a pickle; it stands for a dtype.

    >>> StorageType("FloatStorage").dtype
    torch.float32
    """

    def __init__(self, name: str) -> None:
        self._dtype: DType = FUNCTIONS[name].dtype  # type: ignore[attr-defined]

    @property
    def dtype(self) -> DType:
        """Return the dtype."""
        return self._dtype

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


def normalize_storage_type(storage_type: Any) -> Any:
    """Return the class of typed storages with this name. For a class of a GPU, the class of the CPU."""
    return FUNCTIONS[storage_type.__name__]


def storage_to_tensor_type(storage: Any) -> Any:
    """Return the tensor class for the class of a storage."""
    return FUNCTIONS[storage.pickle_storage_type().replace("Storage", "Tensor")]


@contextmanager
def mkdtemp() -> Iterator[str]:
    """A new folder, which is removed at the end of the context."""
    path = tempfile.mkdtemp()
    try:
        yield path
    finally:
        shutil.rmtree(path)


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple, error_if_malformed: bool = True
) -> bool:
    """Whether `module.__version__` is at least this, part by part.

    Raises: RuntimeError if the version cannot be parsed; with error_if_malformed=False the function warns and returns True.

    >>> import numpy
    >>> check_module_version_greater_or_equal(numpy, (1, 0))
    True
    """
    parts = module.__version__.split(".")
    try:
        found = tuple(type(wanted)(part) for wanted, part in zip(req_version_tuple, parts, strict=False))
        return found >= req_version_tuple
    except (TypeError, ValueError) as error:
        message = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be compared with "
            f"tuple {req_version_tuple}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(f"{message}, but continuing assuming that requirement is met", stacklevel=user_level())
        return True
