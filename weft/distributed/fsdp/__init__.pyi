# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from ._fully_shard import CPUOffloadPolicy as CPUOffloadPolicy
from ._fsdp_module import FSDPModule as FSDPModule
from .fully_sharded_data_parallel import FullyShardedDataParallel as FullyShardedDataParallel
from ._fully_shard import MixedPrecisionPolicy as MixedPrecisionPolicy
from ._fully_shard import OffloadPolicy as OffloadPolicy
from .fully_sharded_data_parallel import OptimStateKeyType as OptimStateKeyType
from ._fsdp_module import UnshardHandle as UnshardHandle
from . import api as api
from ._fully_shard import fully_shard as fully_shard
from . import fully_sharded_data_parallel as fully_sharded_data_parallel
from ._fully_shard import register_fsdp_forward_method as register_fsdp_forward_method
from ._fsdp_module import share_comm_ctx as share_comm_ctx
from . import wrap as wrap
