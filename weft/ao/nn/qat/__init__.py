"""`torch.ao.nn.qat`: layers that are trained with the rounded weights that their quantized layers will have."""

from ....compat.missing import module_getattr
from .modules import Conv1d, Conv2d, Conv3d, Embedding, EmbeddingBag, Linear

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag", "Linear"]
__getattr__ = module_getattr(__name__, ("dynamic", "modules"))
