"""What was experimental in functorch."""

from ...compat.missing import module_getattr
from ...func import functionalize, replace_all_batch_norm_modules_

__all__ = ["functionalize", "replace_all_batch_norm_modules_"]

__getattr__ = module_getattr(__name__)
