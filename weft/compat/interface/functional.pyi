# module torch.functional: imported by this module
from torch import Tensor
from torch._jit_internal import boolean_dispatch, _overload as overload
from torch.overrides import handle_torch_function
