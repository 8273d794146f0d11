"""`torch.distributed.elastic.multiprocessing`: the processes that torchrun starts."""

from ....compat.missing import module_getattr
from .errors import ProcessFailure

__getattr__ = module_getattr(__name__)
