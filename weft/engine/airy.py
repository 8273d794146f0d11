"""The Airy function Ai as an expression, computed in float64, see `engine/special.py`.

Sources: DLMF 9.2.1 (the differential equation, from which Taylor series follow), 9.7.5 and 9.7.9 (asymptotic expansions).
"""

from __future__ import annotations

import math

from .approx import cos, exp, sin
from .expr import Expr, absolute, as_expr, eq, fma, horner, isnan, rint, select, sqrt
from .special import in_float64

# fmt: off
# Ai and its derivative at the integers from -_LAST to _LAST, from 40 digits.
_AT = (
    (0.04024123848644319, 0.99626504413279), (-0.022133721547341403, -0.9756639809263316),
    (-0.0527050503563862, 0.9355609381983065), (0.18428083525050565, -0.7710081684101265),
    (-0.3291451736298231, 0.3459354872813429), (0.35076100902411433, 0.32719281855444315),
    (-0.07026553294928951, -0.7906285753685813), (-0.37881429367765806, 0.3145837692165988),
    (0.22740742820168558, 0.618259020741691), (0.5355608832923521, -0.01016056711664521),
    (0.3550280538878172, -0.2588194037928068), (0.13529241631288141, -0.1591474412967932),
    (0.03492413042327438, -0.05309038443365363), (0.006591139357460719, -0.011912976705951319),
    (0.0009515638512048018, -0.001958640950204179), (0.00010834442813607442, -0.0002474138908684625),
    (9.947694360252889e-06, -2.4765200397034955e-05), (7.492128863997167e-07, -2.008150894738792e-06),
    (4.6922076160992316e-08, -1.3414392979067865e-07), (2.47116843087249e-09, -7.480641389658946e-09),
    (1.1047532552898686e-10, -3.5206336767389237e-10),
)
# fmt: on
_LAST = len(_AT) // 2
# So many terms of a Taylor series around an integer, and of the expansion beyond the table, give all bits.
_TAYLOR, _TAYLOR_SHORT = 24, 14
_FAR, _FAR_SHORT = 22, 10
# The coefficients of the expansion: gamma(3 k + 1/2) / (54**k k! gamma(k + 1/2)) for k = 0, 1, ..., each from the one before.
_EXPANSION = [1.0]
for _k in range(1, _FAR):
    _EXPANSION.append(_EXPANSION[-1] * (6 * _k - 5) * (6 * _k - 3) * (6 * _k - 1) / (216 * _k * (2 * _k - 1)))


def _near(x: Expr, short: bool) -> Expr:
    """By the Taylor series around the nearest integer n: Ai'' = x Ai gives each coefficient from those before."""
    n = rint(x)
    h = x - n
    value, slope = as_expr(_AT[0][0], x), as_expr(_AT[0][1], x)
    for k, (there, derivative) in enumerate(_AT[1:], 1 - _LAST):
        at_or_right = n >= float(k)
        value, slope = select(at_or_right, there, value), select(at_or_right, derivative, slope)
    coefficients = [value, slope, n * value * 0.5]
    for k in range(1, (_TAYLOR_SHORT if short else _TAYLOR) - 2):
        following = fma(n, coefficients[k], coefficients[k - 1]) * (1.0 / ((k + 1) * (k + 2)))
        coefficients.append(following)
    total = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = fma(total, h, coefficient)
    return total


def _far(size: Expr, is_left: Expr, short: bool) -> Expr:
    """By the asymptotic expansions in 1 / zeta, zeta = 2/3 |x|**(3/2)."""
    root = sqrt(size)
    zeta = size * root * (2.0 / 3)
    inverse = 1.0 / zeta
    terms = _EXPANSION[: _FAR_SHORT if short else _FAR]
    scale = 1.0 / (sqrt(root) * math.sqrt(math.pi))
    signed = [coefficient * (-1) ** k for k, coefficient in enumerate(terms)]
    right = exp(-zeta) * horner(inverse, signed[::-1]) * scale * 0.5
    square = -inverse * inverse
    even, odd = (horner(square, terms[start::2][::-1]) for start in (0, 1))
    sine, cosine = sin(zeta), cos(zeta)
    wave = (cosine + sine) * even + (sine - cosine) * (odd * inverse)
    return select(is_left, wave * scale * math.sqrt(0.5), right)


def _ai(x: Expr, short: bool) -> Expr:
    """As in PyTorch, NaN for infinities."""
    size = absolute(x)
    inside = size < _LAST + 0.5
    near = _near(select(inside, x, 0.0), short)
    far = _far(select(inside, _LAST + 1.0, size), x < 0, short)
    value = select(inside, near, far)
    return select(isnan(x) | eq(size, math.inf), math.nan, value)


ai = in_float64(_ai)
