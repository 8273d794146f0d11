"""`torch.utils.model_zoo`, the older name of a part of `torch.hub`."""

from ..compat.missing import missing_function as _missing_function
from ..compat.missing import module_getattr as _module_getattr

load_url = _missing_function(
    "torch.utils.model_zoo.load_url", "download the file yourself and read it with torch.load"
)

__getattr__ = _module_getattr(__name__)
