"""`torch.ao.nn.quantized.dynamic`: layers of floats with quantized weights, which quantize their input when they are called."""

from .....compat.missing import module_getattr
from .modules import GRU, LSTM, GRUCell, Linear, LSTMCell, RNNCell

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "Linear", "RNNCell"]
__getattr__ = module_getattr(__name__, ("modules",))
