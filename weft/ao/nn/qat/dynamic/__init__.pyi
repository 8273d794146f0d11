# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from .modules.linear import Linear as Linear
from . import modules as modules
