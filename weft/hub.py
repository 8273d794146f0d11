"""`torch.hub`, which fetches models from the network: weft does not, and says what to do instead."""

from .compat.missing import missing_function as _missing_function
from .compat.missing import module_getattr as _module_getattr

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

_INSTEAD = "download the file yourself and read it with torch.load"

download_url_to_file = _missing_function("torch.hub.download_url_to_file", _INSTEAD)
get_dir = _missing_function("torch.hub.get_dir", _INSTEAD)
help = _missing_function("torch.hub.help", _INSTEAD)
list = _missing_function("torch.hub.list", _INSTEAD)
load = _missing_function("torch.hub.load", _INSTEAD)
load_state_dict_from_url = _missing_function("torch.hub.load_state_dict_from_url", _INSTEAD)
set_dir = _missing_function("torch.hub.set_dir", _INSTEAD)

__getattr__ = _module_getattr(__name__)
