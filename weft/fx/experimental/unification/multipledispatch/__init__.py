"""Functions with several implementations, chosen by the types of the arguments."""

from .....compat.missing import module_getattr
from .core import dispatch
from .dispatcher import Dispatcher, MDNotImplementedError, halt_ordering, restart_ordering

__getattr__ = module_getattr(__name__, ("conflict", "core", "dispatcher", "utils", "variadic"))
