# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from .modules import *
from . import dynamic as dynamic
from . import modules as modules
