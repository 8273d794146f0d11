"""`torch.utils.model_zoo`, the older name of a part of `torch.hub`."""

from ..compat.missing import module_getattr as _module_getattr
from .hub import load_state_dict_from_url as load_url
from .hub import tqdm as tqdm

__all__ = ["load_url"]

__getattr__ = _module_getattr(__name__)
