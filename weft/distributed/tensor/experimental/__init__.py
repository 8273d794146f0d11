"""`torch.distributed.tensor.experimental`: what PyTorch has not settled yet."""

from .._regions import implicit_replication

__all__ = ["implicit_replication"]
