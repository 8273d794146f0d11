"""`torch.ao.nn.quantized.dynamic`: layers of floats with quantized weights, which quantize their input when they are called."""

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
    GRUCell,
    Linear,
    LSTMCell,
    RNNCell,
)

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "GRU", "GRUCell", "LSTM", "LSTMCell",
    "Linear", "RNNCell",
]  # fmt: skip
__getattr__ = module_getattr(__name__, ("modules",))
