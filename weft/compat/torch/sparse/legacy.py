"""The constructors of old: `torch.sparse.FloatTensor(indices, values, size)`, and a type of each dtype for `isinstance`."""

from __future__ import annotations

from typing import Any

from weft.core import dtype as dt
from weft.core.device import CPU, as_device
from weft.core.dtype import LEGACY_NAMES, DType
from weft.core.layout import sparse_coo
from weft.core.names import ROOT
from weft.core.tensor import Tensor
from weft.layouts.sparse.legacy import constructed


class _TypedClass(type):
    """The type of these classes: a call makes a Tensor, which `isinstance` takes for an instance."""

    dtype: DType
    layout = sparse_coo
    is_sparse = True
    is_cuda = is_xpu = False

    def __call__(cls, *positional: Any, device: Any = None) -> Tensor:
        return constructed(cls.dtype, CPU if device is None else as_device(device), positional)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor) and value.layout is sparse_coo and value.dtype is cls.dtype


_DTYPES = (
    *(dt.float32, dt.float64, dt.float16, dt.bfloat16),
    *(dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64),
)
CLASSES = {
    f"{LEGACY_NAMES[dtype]}Tensor": _TypedClass(
        f"{LEGACY_NAMES[dtype]}Tensor", (), {"dtype": dtype, "__module__": f"{ROOT}.sparse"}
    )
    for dtype in _DTYPES
}
