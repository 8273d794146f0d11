"""weft.testing: `assert_close` and `make_tensor`, for tests of programs."""

from ..compat.missing import module_getattr
from ..core.names import name_public
from ._comparison import assert_allclose, assert_close
from .random_tensors import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

__getattr__ = module_getattr(__name__, ("_utils",))
name_public(__name__, "testing._comparison", "testing.mismatches", "testing.random_tensors")
