"""`torch.distributed.tensor.experimental`: what PyTorch has not settled yet."""

from .._regions import implicit_replication
from ._attention import context_parallel

__all__ = ["context_parallel", "implicit_replication"]
