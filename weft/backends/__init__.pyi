# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
# mypy: disable-error-code="overload-overlap, overload-cannot-match, override, misc, no-redef"
from weft.core.restoring import Restoring as Restoring
from weft.core.restoring import contextmanager as contextmanager
from . import cuda as cuda
from . import mha as mha
from . import python_native as python_native
from . import xeon as xeon
from ..compat.torch.backends import *
