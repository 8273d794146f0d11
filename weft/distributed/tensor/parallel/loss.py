"""`torch.distributed.tensor.parallel.loss`: losses of scores whose classes are cut."""

from .._regions import loss_parallel

__all__ = ["loss_parallel"]
