"""Unification: values for the variables in two terms that make them equal.

>>> x = Var("x")
>>> unify((1, x), (1, 2), {})
{~x: 2}
"""

from .core import reify, unify
from .more import unifiable
from .variable import Var, isvar, var, variables, vars
