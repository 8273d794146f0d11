"""`torch.distributed.optim`: optimizers of several processes. ZeroRedundancyOptimizer works in one."""

from ...compat.missing import module_getattr
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

__getattr__ = module_getattr(__name__)
