"""`torch.distributed`: groups of processes, and their collectives.

>>> import weft as torch
>>> torch.distributed.is_available(), torch.distributed.is_initialized()
(True, False)
"""
# ruff: noqa: F401 (the names are for others)

from typing import Any

from ..compat.missing import module_getattr
from ._backends import set_debug_level, set_debug_level_from_env
from ._errors import DistBackendError, DistError, DistNetworkError, DistStoreError, QueueEmptyError
from ._file_store import FileStore
from ._store import HashStore
from .distributed_c10d import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    Backend,
    BackendConfig,
    BarrierOptions,
    BroadcastOptions,
    DebugLevel,
    GatherOptions,
    GroupMember,
    GroupName,
    P2POp,
    PrefixStore,
    ProcessGroup,
    ProcessGroupGloo,
    ReduceOp,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
    Store,
    Work,
    _all_gather_base,
    _coalescing_manager,
    _CoalescingManager,
    _get_process_group_name,
    _rank_not_in_group,
    _reduce_scatter_base,
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_object,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    batch_isend_irecv,
    broadcast,
    broadcast_object_list,
    destroy_process_group,
    gather,
    gather_object,
    get_backend,
    get_backend_config,
    get_debug_level,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    irecv,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
    isend,
    monitored_barrier,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    recv,
    recv_object_list,
    reduce,
    reduce_op,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
    scatter_object_list,
    send,
    send_object_list,
    shrink_group,
    split_group,
    supports_complex,
)
from .rendezvous import register_rendezvous_handler, rendezvous


def is_available() -> bool:
    """Whether there is torch.distributed: as in PyTorch's build for the CPU.

    >>> import weft as torch
    >>> torch.distributed.is_available()
    True
    """
    return True


# What needs more imports is loaded when it is first used.
__getattr__ = module_getattr(
    __name__,
    (
        "_mesh_layout",
        "_shard",
        "algorithms",
        "checkpoint",
        "device_mesh",
        "elastic",
        "fsdp",
        "nn",
        "optim",
        "remote_device",
        "rpc",
        "tensor",
        "utils",
    ),
    {
        "DeviceMesh": "device_mesh",
        "GradBucket": "_grad_bucket",
        "TCPStore": "_tcp_store",
        "_remote_device": "remote_device",
        "init_device_mesh": "device_mesh",
    },
)
