"""Makes `x.new(...)` of a sparse tensor, and what the legacy classes of sparse tensors construct."""

from __future__ import annotations

from typing import Any

from ...core.device import device as Device
from ...core.dtype import DType
from ...core.layout import sparse_coo
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from .rules import SPARSE


def constructed(dtype: DType, where: Device, positional: tuple[Any, ...]) -> Tensor:
    """A COO tensor of indices, values and perhaps a size, whose dtype is that of the values; or an empty one of sizes."""
    if len(positional) in (2, 3) and all(isinstance(each, Tensor) for each in positional[:2]):
        return FUNCTIONS["sparse_coo_tensor"](*positional, device=where)
    if len(positional) == 1 and isinstance(positional[0], (tuple, list)):
        positional = tuple(positional[0])
    if not all(isinstance(each, int) for each in positional):
        given = ", ".join(type(each).__name__ for each in positional)
        raise TypeError(
            f"new() received an invalid combination of arguments - got ({given}), but expected sizes, or the tensors of indices "
            "and values and perhaps a size"
        )
    return FUNCTIONS["empty"](positional or (0,), dtype=dtype, layout=sparse_coo, device=where)


@SPARSE.rule("new")
def new(self: Tensor, *positional: Any, device: Any = None) -> Tensor:
    """A COO tensor of this dtype, made as `torch.sparse.FloatTensor` makes one."""
    return constructed(self.dtype, self.device if device is None else device, positional)
