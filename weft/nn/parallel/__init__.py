"""`torch.nn.parallel`: modules on several devices or in several processes. So far weft uses one device and one process."""

from typing import Any

from ...compat.missing import module_getattr
from .data_parallel import DataParallel, data_parallel
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter

__all__ = [
    "replicate",
    "scatter",
    "parallel_apply",
    "gather",
    "data_parallel",
    "DataParallel",
    "DistributedDataParallel",
]


def __getattr__(name: str) -> Any:
    # torch.distributed takes 20 ms to import, and few programs use it.
    if name == "DistributedDataParallel":
        from .distributed import DistributedDataParallel

        return DistributedDataParallel
    return _missing(name)


_missing = module_getattr(__name__, ("_functions", "comm", "distributed"))
