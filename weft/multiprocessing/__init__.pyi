# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
# mypy: disable-error-code="overload-overlap, overload-cannot-match, override, misc, no-redef"
from weft.compat.torch.multiprocessing.spawn import ProcessContext as ProcessContext
from weft.compat.torch.multiprocessing.spawn import ProcessException as ProcessException
from weft.compat.torch.multiprocessing.spawn import ProcessExitedException as ProcessExitedException
from weft.compat.torch.multiprocessing.spawn import ProcessRaisedException as ProcessRaisedException
from weft.compat.torch.multiprocessing.spawn import SpawnContext as SpawnContext
from weft.compat.torch.multiprocessing.strategies import get_all_sharing_strategies as get_all_sharing_strategies
from weft.compat.torch.multiprocessing.strategies import get_sharing_strategy as get_sharing_strategy
from . import pool as pool
from . import queue as queue
from . import reductions as reductions
from weft.compat.torch.multiprocessing.strategies import set_sharing_strategy as set_sharing_strategy
from weft.interop import sharing as sharing
from weft.compat.torch.multiprocessing.spawn import spawn as spawn
from weft.compat.torch.multiprocessing.spawn import start_processes as start_processes
from . import strategies as strategies
from multiprocessing import *
from ..compat.torch.multiprocessing import *
