"""The layers of `torch.ao.nn.quantizable`."""

from .....compat.missing import package_names

__all__, __getattr__ = package_names(
    __name__,
    {
        "activation": "MultiheadAttention",
        "rnn": "LSTM LSTMCell",
    },
)
