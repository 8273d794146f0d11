# module torch._tensor: imported by this module
from torch.overrides import get_default_nowrap_functions, handle_torch_function
