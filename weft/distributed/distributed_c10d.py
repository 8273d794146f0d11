"""`torch.distributed.distributed_c10d`: groups and collectives, under the names that libraries take from here."""
# ruff: noqa: F401 (the names are for others)

from typing import NewType

from ..core.names import set_name
from ._backends import (
    Backend,
    BackendConfig,
    DebugLevel,
    get_debug_level,
    get_default_backend_for_device,
    is_backend_available,
    is_gloo_available,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
)
from ._collectives import (
    _all_gather_base,
    _check_op,
    _check_single_tensor,
    _check_tensor_list,
    _coalescing_manager,
    _CoalescingManager,
    _ensure_all_tensors_same_dtype,
    _reduce_scatter_base,
    _validate_output_list_for_rank,
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
    supports_complex,
)
from ._errors import DistStoreError
from ._gloo import ProcessGroupGloo
from ._group import ProcessGroup, Work
from ._groups import (
    _check_valid_timeout,
    _DistributedBackendOptions,
    destroy_process_group,
    init_process_group,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    shrink_group,
    split_group,
)
from ._objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from ._options import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)
from ._point_to_point import P2POp, _check_p2p_op_list, batch_isend_irecv, irecv, isend, recv, send
from ._reduce_op import ReduceOp
from ._store import PrefixStore, Store
from ._world import (
    GroupMember,
    _canonicalize_group_rank,
    _device_capability,
    _find_pg_by_ranks_and_tag,
    _get_all_pg_configs,
    _get_default_group,
    _get_default_store,
    _get_global_rank,
    _get_group_size,
    _get_group_tag,
    _get_object_coll_device,
    _get_pg_config,
    _get_pg_default_device,
    _get_process_group_name,
    _get_process_group_store,
    _group_or_default_group,
    _rank_not_in_group,
    _resolve_process_group,
    _update_default_pg,
    _warn_not_in_group,
    _World,
    _world,
    _WorldMeta,
    get_backend,
    get_backend_config,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    is_initialized,
)
from .constants import default_pg_nccl_timeout, default_pg_timeout
from .rendezvous import register_rendezvous_handler, rendezvous

GroupName = NewType("GroupName", str)

_GLOO_AVAILABLE = True
_MPI_AVAILABLE = _NCCL_AVAILABLE = _UCC_AVAILABLE = _XCCL_AVAILABLE = False

reduce_op = ReduceOp  # the old name

# What is defined in the files of this package is public here.
for _value in (*list(globals().values()), ReduceOp.RedOpType, ProcessGroup.BackendType):
    if "distributed._" in getattr(_value, "__module__", "") and hasattr(_value, "__qualname__"):
        set_name(_value, __name__, _value.__qualname__)
