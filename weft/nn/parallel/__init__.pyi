# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from .data_parallel import DataParallel as DataParallel
from weft.distributed.data_parallel import DistributedDataParallel as DistributedDataParallel
from . import comm as comm
from .data_parallel import data_parallel as data_parallel
from . import distributed as distributed
from .scatter_gather import gather as gather
from .parallel_apply import parallel_apply as parallel_apply
from .replicate import replicate as replicate
from .scatter_gather import scatter as scatter
