"""`torch.export.experimental`: its names begin with an underscore in PyTorch. weft has none of them."""

from ...compat.missing import module_getattr

__getattr__ = module_getattr(__name__)
