"""weft.testing: `assert_close`, `make_tensor` and `FileCheck`, for tests of programs."""

from ..compat.missing import module_getattr
from ..core.names import name_public
from ._comparison import assert_allclose, assert_close
from .file_check import FileCheck
from .random_tensors import make_tensor

__all__ = ["assert_allclose", "assert_close", "FileCheck", "make_tensor"]

__getattr__ = module_getattr(__name__, ("_utils",))
name_public(
    __name__, "testing._comparison", "testing.file_check", "testing.mismatches", "testing.random_tensors"
)
