"""`torch.utils.model_zoo`, the older name of a part of `torch.hub`."""

from .hub import load_state_dict_from_url as load_url
from .hub import tqdm as tqdm

__all__ = ["load_url"]
