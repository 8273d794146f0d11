# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
# mypy: disable-error-code="overload-overlap, overload-cannot-match, override, misc, no-redef"
from weft.nn.modules.pooling import MaxPool2d as MaxPool2d
from . import dynamic as dynamic
from . import functional as functional
from . import modules as modules
from . import reference as reference
from .modules import *
