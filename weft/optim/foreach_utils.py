"""Groups tensors by device and dtype, as optimizers of libraries do: `torch.utils._foreach_utils`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.device import device as Device
from ..core.tensor import Tensor


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Return the devices, besides the CPU, with a kernel for a whole list of tensors."""
    return ["cuda", "xpu", "mtia"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Return the devices with a kernel for a whole step of an optimizer."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia"]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Tensor | None]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Tensor | None]], list[int]]]:
    """(device, dtype) -> the lists, reduced to the positions whose tensor in the first list has these.

    Lists other than the first may be empty. With the lists come the positions, if `with_indices`.

    Raises: RuntimeError for no lists, an empty first list, and lists of different lengths.
    """
    if not tensorlistlist or not tensorlistlist[0]:
        raise RuntimeError("expected lists of tensors of which the first is not empty")
    first = tensorlistlist[0]
    if any(len(each) not in (0, len(first)) for each in tensorlistlist):
        raise RuntimeError(
            f"expected lists of one length, got lengths {[len(each) for each in tensorlistlist]}"
        )
    groups: dict[tuple[Any, Any], tuple[list[list[Tensor | None]], list[int]]] = {}
    for position, tensor in enumerate(first):
        if tensor is None:
            raise RuntimeError(f"the first list must hold tensors, but entry {position} is None")
        lists, positions = groups.setdefault(
            (tensor.device, tensor.dtype), ([[] for _ in tensorlistlist], [])
        )
        for collected, given in zip(lists, tensorlistlist, strict=True):
            if given:
                collected.append(given[position])
        if with_indices:
            positions.append(position)
    return groups


def _device_has_foreach_support(device: Device) -> bool:
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors: Sequence[Tensor | None], device: Device) -> bool:
    """Return whether `torch._foreach_...` functions take these tensors."""
    return _device_has_foreach_support(device) and all(
        each is None or isinstance(each, Tensor) for each in tensors
    )
