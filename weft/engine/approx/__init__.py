"""Transcendental functions as expressions over primitives, with errors of at most 1 ulp, without branches, tables or calls.

Each function reduces its argument, evaluates polynomials with fused multiply-adds and selects the special
cases. float32 functions calculate in float32 where that is accurate enough, else in float64. Unless a comment says
otherwise, the polynomials are weighted minimax fits: least squares on Chebyshev nodes in 66 digits, reweighted
towards the maximum (Lawson), coefficients rounded from the lowest power up and the rest fitted again; those of tanh and
normal_cdf were found by Remez's algorithm and rounded at the end. The stated errors are relative to the function. Measured accuracy: docs/accuracy.md.
"""

from .arcs import acos, asin, atan, atan2, hypot, larger
from .circular import cos, sin, tan
from .errors import erf, erfc, erfinv, normal_cdf
from .exponential import exp, exp2, expm1, sigmoid
from .extended import log_short
from .hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from .logarithm import log, log1p, log2, log10
from .power import pow

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "erf", "erfc",
    "erfinv", "exp", "exp2", "expm1", "hypot", "larger", "log", "log10", "log1p", "log2", "log_short",
    "normal_cdf", "pow", "sigmoid", "sin", "sinh", "tan", "tanh",
]  # fmt: skip
