"""`torch.ao`: models of quantized layers, and how a model of floats becomes one."""

from ..compat.missing import module_getattr

__getattr__ = module_getattr(__name__, ("nn", "quantization"))
