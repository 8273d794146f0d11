"""`torch.distributed.algorithms.model_averaging`: ranks that train on their own average their parameters from time to time."""

from ....compat.missing import module_getattr

__getattr__ = module_getattr(__name__)
