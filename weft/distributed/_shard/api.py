"""`torch.distributed._shard.api`: parameters and modules whose tensors become ShardedTensors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from ...autograd.parameter import Parameter
from ...core.tensor import Tensor
from ...nn.module import Module
from .. import distributed_c10d as c10d
from .sharded_tensor.api import ShardedTensor
from .sharder import Sharder
from .sharding_plan.api import ShardingPlan
from .sharding_spec.api import ShardingSpec
from .sharding_spec.chunk_sharding_spec import ChunkShardingSpec

__all__ = ["load_with_process_group", "shard_module", "shard_parameter"]


def _shard_tensor(
    tensor: Tensor, sharding_spec: ShardingSpec, src_rank: int = 0, process_group: Any = None
) -> ShardedTensor:
    """The ShardedTensor of the numbers that `tensor` has on rank `src_rank`. All processes of the group call this.

    Raises: ValueError for a tensor that is not contiguous, or if the processes give other ranks or specs.
    """
    if not tensor.is_contiguous():
        raise ValueError("input tensor is not a contiguous Tensor")
    group = c10d._get_default_group() if process_group is None else process_group
    given: list[Any] = [None] * c10d.get_world_size(group)
    c10d.all_gather_object(given, (src_rank, sharding_spec), group=group)
    here = c10d.get_rank(group)
    for name, place, own in (("src_rank", 0, src_rank), ("sharding_spec", 1, sharding_spec)):
        for rank, other in enumerate(given):
            if other[place] != own:
                raise ValueError(
                    f"{name}={own} on rank: {here} does not match with {name}={other[place]} on rank: {rank}"
                )
    return cast("ShardedTensor", sharding_spec.shard(tensor, src_rank=src_rank, process_group=group))


def shard_parameter(
    module: Module, param_name: str, sharding_spec: ShardingSpec, src_rank: int = 0, process_group: Any = None
) -> None:
    """Replace a parameter by a ShardedTensor with the numbers of rank `src_rank`. All processes of the group call this.

    Raises: AttributeError if the module does not have the parameter; ValueError for what is no tensor, or not contiguous.

    >>> import weft as torch
    >>> from weft.distributed._shard import shard_parameter
    >>> from weft.distributed._shard.sharding_spec import ChunkShardingSpec
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> layer = torch.nn.Linear(2, 3)
    >>> shard_parameter(layer, "weight", ChunkShardingSpec(0, ["rank:0/cpu"]))
    >>> layer.weight.local_tensor().shape
    torch.Size([3, 2])
    >>> dist.destroy_process_group()
    """
    if not hasattr(module, param_name):
        raise AttributeError(f"{module._get_name()} has no attribute `{param_name}`")
    tensor = getattr(module, param_name)
    if not isinstance(tensor, Tensor):
        raise ValueError(
            f"Expected {type(module).__name__}.{param_name} to be a Tensor, but found {type(tensor).__name__}"
        )
    if not tensor.is_contiguous():
        raise ValueError(f"param: {param_name} is not a contiguous Tensor")
    sharded = _shard_tensor(tensor, sharding_spec, src_rank, process_group)
    module.register_parameter(param_name, Parameter(sharded))


_loading_group: Any = None  # of load_with_process_group


@contextmanager
def load_with_process_group(process_group: Any) -> Iterator[Any]:
    """ShardedTensors that are unpickled within the context belong to this group. Raises: RuntimeError within another such context."""
    global _loading_group
    if _loading_group is not None:
        raise RuntimeError('ProcessGroup already set by previous "load_with_process_group" context manager')
    _loading_group = process_group
    try:
        yield process_group
    finally:
        _loading_group = None


def _get_current_process_group() -> Any:
    """The group of ShardedTensors that are unpickled."""
    return c10d._get_default_group() if _loading_group is None else _loading_group


def shard_module(module: Module, plan: ShardingPlan, src_rank: int = 0, process_group: Any = None) -> None:
    """Divide the parameters of a module as a plan says, and hook its modules so that their results lie as it says.

    Raises: RuntimeError if a parameter is inside of a module that has a Sharder; TypeError for what is neither a spec nor a Sharder.
    """
    sharders = [name for name, each in plan.plan.items() if isinstance(each, Sharder)]
    for name, each in plan.plan.items():
        if isinstance(each, ShardingSpec):
            path, _, parameter = name.rpartition(".")
            _check_outside(name, path, sharders)
            shard_parameter(module.get_submodule(path), parameter, each, src_rank, process_group)
        elif isinstance(each, Sharder):
            if name == "":
                raise KeyError("Module path must not be empty for custom sharder!")
            module.set_submodule(name, each.shard(module.get_submodule(name)))
        else:
            raise TypeError(f"Only `ShardingSpec` and `Sharder` are supported to shard '{name}'")
    for path, spec in (plan.output_plan or {}).items():
        if not isinstance(spec, ShardingSpec):
            raise TypeError(f"Only `ShardingSpec` is supported as output_plan for '{path}'")
        _reshard_output(module.get_submodule(path), spec)
    for path in plan.return_local_tensor or ():
        _collect_local_shard(module.get_submodule(path))


def _check_outside(name: str, path: str, sharders: list[str]) -> None:
    inside = next((sharder for sharder in sharders if path.startswith(sharder)), None)
    if inside is not None:
        raise RuntimeError(
            f"ShardingPlan is in-valid, trying to shard a parameter: {name}, but there's already a Sharder entry for module "
            f"{inside}, parameter sharding should not conflict with the submodule tree that a Sharder is working with!"
        )


def _reshard_output(module: Module, resharding_spec: ShardingSpec) -> Module:
    """Let the module divide its result as this spec says, if it is a ShardedTensor."""

    def hook(module: Module, inputs: Any, output: Any) -> Any:
        return output.reshard(resharding_spec) if isinstance(output, ShardedTensor) else output

    module.register_forward_hook(hook)
    return module


def _collect_local_shard(module: Module) -> Module:
    """Let the module return the shard of this process, without the dim that is cut if it has size 1 there."""

    def hook(module: Module, inputs: Any, output: Any) -> Any:
        if not isinstance(output, ShardedTensor):
            return None
        local, spec = output.local_tensor(), output.sharding_spec()
        return local.squeeze(spec.dim) if isinstance(spec, ChunkShardingSpec) else local

    module.register_forward_hook(hook)
    return module
