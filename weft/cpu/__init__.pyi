# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
# mypy: disable-error-code="overload-overlap, overload-cannot-match, override, misc, no-redef"
from weft.core.restoring import Restoring as Restoring
from . import amp as amp
from . import memory as memory
from weft.engine.memory import memory_stats as memory_stats
from weft.engine.memory import reset_peak_memory_stats as reset_peak_memory_stats
from ..compat.torch.cpu import *
