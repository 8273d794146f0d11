# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from . import base_scheduler as base_scheduler
from . import cubic_scheduler as cubic_scheduler
from . import lambda_scheduler as lambda_scheduler
