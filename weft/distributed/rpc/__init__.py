"""`torch.distributed.rpc`: calls of functions in other processes. Declared only, but for what decorates functions."""

from ...compat.missing import module_getattr

__getattr__ = module_getattr(__name__, lazy=("api", "functions"))
