"""Exchange of tensors with other libraries, `torch.utils.dlpack`."""

from weft.interop.dlpack import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
