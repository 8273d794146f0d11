"""`torch._C._distributed_c10d`: the classes of torch.distributed that PyTorch writes in C++."""

from typing import Any

from weft import distributed as _distributed
from weft.compat.missing import module_getattr
from weft.distributed._world import _resolve_process_group  # noqa: F401 (for others)

_NAMES = frozenset(
    """
    AllgatherOptions AllreduceCoalescedOptions AllreduceOptions AllToAllOptions BarrierOptions BroadcastOptions
    DebugLevel FileStore GatherOptions GradBucket HashStore PrefixStore ProcessGroup ProcessGroupGloo ReduceOp
    ReduceOptions ReduceScatterOptions ScatterOptions Store TCPStore Work get_debug_level set_debug_level
    set_debug_level_from_env
    """.split()
)


def __getattr__(name: str) -> Any:
    return getattr(_distributed, name) if name in _NAMES else _missing(name)


_missing = module_getattr(__name__)
