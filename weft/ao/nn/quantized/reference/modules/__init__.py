"""The layers of `torch.ao.nn.quantized.reference`."""

from ......compat.missing import module_getattr
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .linear import Linear
from .rnn import GRU, LSTM, GRUCell, LSTMCell, RNNCell
from .sparse import Embedding, EmbeddingBag

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Embedding", "EmbeddingBag", "GRU", "GRUCell",
    "LSTM", "LSTMCell", "Linear", "RNNCell",
]  # fmt: skip
__getattr__ = module_getattr(__name__)
