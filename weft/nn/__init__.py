"""weft.nn has modules, layers, losses, initial values, and the functions that layers call."""

from ..autograd import parameter
from ..autograd.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from ..compat.missing import module_getattr
from ..core.names import name_public
from . import functional, init, modules, utils
from .factory import factory_kwargs
from .modules import *  # noqa: F403
from .modules import __all__ as _layers
from .parallel import DataParallel

__all__ = [
    *_layers,
    "Buffer",
    "DataParallel",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "factory_kwargs",
    "functional",
    "init",
    "modules",
    "utils",
]

__getattr__ = module_getattr(__name__, ("_reduction", "attention", "common_types", "grad"))
name_public(__name__, "nn.factory")
