"""The layers of `torch.ao.nn.qat`."""

from .....compat.missing import package_names

__all__, __getattr__ = package_names(
    __name__,
    {
        "conv": "Conv1d Conv2d Conv3d",
        "embedding_ops": "Embedding EmbeddingBag",
        "linear": "Linear",
    },
)
