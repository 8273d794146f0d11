"""`torch.ao.nn.intrinsic.quantized.dynamic`: the linear layer with a quantized weight that ends with ReLU."""

from ......compat.missing import module_getattr
from .modules import LinearReLU

__all__ = ["LinearReLU"]
__getattr__ = module_getattr(__name__, ("modules",))
