# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from .variable import Var as Var
from . import core as core
from . import dispatch as dispatch
from .variable import isvar as isvar
from . import match as match
from . import more as more
from . import multipledispatch as multipledispatch
from .core import reify as reify
from .more import unifiable as unifiable
from . import unification_tools as unification_tools
from .core import unify as unify
from . import utils as utils
from .variable import var as var
from . import variable as variable
from .variable import variables as variables
from .variable import vars as vars
