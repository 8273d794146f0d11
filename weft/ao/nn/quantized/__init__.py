"""`torch.ao.nn.quantized`: layers of quantized tensors."""

from ....compat.missing import module_getattr
from .modules import (
    BatchNorm2d,
    BatchNorm3d,
    Conv1d,
    Conv2d,
    Conv3d,
    DeQuantize,
    Embedding,
    EmbeddingBag,
    FloatFunctional,
    Linear,
    QFunctional,
    Quantize,
    ReLU6,
)

__all__ = [
    "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Conv3d", "DeQuantize", "Embedding", "EmbeddingBag", "FloatFunctional",
    "Linear", "QFunctional", "Quantize", "ReLU6",
]  # fmt: skip
__getattr__ = module_getattr(__name__, ("dynamic", "modules"))
