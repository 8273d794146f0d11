"""Offers transforms of functions, `torch.func`: gradients, Jacobians, batches; they nest in any order."""

from ..compat.missing import module_getattr as _module_getattr
from ..core.names import name_public
from .batching import vmap
from .functionalization import debug_unwrap, functionalize
from .jacobians import hessian, jacfwd, jacrev
from .rearrange import rearrange
from .stateless import functional_call, replace_all_batch_norm_modules_, stack_module_state
from .transforms import grad, grad_and_value, jvp, linearize, vjp

__getattr__ = _module_getattr(__name__)

name_public(__name__, "func.batching", "func.jacobians", "func.stateless", "func.transforms")
