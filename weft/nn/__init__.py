"""weft.nn: so far the functions of neural networks; the modules build on autograd, which is not there yet."""

from ..compat.missing import module_getattr
from . import functional, init
from .containers import ModuleDict, ModuleList, Sequential
from .module import Module
from .modules import *  # noqa: F403
from .modules import __all__ as _layers
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from .parameter_containers import ParameterDict, ParameterList

__all__ = [
    "Buffer",
    "Module",
    "ModuleList",
    "Parameter",
    "Sequential",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "init",
]

__getattr__ = module_getattr(__name__)
