"""`torch.ao.nn.quantizable`: layers of several steps, each of which is observed and quantized."""

from ....compat.missing import module_getattr
from .modules import LSTM, LSTMCell, MultiheadAttention

__all__ = ["LSTM", "LSTMCell", "MultiheadAttention"]
__getattr__ = module_getattr(__name__, ("modules",))
