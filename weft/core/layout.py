"""Memory formats (the order of dimensions in memory) and layouts (strided or not)."""

from __future__ import annotations

from typing import Any

from .spec import Spec, contiguous_stride, strides_in_order


class _Named:
    """Base class of enumerations whose values stay the same objects after pickling."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self):
        return _named, (self.name,)


class MemoryFormat(_Named):
    """`torch.memory_format`: the order of dimensions in memory."""

    __slots__ = ()


class Layout(_Named):
    """`torch.layout`: how the elements of a tensor are stored."""

    __slots__ = ()


MemoryFormat.__name__ = MemoryFormat.__qualname__ = "memory_format"  # as PyTorch prints them
Layout.__name__ = Layout.__qualname__ = "layout"

contiguous_format = MemoryFormat("contiguous_format")
preserve_format = MemoryFormat("preserve_format")
channels_last = MemoryFormat("channels_last")
channels_last_3d = MemoryFormat("channels_last_3d")

strided = Layout("strided")
sparse_coo = Layout("sparse_coo")
sparse_csr = Layout("sparse_csr")
sparse_csc = Layout("sparse_csc")
sparse_bsr = Layout("sparse_bsr")
sparse_bsc = Layout("sparse_bsc")
jagged = Layout("jagged")


def _named(name: str) -> Any:
    return globals()[name]


def strides_for(sizes, memory_format: MemoryFormat) -> tuple[int, ...]:
    """The strides of a dense tensor in this format.

    Raises: RuntimeError if the format needs another number of dimensions.
    """
    if memory_format is contiguous_format or memory_format is preserve_format:
        return contiguous_stride(sizes)
    ndim = 4 if memory_format is channels_last else 5
    if len(sizes) != ndim:
        raise RuntimeError(f"required rank {ndim} tensor to use {memory_format.name} format")
    return strides_in_order(sizes, (0, *range(2, ndim), 1))


def suggested_format(spec: Spec) -> MemoryFormat:
    """The memory format for a result: channels_last (or channels_last_3d) if the strides have this order."""
    for wanted, order in ((channels_last, (1, 3, 2, 0)), (channels_last_3d, (1, 4, 3, 2, 0))):
        if len(spec.shape) == len(order) and _in_order(spec, order):
            return wanted
    return contiguous_format


def _in_order(spec: Spec, order: tuple[int, ...]) -> bool:
    """Whether strides increase along `order`. False if the strides match both formats (one channel and one sample)."""
    least = 0
    if spec.stride[1] == 0:
        return False
    for dim in order:
        if spec.shape[dim] == 0 or spec.stride[dim] < least or (dim == 0 and least == spec.stride[1]):
            return False
        least = spec.stride[dim] * max(spec.shape[dim], 1)
    return True
