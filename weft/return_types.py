"""weft.return_types: the types of results that are tuples with named fields."""

from .compat.missing import module_getattr
from .core.return_types import TYPES

globals().update(TYPES)

__getattr__ = module_getattr(__name__)
