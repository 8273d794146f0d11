# module torch.autograd: imported by this module
from torch.overrides import handle_torch_function, is_tensor_like

# module torch.autograd.forward_ad: imported by this module
from torch.utils._contextlib import _DecoratorContextManager

# module torch.autograd.functional: imported by this module
from torch._vmap_internals import _vmap

# module torch.autograd.grad_mode: imported by this module
from torch.utils._contextlib import _DecoratorContextManager, _NoParamDecoratorContextManager

# module torch.autograd.gradcheck: imported by this module
from torch._vmap_internals import _vmap, vmap
from torch.overrides import is_tensor_like

# module torch.autograd.graph: imported by this module
from torch.utils._python_dispatch import TorchDispatchMode
from torch.autograd.variable import Variable

# module torch.autograd.profiler: imported by this module
from torch.jit import Future
from torch._C._profiler import _ExperimentalConfig
from torch._C import _get_privateuse1_backend_name

# module torch.autograd.profiler_legacy: imported by this module
from torch.autograd.profiler_util import EventList, FunctionEvent
