"""Gamma and Bessel functions as expressions, computed in float64; a float32 is widened first and rounded once at the end.

Sources: DLMF 5.5, 5.7, 5.11 (lgamma, digamma and trigamma), 10.25, 10.40 (modified Bessel functions). The Chebyshev
coefficients are interpolations in 40 digits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from ..core.dtype import float32, float64
from .approx import exp, log, log_short, sin, tan
from .expr import (
    Expr,
    absolute,
    as_expr,
    cast,
    copysign,
    eq,
    fma,
    horner,
    isnan,
    one_function,
    rint,
    select,
    sqrt,
)

# fmt: off
# exp(-x) I0(x) and exp(-x) I1(x) / x in x / 4 - 1, for x <= 8.
# sqrt(x) exp(-x) I0(x) and sqrt(x) exp(-x) I1(x) in 16 / x - 1, for x > 8.
I0_NEAR = (
    0.33839763720473803, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764, 0.04930528423967071,
    -0.02373741480589947, 0.010546460394594998, -0.004324309995050576, 0.0016394756169413357, -0.0005763755745385824,
    0.00018850288509584165, -5.754195010082104e-05, 1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06,
    -2.670793853940612e-07, 6.046995022541919e-08, -1.300025009986248e-08, 2.6598237246823866e-09, -5.189795601635263e-10,
    9.675809035373237e-11, -1.726826291441556e-11, 2.95505266312964e-12, -4.856446783111929e-13, 7.676185498604936e-14,
    -1.1685332877993451e-14, 1.715391285555133e-15, -2.431279846547955e-16, 3.3307945188222384e-17,
)
I0_FAR = (
    0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06, 2.0489185894690638e-07,
    2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10, 1.1889147107846439e-11, -3.1499165279632416e-11,
    -1.3215811840447713e-11, -1.7941785315068062e-12, 7.180124451383666e-13, 3.8527783827421426e-13, 1.54008621752141e-14,
    -4.150569347287222e-14, -9.554846698828307e-15, 3.8116806693526224e-15, 1.7725601330565263e-15, -3.4254856196772195e-16,
    -2.8276239805165836e-16, 3.461222867697477e-17, 4.465621420296738e-17, -4.830504485944371e-18, -7.233180487873652e-18,
)
I1_NEAR = (
    0.12629359322181682, -0.17641651835783406, 0.1026436586898471, -0.05294598120809499, 0.024726449030626516,
    -0.010564084894626197, 0.004156422944312888, -0.0015135724506312532, 0.0005122859561685758, -0.00016176081582589674,
    4.781565107550054e-05, -1.3273163656039436e-05, 3.4702513081376785e-06, -8.568720264695455e-07, 2.0032947535521353e-07,
    -4.445059128796328e-08, 9.381537386495773e-09, -1.8872497517228294e-09, 3.625590281552117e-10, -6.663489723502027e-11,
    1.1736186298890901e-11, -1.9839743977649436e-12, 3.223793365945575e-13, -5.042185504727912e-14, 7.600684294735408e-15,
    -1.1055969477353862e-15, 1.5536319577362005e-16, -2.111421214358166e-17, 2.7779141127610464e-18,
)
I1_FAR = (
    0.38928811750914005, -0.009761097491361469, -0.00011058893876262371, -3.882564808877691e-06, -2.512236237870209e-07,
    -2.6314688468895196e-08, -3.835380385964237e-09, -5.589743462196584e-10, -1.8974958123505413e-11, 3.2526035830154884e-11,
    1.4125807436613782e-11, 2.0356285441470896e-12, -7.198551776245908e-13, -4.0835511110921974e-13, -2.1015418427726643e-14,
    4.272440016711951e-14, 1.0420276984128802e-14, -3.8144030724370075e-15, -1.8803547755107825e-15, 3.3082023109209285e-16,
    2.96262899764595e-16, -3.2095259219934404e-17, -4.650305368489336e-17, 4.414348323071889e-18, 7.51729631084099e-18,
)
# Bernoulli numbers B14 ... B2 over their index: the tail of digamma in 1 / x**2.
DIGAMMA_TAIL = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)
# Bernoulli numbers B14 ... B2: the tail of trigamma.
TRIGAMMA_TAIL = (7 / 6, -691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6)
# The same over k (k - 1), k their index: the tail of lgamma, times x.
LGAMMA_TAIL = (1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
# lgamma(x) / ((x - 1) (x - 2)) in 2 x - 3 for 1 <= x <= 2, 2**-59 and 2**-36.
LGAMMA = (
    -3.803618166622364e-12, 1.1586115295157278e-11, -1.5395748006420787e-11, 5.0258222095609345e-11,
    -2.0874620693971093e-10, 6.566403819263112e-10, -2.016947955623982e-09, 6.430260727636965e-09,
    -2.0621027431854287e-08, 6.623878077265301e-08, -2.1386323384115519e-07, 6.948428064186312e-07,
    -2.2742474102383936e-06, 7.511391855641883e-06, -2.5094328668947195e-05, 8.510090373499432e-05,
    -0.0002945507015196472, 0.0010498186644547402, -0.003913560937626182, 0.015727850268641094,
    -0.07297994795715304, 0.4831289505409809,
)
LGAMMA_SHORT = (
    9.452956479916216e-08, -2.966444094170072e-07, 6.530643294072715e-07, -2.163631829346883e-06,
    7.540909132774122e-06, -2.516294850429408e-05, 8.509034848375569e-05, -0.0002945302803503352,
    0.0010498204491941243, -0.0039135635250045955, 0.015727850155933743, -0.07297994786384474, 0.48312895054214,
)
# fmt: on
# sin(pi x) / (pi x) in x**2 for |x| <= 1/2: terms of the Taylor series, up to 2**-60 and 2**-38.
SINE = tuple((-1) ** k * math.pi ** (2 * k) / math.factorial(2 * k + 1) for k in reversed(range(11)))
SINE_SHORT = SINE[3:]

PI_FLOAT32 = 13176795 / 2**22
# From here on the asymptotic series are exact to the last bit.
ASYMPTOTIC = 10


def in_float64(function: Callable[[Expr, bool], Expr]) -> Callable[[Expr], Expr]:
    """`function(x, short)` on float64; `short` says that the precision of float32 is enough."""

    @one_function
    @functools.wraps(function)
    def widened(x: Expr) -> Expr:
        if x.dtype is float32:
            return cast(function(cast(x, float64), True), float32)
        return function(x, False)

    return widened


def chebyshev(t: Expr, coefficients: Sequence[float], short: bool) -> Expr:
    """Return Clenshaw's sum of coefficients[k] T_k(t)."""
    if short:
        coefficients = [c for c in coefficients if abs(c) > 2.0**-32 * abs(coefficients[0])]
    twice = t + t
    current, before = as_expr(coefficients[-1], t), as_expr(0.0, t)
    for coefficient in reversed(coefficients[1:-1]):
        current, before = fma(twice, current, coefficient - before), current
    return fma(t, current, coefficients[0] - before)


def _scaled_bessel(near: Sequence[float], far: Sequence[float]) -> Callable[[Expr, bool], tuple[Expr, Expr]]:
    """The near fit at |x| and the far fit divided by sqrt(|x|), each where it holds."""

    def fits(size: Expr, short: bool) -> tuple[Expr, Expr]:
        inside = select(size <= 8, size, 8.0)
        outside = select(size <= 8, 8.0, size)
        at_far = chebyshev(16.0 / outside - 1.0, far, short) / sqrt(outside)
        return chebyshev(inside * 0.25 - 1.0, near, short), at_far

    return fits


_fits_0, _fits_1 = _scaled_bessel(I0_NEAR, I0_FAR), _scaled_bessel(I1_NEAR, I1_FAR)


def _i0e(x: Expr, short: bool) -> Expr:
    size = absolute(x)
    near, far = _fits_0(size, short)
    return select(isnan(x), x, select(size <= 8, near, far))


def _i1e(x: Expr, short: bool) -> Expr:
    size = absolute(x)
    near, far = _fits_1(size, short)
    return select(isnan(x), x, copysign(select(size <= 8, near * size, far), x))


def _grown(scaled: Callable[[Expr, bool], Expr]) -> Callable[[Expr, bool], Expr]:
    """exp(|x|) times a scaled function, in two factors: the product has a wider range than exp. NaN for infinities."""

    def function(x: Expr, short: bool) -> Expr:
        root = exp(absolute(x) * 0.5)
        return scaled(x, short) * root * root

    return function


def _digamma(x: Expr, short: bool) -> Expr:
    """Upwards by psi(x) = psi(x + 1) - 1 / x to the asymptotic series; left of 0 by reflection."""
    left = x < 0
    y, total = select(left, 1.0 - x, x), as_expr(0.0, x)
    for _ in range(ASYMPTOTIC):
        below = y < ASYMPTOTIC
        total = select(below, total - 1.0 / y, total)
        y = select(below, y + 1.0, y)
    inverse = 1.0 / y
    z = inverse * inverse
    value = total + (log(y) - 0.5 * inverse - z * horner(z, DIGAMMA_TAIL))
    value = select(eq(y, math.inf), y, value)
    offset = x - rint(x)
    reflected = select(eq(offset, 0), math.nan, value - math.pi / tan(offset * math.pi))
    value = select(left, reflected, value)
    return select(eq(x, 0), copysign(as_expr(math.inf, x), -x), value)


def _trigamma(x: Expr, short: bool) -> Expr:
    left = x < 0.5
    y, total = select(left, 1.0 - x, x), as_expr(0.0, x)
    for _ in range(ASYMPTOTIC):
        below = y < ASYMPTOTIC
        inverse = 1.0 / y
        total = select(below, fma(inverse, inverse, total), total)
        y = select(below, y + 1.0, y)
    inverse = 1.0 / y
    z = inverse * inverse
    value = total + fma(z, 0.5, inverse) + z * inverse * horner(z, TRIGAMMA_TAIL)
    # At the poles PyTorch takes the sine of a rounded multiple of pi: its results there are large, not infinite.
    pole = cast(cast(x * PI_FLOAT32, float32), float64) if short else x * math.pi
    offset = x - rint(x)
    ratio = math.pi / sin(select(eq(offset, 0), pole, offset * math.pi))
    return select(left, fma(ratio, ratio, -value), value)


# From here on the asymptotic series of lgamma is exact to the last bit of a float64, and to 2**-36 for a float32.
LGAMMA_FAR, LGAMMA_FAR_SHORT = 8, 4


def _lgamma(x: Expr, short: bool) -> Expr:
    """Right of 0 by a polynomial that has the zeros at 1 and 2 as factors; left of 0 by reflection."""
    left = x < 0
    offset = absolute(x - rint(x))
    sine = offset * horner(offset * offset, SINE_SHORT if short else SINE)
    log_ = log_short if short else log
    value = _lgamma_right(select(left, 1.0 - x, x), short, log_)
    value = select(left, -log_(sine) - value, value)
    return select((left & eq(offset, 0)) | eq(absolute(x), math.inf), math.inf, value)


def _lgamma_right(x: Expr, short: bool, log_: Callable[[Expr], Expr]) -> Expr:
    """Handle x >= 0. Downwards by lgamma(x + 1) = log(x) + lgamma(x), or one up, to 1 <= y <= 2."""
    first_far = LGAMMA_FAR_SHORT if short else LGAMMA_FAR
    far, below = first_far <= x, x < 1
    y, product = select(below, x + 1.0, x), as_expr(1.0, x)
    for _ in range(first_far - 2):
        above, less = 2 < y, y - 1.0
        product, y = select(above, product * less, product), select(above, less, y)
    logarithm = log_(select(far | below, x, product))
    zeros = select(below, x * (x - 1.0), (y - 1.0) * (y - 2.0))
    # The polynomial does not hold for an x beyond `first_far`: the last select drops what it gives there.
    ratio = horner(fma(y, 2.0, -3.0), LGAMMA_SHORT if short else LGAMMA)
    near = fma(zeros, ratio, select(below, -logarithm, logarithm))
    inverse = 1.0 / x
    tail = fma(inverse, horner(inverse * inverse, LGAMMA_TAIL), (math.log(2 * math.pi) - 1) / 2)
    return select(far, fma(x - 0.5, logarithm - 1.0, tail), near)


i0e, i1e = in_float64(_i0e), in_float64(_i1e)
i0, i1 = in_float64(_grown(_i0e)), in_float64(_grown(_i1e))
digamma, trigamma, lgamma = in_float64(_digamma), in_float64(_trigamma), in_float64(_lgamma)
