"""`torch.distributed.algorithms`: loops with uneven inputs, communication hooks, averages of models."""

from ...compat.missing import module_getattr
from .join import Join, Joinable, JoinHook

__getattr__ = module_getattr(__name__)
