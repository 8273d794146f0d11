# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from .modules import *
from . import modules as modules
from . import qat as qat
from . import quantized as quantized
