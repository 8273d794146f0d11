"""The public names of functions."""

from collections.abc import Callable

# name -> function: what `weft/__init__.py` offers. Names with dots belong to submodules ("linalg.inv").
FUNCTIONS: dict[str, Callable] = {}
