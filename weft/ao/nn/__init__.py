"""`torch.ao.nn`: quantized layers, and layers that are computed together."""

from ...compat.missing import module_getattr

__getattr__ = module_getattr(__name__, ("intrinsic", "qat", "quantizable", "quantized"))
