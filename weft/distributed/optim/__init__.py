"""`torch.distributed.optim`: optimizers of several processes. ZeroRedundancyOptimizer and PostLocalSGDOptimizer work."""

from .post_localSGD_optimizer import PostLocalSGDOptimizer
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer
