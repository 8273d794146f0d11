"""Errors of programs that look for the smallest part of a graph that two implementations compute differently."""

from __future__ import annotations

from .._compatibility import compatibility

__all__ = [
    "FxNetMinimizerBadModuleError",
    "FxNetMinimizerResultMismatchError",
    "FxNetMinimizerRunFuncError",
]


@compatibility(is_backward_compatible=False)
class FxNetMinimizerBadModuleError(Exception):
    """A part of the module could not be made a module."""


@compatibility(is_backward_compatible=False)
class FxNetMinimizerRunFuncError(Exception):
    """One of the implementations could not compute a part."""


@compatibility(is_backward_compatible=False)
class FxNetMinimizerResultMismatchError(Exception):
    """The implementations gave different results."""
