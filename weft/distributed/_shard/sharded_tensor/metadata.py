"""`torch.distributed._shard.sharded_tensor.metadata`: what every process knows of a ShardedTensor."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from ....core.dtype import DType, get_default_dtype
from ....core.layout import Layout, MemoryFormat, contiguous_format, strided
from ....core.size import Size
from ..._tensor_properties import PickledProperties
from ..metadata import ShardMetadata

__all__ = ["MEM_FORMAT_ENCODING", "ShardMetadata", "ShardedTensorMetadata", "TensorProperties"]


class MEM_FORMAT_ENCODING(Enum):  # noqa: N801 (PyTorch's name)
    """Memory formats as pickles have them."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


@dataclass
class TensorProperties(PickledProperties):
    """What a ShardedTensor is, apart from its size and its shards."""

    _formats = MEM_FORMAT_ENCODING

    dtype: DType = field(default_factory=get_default_dtype)
    layout: Layout = strided
    requires_grad: bool = False
    memory_format: MemoryFormat = contiguous_format
    pin_memory: bool = False


@dataclass
class ShardedTensorMetadata:
    """All shards of a ShardedTensor, its size, and its properties."""

    shards_metadata: list[ShardMetadata] = field(default_factory=list)
    size: Size = field(default_factory=lambda: Size([]))
    tensor_properties: TensorProperties = field(default_factory=TensorProperties)
