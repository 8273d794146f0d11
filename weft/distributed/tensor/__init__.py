"""`torch.distributed.tensor`: how a tensor lies on several processes. Its DTensor is declared only."""

from ...compat.missing import module_getattr
from .placement_types import Partial, Placement, Replicate, Shard

__getattr__ = module_getattr(__name__, lazy=("parallel",))
