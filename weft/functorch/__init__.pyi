# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
# mypy: disable-error-code="overload-overlap, overload-cannot-match, override, misc, no-redef"
from weft.compat.torch._functorch.make_functional import FunctionalModule as FunctionalModule
from weft.compat.torch._functorch.make_functional import FunctionalModuleWithBuffers as FunctionalModuleWithBuffers
from weft.compat.torch._functorch.make_functional import combine_state_for_ensemble as combine_state_for_ensemble
from . import einops as einops
from . import experimental as experimental
from weft.func import functionalize as functionalize
from weft.func import grad as grad
from weft.func import grad_and_value as grad_and_value
from weft.func import hessian as hessian
from weft.func import jacfwd as jacfwd
from weft.func import jacrev as jacrev
from weft.func import jvp as jvp
from weft.compat.torch._functorch.make_functional import make_functional as make_functional
from weft.compat.torch._functorch.make_functional import make_functional_with_buffers as make_functional_with_buffers
from weft.fx.experimental.proxy_tensor import make_fx as make_fx
from weft.func import vjp as vjp
from weft.func import vmap as vmap
from ..compat.torch.functorch import *
