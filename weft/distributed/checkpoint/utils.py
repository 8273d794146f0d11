"""`torch.distributed.checkpoint.utils`: objects of a state dict by their index in a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.tensor import Tensor
from ._parts import is_divided, parts_of
from .metadata import MetadataIndex

__all__ = ["find_tensor_shard", "find_state_dict_object"]


def find_tensor_shard(tensor: Tensor, index: MetadataIndex) -> Tensor:
    """The part of a tensor with this index: of DTensors and ShardedTensors one of this process, of others the tensor itself."""
    if is_divided(tensor):
        for own, part in parts_of(tensor):
            if index.offset is None or index.offset == own.offsets:
                return part
        raise ValueError(f"FQN: '{index.fqn}': this process does not have the part at {index.offset}")
    if index.offset is not None and any(index.offset):
        raise ValueError(f"FQN: '{index.fqn}' is not a ShardedTensor, can't find by offset: '{index.offset}'")
    return tensor


def find_state_dict_object(state_dict: Mapping[str, Any], index: MetadataIndex) -> Any:
    """The object of a flat state dict with this index. Raises: ValueError if there is none."""
    if index.fqn not in state_dict:
        raise ValueError(f"Could not find FQN: '{index.fqn}'")
    found = state_dict[index.fqn]
    if isinstance(found, Tensor):
        return find_tensor_shard(found, index)
    if index.offset is not None:
        raise ValueError(f"FQN: '{index.fqn}' is not a ShardedTensor, can't find by offset: '{index.offset}'")
    return found
