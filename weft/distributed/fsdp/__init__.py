"""`torch.distributed.fsdp`: parameters that are divided among processes. The policies of wrapping work."""

from ...compat.missing import module_getattr

__getattr__ = module_getattr(__name__, ("api", "wrap"))
