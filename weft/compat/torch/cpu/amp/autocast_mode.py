"""`autocast` for the processor, by its old name."""

from weft.amp.by_device import autocast_of
from weft.core.dtype import bfloat16

__all__ = ["autocast"]

autocast = autocast_of("cpu", bfloat16, __name__)
