"""The layers of `torch.ao.nn.quantized.reference`."""

from ......compat.missing import package_names

__all__, __getattr__ = package_names(
    __name__,
    {
        "conv": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
        "linear": "Linear",
        "rnn": "GRU LSTM GRUCell LSTMCell RNNCell",
        "sparse": "Embedding EmbeddingBag",
    },
)
