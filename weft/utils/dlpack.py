"""Exchange of tensors with other libraries, `torch.utils.dlpack`."""

from ..core.names import name_public
from ..interop.dlpack import DLDeviceType, from_dlpack, to_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]

name_public(__name__)
