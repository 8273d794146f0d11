"""`torch.ao.nn.quantized.reference`: layers of floats that say how their weights are quantized."""

from .....compat.missing import module_getattr
from .modules import (
    GRU,
    LSTM,
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    Embedding,
    EmbeddingBag,
    GRUCell,
    Linear,
    LSTMCell,
    RNNCell,
)

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Embedding", "EmbeddingBag", "GRU", "GRUCell",
    "LSTM", "LSTMCell", "Linear", "RNNCell",
]  # fmt: skip
__getattr__ = module_getattr(__name__, ("modules",))
