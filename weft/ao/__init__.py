"""`torch.ao`: models of quantized layers, how a model of floats becomes one, and weights that are set to 0."""

from ..compat.missing import module_getattr

__getattr__ = module_getattr(__name__, ("nn", "ns", "pruning", "quantization"))
