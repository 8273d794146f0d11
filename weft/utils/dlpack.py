"""Exchange of tensors with other libraries, `torch.utils.dlpack`."""

from weft.interop.dlpack import DLDeviceType, from_dlpack, to_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
