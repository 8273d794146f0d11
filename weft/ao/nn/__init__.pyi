# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from . import intrinsic as intrinsic
from . import qat as qat
from . import quantizable as quantizable
from . import quantized as quantized
