"""weft.testing: `assert_close` and `make_tensor`, for tests of programs."""

from ..compat.missing import module_getattr
from ..core.names import name_public
from .closeness import assert_allclose, assert_close
from .random_tensors import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

__getattr__ = module_getattr(__name__)
name_public(__name__, "testing.closeness", "testing.random_tensors")
