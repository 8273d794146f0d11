"""How other libraries find out what to do with tensors."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ..core.op import public
from ..core.tensor import Tensor


@public("method")
def __array_namespace__(self: Tensor, *, api_version: str | None = None) -> ModuleType:
    """The functions of the array API standard for tensors.

    Raises: ValueError for versions of the standard later than ours.

    >>> import weft
    >>> weft.ones(2).__array_namespace__().unique_values(weft.tensor([3, 1, 3]))
    tensor([1, 3])
    """
    from . import array_api

    if api_version is not None and api_version > array_api.__array_api_version__:
        raise ValueError(
            f"array API version {api_version}: weft has {array_api.__array_api_version__} and what is older"
        )
    return array_api


@public("method")
def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The tensor on a device, as the array API standard spells `to`."""
    return self.to(device)
