"""What was experimental in functorch."""

from ...compat.missing import module_getattr
from ...func import functionalize, hessian, jacfwd, jvp, replace_all_batch_norm_modules_

__all__ = ["functionalize", "hessian", "jacfwd", "jvp", "replace_all_batch_norm_modules_"]

__getattr__ = module_getattr(__name__, ("control_flow",))
