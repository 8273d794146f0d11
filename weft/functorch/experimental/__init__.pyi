# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
# mypy: disable-error-code="overload-overlap, overload-cannot-match, override, misc, no-redef"
from weft.compat.torch._functorch.apis import chunk_vmap as chunk_vmap
from . import control_flow as control_flow
from weft.func import functionalize as functionalize
from weft.func import hessian as hessian
from weft.func import jacfwd as jacfwd
from weft.func import jvp as jvp
from weft.func import replace_all_batch_norm_modules_ as replace_all_batch_norm_modules_
from ...compat.torch.functorch.experimental import *
