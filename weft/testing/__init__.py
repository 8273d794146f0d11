"""weft.testing: `assert_close`, for tests of programs."""

from ..compat.missing import module_getattr
from .closeness import assert_close

__all__ = ["assert_close"]

__getattr__ = module_getattr(__name__)
