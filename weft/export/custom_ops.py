"""`torch.export.custom_ops`: operators that PyTorch's exporter puts into graphs. weft's graphs need none."""

from ..compat.missing import module_getattr

__getattr__ = module_getattr(__name__)
