"""`torch.nn.attention.experimental`: PyTorch's experiments, none of which weft has."""

from ....compat.missing import module_getattr

__getattr__ = module_getattr(__name__)
