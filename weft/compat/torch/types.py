"""weft.types: names for what functions take and give, to annotate programs with."""

import builtins
import os
from collections.abc import Sequence
from typing import IO, TypeAlias

from weft.core.device import device
from weft.core.dtype import DType
from weft.core.layout import Layout
from weft.core.size import Size
from weft.core.storage import Storage
from weft.core.tensor import Tensor

__all__ = ["Device", "FileLike", "Number", "Size", "Storage", "Tensor"]

# PyTorch's names: inside its own stubs `int` and the like mean tensor methods.
_int, _float, _bool = builtins.int, builtins.float, builtins.bool
_complex, _str, _bytes = builtins.complex, builtins.str, builtins.bytes

Number: TypeAlias = int | float | bool
_device, _dtype, _layout = device, DType, Layout

Device: TypeAlias = device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
IntLikeType: TypeAlias = int
FloatLikeType: TypeAlias = float
BoolLikeType: TypeAlias = bool
_Number = (int, float, bool)
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
