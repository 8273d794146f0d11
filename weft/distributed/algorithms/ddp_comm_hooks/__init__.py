"""`torch.distributed.algorithms.ddp_comm_hooks`: hooks of DistributedDataParallel."""

from ....compat.missing import module_getattr

__getattr__ = module_getattr(__name__, ("default_hooks", "debugging_hooks"))
