"""`torch._custom_ops`, an older name of parts of `torch.library`."""

from weft.library import get_ctx as get_ctx
