"""`torch.distributed.elastic`: what torchrun does. Programs that it starts use `record`, which works without it."""

from ...compat.missing import module_getattr

__getattr__ = module_getattr(__name__, ("multiprocessing",))
