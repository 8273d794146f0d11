"""What the two classes `TensorProperties` of PyTorch, of checkpoints and of ShardedTensors, have in common."""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar, Self

from ..core.dtype import DType
from ..core.layout import Layout, MemoryFormat, channels_last, contiguous_format, preserve_format
from ..core.tensor import Tensor

_NUMBERS = {contiguous_format: 0, channels_last: 1, preserve_format: 2}  # of the formats in PyTorch's files
_FORMATS = {number: each for each, number in _NUMBERS.items()}


class PickledProperties:
    """The metadata of a tensor but for its size, pickled as PyTorch does. A subclass is a dataclass with these fields."""

    _formats: ClassVar[type[Enum]]  # the enumeration that stands for the memory format in pickles

    dtype: DType
    layout: Layout
    requires_grad: bool
    memory_format: MemoryFormat
    pin_memory: bool

    def __getstate__(self) -> tuple[Any, ...]:
        code = self._formats(_NUMBERS[self.memory_format])
        return self.dtype, self.layout, self.requires_grad, code, self.pin_memory

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype, self.layout, self.requires_grad, code, self.pin_memory = state
        self.memory_format = _FORMATS[code.value]

    @classmethod
    def create_from_tensor(cls, tensor: Tensor) -> Self:
        """The metadata of this tensor."""
        made: Any = cls
        return made(tensor.dtype, tensor.layout, tensor.requires_grad, contiguous_format, tensor.is_pinned())
