"""`torch.distributed.checkpoint.metadata`: what a checkpoint holds and where, in PyTorch's own classes of its file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ...core.dtype import DTYPES, DType
from ...core.layout import Layout, MemoryFormat, contiguous_format, strided
from ...core.size import Size
from .._tensor_properties import PickledProperties

__all__ = [
    "ChunkStorageMetadata",
    "TensorStorageMetadata",
    "BytesStorageMetadata",
    "Metadata",
    "MetadataIndex",
    "TensorProperties",
    "StorageMeta",
]


@dataclass
class ChunkStorageMetadata:
    """A part of a tensor: where it begins and how large it is."""

    offsets: Size
    sizes: Size


class _MEM_FORMAT_ENCODING(Enum):  # noqa: N801 (PyTorch's name)
    """Memory formats as the file has them."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


@dataclass
class TensorProperties(PickledProperties):
    """What a tensor is, apart from its size."""

    _formats = _MEM_FORMAT_ENCODING

    dtype: DType = field(default_factory=lambda: DTYPES["float32"])
    layout: Layout = strided
    requires_grad: bool = False
    memory_format: MemoryFormat = contiguous_format
    pin_memory: bool = False


@dataclass
class TensorStorageMetadata:
    """A tensor of the checkpoint and the parts that it is saved in."""

    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """An object of the checkpoint that is not a tensor."""


STORAGE_TYPES = TensorStorageMetadata | BytesStorageMetadata


@dataclass
class StorageMeta:
    """Which checkpoint this is."""

    checkpoint_id: str | os.PathLike | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """What a checkpoint holds."""

    state_dict_metadata: dict[str, STORAGE_TYPES]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """The name of an object of a checkpoint, and for a part of a tensor where it begins.

    `index` is a hint where the part is in the list of parts; it does not take part in comparisons.
    """

    fqn: str
    offset: Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None) -> None:
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        if offset is not None:
            object.__setattr__(self, "offset", Size(offset))
