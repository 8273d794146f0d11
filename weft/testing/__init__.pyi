# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from .file_check import FileCheck as FileCheck
from ._comparison import assert_allclose as assert_allclose
from ._comparison import assert_close as assert_close
from .random_tensors import make_tensor as make_tensor
