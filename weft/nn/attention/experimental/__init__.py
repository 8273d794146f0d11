"""`torch.nn.attention.experimental`: what PyTorch tries out. Nothing of it is here."""

from ....compat.missing import module_getattr

__getattr__ = module_getattr(__name__)
