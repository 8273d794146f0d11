"""The layers of `torch.ao.nn.quantized.dynamic`."""

from ......compat.missing import module_getattr
from .linear import Linear
from .rnn import GRU, LSTM, GRUCell, LSTMCell, RNNCell

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "Linear", "RNNCell"]
__getattr__ = module_getattr(__name__)
