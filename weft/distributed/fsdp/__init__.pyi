# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from . import api as api
from . import wrap as wrap
