"""`torch.ao.ns`: how far the numbers of a quantized model are from those of the model of floats."""

from ...compat.missing import module_getattr

__getattr__ = module_getattr(__name__, ("_numeric_suite", "fx"))
