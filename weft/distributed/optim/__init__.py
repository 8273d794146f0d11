"""`torch.distributed.optim`: optimizers of several processes. ZeroRedundancyOptimizer works in one."""

from .zero_redundancy_optimizer import ZeroRedundancyOptimizer
