"""Functions with several implementations, chosen by the types of the arguments."""

from .core import dispatch
from .dispatcher import Dispatcher, MDNotImplementedError, halt_ordering, restart_ordering
