# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from .modules.linear_relu import LinearReLU as LinearReLU
from . import modules as modules
