"""`torch.nn.parallel`: modules in several processes. Functions for several devices know one device."""

from ...compat.missing import module_getattr
from .data_parallel import DataParallel, data_parallel
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter

__all__ = [
    "replicate", "scatter", "parallel_apply", "gather", "data_parallel", "DataParallel",
    "DistributedDataParallel",
]  # fmt: skip


# torch.distributed takes 20 ms to import, and few programs use it.
__getattr__ = module_getattr(__name__, ("_functions", "comm"), {"DistributedDataParallel": "distributed"})
