"""Metadata and copies of ShardedTensors."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, cast

from .....core.device import CPU
from .....core.layout import preserve_format
from .....core.overrides import DisableTorchFunctionSubclass
from .....core.tensor import Tensor
from .....ops.nn.kernels import _has_compatible_shallow_copy_type
from .._base import ShardedTensorBase
from ..shard import Shard
from . import implements

_members = vars(Tensor)
_PROPERTIES = "shape dtype layout ndim requires_grad grad grad_fn is_leaf".split()
_METHODS = "size dim is_contiguous contiguous is_floating_point __reduce_ex__".split()


def _is_told_by_tensor(function: Callable) -> None:
    @implements(function)
    def ask(types: Any, args: tuple, kwargs: Any, process_group: Any) -> Any:
        with DisableTorchFunctionSubclass():
            return function(*args, **kwargs or {})


for _name in _PROPERTIES:
    _is_told_by_tensor(cast(property, _members[_name]).__get__)
for _name in _METHODS:
    _is_told_by_tensor(_members[_name])


@implements(_members["device"].__get__)
def _device(types: Any, args: tuple, kwargs: Any, process_group: Any) -> Any:
    """The device of the shards of this process."""
    shards = args[0].local_shards()
    return shards[0].tensor.device if shards else CPU


@implements(_members["is_meta"].__get__)
def _is_meta(types: Any, args: tuple, kwargs: Any, process_group: Any) -> bool:
    return args[0].local_tensor().is_meta


@implements(_has_compatible_shallow_copy_type)
def _keeps_its_type(types: Any, args: tuple, kwargs: Any, process_group: Any) -> bool:
    """No, so that a module whose parameters are converted replaces a ShardedTensor."""
    return False


def _with_shards(sharded: Any, convert: Callable[[Tensor], Tensor], **properties: Any) -> Any:
    """A ShardedTensor with converted shards and the same spec."""
    metadata = copy.deepcopy(sharded.metadata())
    for name, value in properties.items():
        setattr(metadata.tensor_properties, name, value)
    shards = [Shard(convert(each.tensor), copy.deepcopy(each.metadata)) for each in sharded.local_shards()]
    return type(sharded)._init_from_local_shards_and_global_metadata(
        shards, metadata, sharded._process_group, sharding_spec=sharded.sharding_spec()
    )


@implements(_members["type_as"])
def _type_as(types: Any, args: tuple, kwargs: Any, process_group: Any) -> Any:
    if len(args) < 2:
        raise ValueError("Needs to give a tensor to cast type as!")
    sharded, other = args
    own: Any = other
    if not isinstance(other, Tensor):
        raise ValueError("Needs to give a Tensor or ShardedTensor to cast type as!")
    like = own.local_tensor() if isinstance(other, ShardedTensorBase) else other
    if sharded.metadata().tensor_properties.dtype == like.dtype:
        return sharded
    return _with_shards(sharded, lambda each: each.type_as(like), dtype=like.dtype)


@implements(_members["__deepcopy__"])
def _deepcopy(types: Any, args: tuple, kwargs: Any, process_group: Any) -> Any:
    return _with_shards(args[0], copy.deepcopy)


@implements(_members["clone"])
def _clone(types: Any, args: tuple, kwargs: Any, process_group: Any) -> Any:
    memory_format = (kwargs or {}).get("memory_format")
    if memory_format not in (None, preserve_format):
        raise RuntimeError("Only support torch.preserve_format for ShardedTensor!")
    return _with_shards(args[0], lambda each: each.clone())


@implements(_members["detach"])
def _detach(types: Any, args: tuple, kwargs: Any, process_group: Any) -> Any:
    return _with_shards(args[0], lambda each: each.detach(), requires_grad=False)


@implements(_members["copy_"])
def _copy(types: Any, args: tuple, kwargs: Any, process_group: Any) -> Any:
    sharded, other = args[:2]
    pairs = list(zip(sharded.local_shards(), other.local_shards()))
    if any(ours.metadata != theirs.metadata for ours, theirs in pairs):
        raise RuntimeError("inplace copy can only happen between two ShardedTensor with same metadata!")
    for ours, theirs in pairs:
        ours.tensor.copy_(theirs.tensor, *args[2:], **kwargs or {})
    return sharded


@implements(_members["requires_grad_"])
def _require_grad(types: Any, args: tuple, kwargs: Any, process_group: Any) -> Any:
    sharded, *given = args
    wanted = (*given, (kwargs or {}).get("requires_grad", True))[0]
    for shard in sharded.local_shards():
        shard.tensor.requires_grad_(wanted)
    with DisableTorchFunctionSubclass():
        sharded.requires_grad_(wanted)
    sharded.metadata().tensor_properties.requires_grad = wanted
    return sharded
