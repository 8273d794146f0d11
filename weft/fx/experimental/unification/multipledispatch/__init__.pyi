# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from .dispatcher import Dispatcher as Dispatcher
from .dispatcher import MDNotImplementedError as MDNotImplementedError
from . import conflict as conflict
from . import core as core
from .core import dispatch as dispatch
from . import dispatcher as dispatcher
from .dispatcher import halt_ordering as halt_ordering
from .dispatcher import restart_ordering as restart_ordering
from . import utils as utils
from . import variadic as variadic
