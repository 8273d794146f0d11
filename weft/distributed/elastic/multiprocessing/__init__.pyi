# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from .errors import ProcessFailure as ProcessFailure
from . import errors as errors
