"""The layers of `torch.ao.nn.quantizable`."""

from .....compat.missing import module_getattr
from .activation import MultiheadAttention
from .rnn import LSTM, LSTMCell

__all__ = ["LSTM", "LSTMCell", "MultiheadAttention"]
__getattr__ = module_getattr(__name__)
