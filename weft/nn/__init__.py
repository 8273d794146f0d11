"""weft.nn: modules, layers, losses, initial values, and the functions beneath them."""

from ..compat.missing import module_getattr
from . import functional, init, modules, utils
from .containers import ModuleDict, ModuleList, Sequential
from .module import Module
from .modules import *  # noqa: F403
from .modules import __all__ as _layers
from .parallel import DataParallel
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from .parameter_containers import ParameterDict, ParameterList

__all__ = [
    *_layers,
    "Buffer",
    "DataParallel",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "Sequential",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "init",
    "modules",
    "utils",
]

__getattr__ = module_getattr(__name__, ("attention",))
