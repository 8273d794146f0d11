"""`torch.distributed.checkpoint.planner_helpers`: the items of plans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...core.size import Size
from ...core.tensor import Tensor
from ._parts import is_divided, parts_of, properties_of, size_of
from .metadata import (
    STORAGE_TYPES,
    BytesStorageMetadata,
    ChunkStorageMetadata,
    MetadataIndex,
    TensorStorageMetadata,
)
from .planner import LoadItemType, ReadItem, TensorWriteData, WriteItem, WriteItemType

__all__ = ["create_read_items_for_chunk_list"]


def _create_write_items(fqn: str, object: Any) -> list[WriteItem]:
    if not isinstance(object, Tensor):
        return [WriteItem(MetadataIndex(fqn), WriteItemType.BYTE_IO)]
    kind = WriteItemType.SHARD if is_divided(object) else WriteItemType.TENSOR
    properties, size = properties_of(object), size_of(object)
    return [
        WriteItem(
            MetadataIndex(fqn, chunk.offsets), kind, tensor_data=TensorWriteData(chunk, properties, size)
        )
        for chunk, _ in parts_of(object)
    ]


def _create_read_items(fqn: str, md: STORAGE_TYPES, obj: Any) -> list[ReadItem]:
    """What to read for an object of the state dict."""
    if isinstance(md, BytesStorageMetadata):
        index, none = MetadataIndex(fqn), Size([0])
        return [ReadItem(LoadItemType.BYTE_IO, index, none, index, none, none)]
    if not isinstance(obj, Tensor):
        raise ValueError(
            f"Invalid checkpoint metadata for {fqn}, expected BytesStorageMetadata but found {type(md)}"
        )
    return create_read_items_for_chunk_list(fqn, md, [chunk for chunk, _ in parts_of(obj)])


def create_read_items_for_chunk_list(
    fqn: str, checkpoint_md: TensorStorageMetadata, local_chunks: list[ChunkStorageMetadata]
) -> list[ReadItem]:
    """What to read of the saved parts of a tensor to fill the parts that this process has.

    >>> from weft import Size
    >>> from weft.distributed.checkpoint.metadata import *
    >>> from weft.distributed.checkpoint.planner_helpers import create_read_items_for_chunk_list
    >>> saved = [ChunkStorageMetadata(Size([start]), Size([3])) for start in (0, 3)]
    >>> items = create_read_items_for_chunk_list(
    ...     "x", TensorStorageMetadata(TensorProperties(), Size([6]), saved), [ChunkStorageMetadata(Size([2]), Size([2]))]
    ... )
    >>> [(item.storage_offsets, item.dest_offsets, item.lengths) for item in items]
    [(torch.Size([2]), torch.Size([0]), torch.Size([1])), (torch.Size([0]), torch.Size([1]), torch.Size([1]))]
    """
    items = []
    for place, wanted in enumerate(local_chunks):
        for saved_place, saved in enumerate(checkpoint_md.chunks):
            box = _common_box(wanted, saved)
            if box is None:
                continue
            starts, lengths = box
            items.append(
                ReadItem(
                    LoadItemType.TENSOR,
                    MetadataIndex(fqn, wanted.offsets, place),
                    Size(start - own for start, own in zip(starts, wanted.offsets)),
                    MetadataIndex(fqn, saved.offsets, saved_place),
                    Size(start - own for start, own in zip(starts, saved.offsets)),
                    Size(lengths),
                )
            )
    return items


def _common_box(a: ChunkStorageMetadata, b: ChunkStorageMetadata) -> tuple[list[int], list[int]] | None:
    """Where two boxes overlap: starts and lengths."""
    starts = [max(pair) for pair in zip(a.offsets, b.offsets)]
    ends = [min(pair) for pair in zip(_ends(a), _ends(b))]
    lengths = [end - start for start, end in zip(starts, ends)]
    return (starts, lengths) if all(length > 0 for length in lengths) else None


def _ends(chunk: ChunkStorageMetadata) -> Iterable[int]:
    return (start + size for start, size in zip(chunk.offsets, chunk.sizes))
