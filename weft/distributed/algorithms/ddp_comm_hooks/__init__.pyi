# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from . import debugging_hooks as debugging_hooks
from . import default_hooks as default_hooks
