"""Transforms of functions, `torch.func`: gradients, Jacobians, batches; they nest in any order."""

from .batching import vmap
from .jacobians import hessian, jacfwd, jacrev
from .stateless import functional_call, stack_module_state
from .transforms import grad, grad_and_value, jvp, linearize, vjp
