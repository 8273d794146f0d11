"""Bessel functions of orders 0 and 1 as expressions: J, Y and the modified K, and the spherical j0. Computed in float64, see `engine/special.py`.

Sources: DLMF 10.2, 10.8, 10.17 (J and Y), 10.31, 10.40 (K), 10.49 (spherical). The Chebyshev coefficients are interpolations in 50 digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .approx import cos, exp, log, sin
from .expr import Expr, absolute, as_expr, copysign, eq, horner, isnan, select, sqrt
from .special import chebyshev, in_float64

# fmt: off
# For x <= 8 in x**2 / 32 - 1: J0(x) over the product of x**2 - zero**2 for its two zeros there, and J1(x) / x over the same;
# Y0(x) - 2/pi log(x/2) J0(x), and (Y1(x) - 2/pi log(x/2) J1(x) + 2 / (pi x)) / x.
J0_NEAR = (
    0.0019903555001601486, -0.002620939138497025, 0.0008687721472062577, -0.00017040584951557357,
    2.204908639454817e-05, -2.0248894980012834e-06, 1.3898025173428905e-07, -7.406701254344167e-09,
    3.1559927583611334e-10, -1.1003860827939697e-11, 3.1989232970233477e-13, -7.875041254709154e-15,
    1.6632588015211278e-16, -3.0475993756698376e-18, 4.8912290055811176e-20,
)
J1_NEAR = (
    0.00027895709887613106, -0.0003115684036643562, 8.553646588540538e-05, -1.4149356425623485e-05,
    1.576470099225889e-06, -1.269075502369425e-07, 7.747614077073057e-09, -3.716577146675772e-10,
    1.4395417669312554e-11, -4.60007822413452e-13, 1.2341465589619718e-14, -2.8205466239524856e-16,
    5.558821065951572e-18, -9.546930865755219e-20, 1.4418291781315051e-21,
)
Y0_NEAR = (
    0.03645469809116044, -0.2783237094075825, 0.2960499990207148, 0.09825508408187864, -0.10755155280627783,
    0.031799074084414514, -0.005161397105810715, 0.0005498525320039012, -4.1996983149420134e-05,
    2.4290361107923793e-06, -1.1049969793472957e-07, 4.06651736597911e-09, -1.2374148898289854e-10,
    3.1685725528945945e-12, -6.926956032431002e-14, 1.3086308625876684e-15, -2.1586201986914482e-17,
)
Y1_NEAR = (
    0.038300769852423776, -0.08182561412732826, -0.0248677076121964, 0.047967452752746984, -0.01852588451089802,
    0.003680607687823511, -0.0004627254060293369, 4.06940026958087e-05, -2.6617695125295625e-06,
    1.350602691325434e-07, -5.483524110336276e-09, 1.8245086841229007e-10, -5.070666636591129e-12,
    1.1956162517587948e-13, -2.423162442712473e-15, 4.268126513072962e-17, -6.596060978723042e-19,
)
# The factors P and x Q of the cosine and the sine of J, for x > 8 in 128 / x**2 - 1.
P0 = (
    0.9994603493475187, -0.0005365220468132117, 3.0751847875194745e-06, -5.1705945376060975e-08,
    1.6306464635151382e-09, -7.86409137723707e-11, 5.168262387349193e-12, -4.3045788699253914e-13,
    4.3265957431549404e-14, -5.069034095935236e-15, 6.748072215733873e-16, -1.0011513723467786e-16,
    1.6305919233744186e-17, -2.880866169482871e-18,
)
Q0 = (
    -0.12444683684269607, 0.0005470815954089319, -5.9315987288485175e-06, 1.4377965798375193e-07,
    -5.817532749493056e-09, 3.376097523734991e-10, -2.565397936797308e-11, 2.404916100281365e-12,
    -2.6690625482579414e-13, 3.4041800321963686e-14, -4.87994410531204e-15, 7.729703176242605e-16,
    -1.3348852171502517e-16, 2.4865952389390515e-17, -4.952892629886516e-18, 1.0473158973776097e-18,
    -2.336930172211422e-19,
)
P1 = (
    1.0009030408600137, 0.0008989898330859408, -3.987284300488908e-06, 6.177633960644299e-08, -1.8718907491063067e-09,
    8.816898659582339e-11, -5.704863640395645e-12, 4.699195515230542e-13, -4.6842237839904895e-14,
    5.452674896044717e-15, -7.221180842274018e-16, 1.0667689114335412e-16, -1.7312313216116335e-17,
    3.0492991197665872e-18,
)
Q1 = (
    0.3742222965562826, -0.0007702178839325664, 7.3108922063643636e-06, -1.676782510726674e-07, 6.583354662120443e-09,
    -3.749090950541556e-10, 2.8121750359748866e-11, -2.61145253946232e-12, 2.8774212663332235e-13,
    -3.649001916061838e-14, 5.206626366226707e-15, -8.215318025458595e-16, 1.4141084390211833e-16,
    -2.626761589838529e-17, 5.2192649196714085e-18, -1.101261718787959e-18,
)
# For x <= 2 in x**2 / 2 - 1: K0(x) + log(x/2) I0(x), I0(x), x (K1(x) - log(x/2) I1(x)), I1(x) / x.
K0_NEAR = (
    -0.2676636966169514, 0.3442898999246285, 0.0359799365153615, 0.001264615411446926, 2.286212103119452e-05,
    2.5347910790261494e-07, 1.904516377220209e-09, 1.0349695257633625e-11, 4.2598161427910826e-14,
    1.3744654358807508e-16,
)
I0_SMALL = (
    1.6029228068079633, 0.638809625651177, 0.03685485969436176, 0.00098287812725148, 1.4983654208927293e-05,
    1.4738449008423848e-07, 1.0114797900674826e-09, 5.1149979020112795e-12, 1.984280622680562e-14,
    6.090516506058955e-17,
)
K1_NEAR = (
    0.7626501136694739, -0.3531559607765449, -0.12261118082265715, -0.006975723859639864, -0.0001730288957513052,
    -2.4334061415659684e-06, -2.213387630734726e-08, -1.4114883926335278e-10, -6.666901694199329e-13,
    -2.427449850519366e-15, -7.023863479386288e-18,
)
I1_SMALL = (
    0.6417589969911874, 0.1475393201491934, 0.005898742680020788, 0.00011988137174638708, 1.4739165119093128e-06,
    1.2138074968740922e-08, 7.161106692799279e-11, 3.17487931131012e-13, 1.0962998348773076e-15,
    3.0315021220933553e-18,
)
# sqrt(x) exp(x) K(x), for x > 2 in 4 / x - 1.
K0_FAR = (
    1.2201515410329777, -0.0314481013119645, 0.0015698838857300533, -0.00012849549581627802, 1.39498137188765e-05,
    -1.8317555227191195e-06, 2.766813639445015e-07, -4.660489897687948e-08, 8.574034017414225e-09,
    -1.6975345093890614e-09, 3.5773972814003283e-10, -7.957489244477396e-11, 1.8559491149549264e-11,
    -4.514597883374519e-12, 1.1403405882073441e-12, -2.9800969231481784e-13, 8.032890775068375e-14,
    -2.2275133267462965e-14, 6.340076476276646e-15, -1.848593377920907e-15, 5.5120559994043335e-16,
    -1.6782311257549006e-16, 5.2103917776435543e-17, -1.6475805939842632e-17, 5.3004337711773354e-18,
)
K1_FAR = (
    1.3603130952422213, 0.10392373657681724, -0.002857816859622779, 0.00019521551847135162, -1.936197974166083e-05,
    2.406484947837217e-06, -3.5019606030878126e-07, 5.7410841254500495e-08, -1.0345762465678097e-08,
    2.0150497551970347e-09, -4.1903547593419254e-10, 9.218315187605315e-11, -2.129967838427791e-11,
    5.139639673482343e-12, -1.2891739609498229e-12, 3.348419666052243e-13, -8.976705182010146e-14,
    2.4771544242195988e-14, -7.0198370892147685e-15, 2.038703166239861e-15, -6.057047270643018e-16,
    1.8380935752430455e-16, -5.689462849193648e-17, 1.7940510478863572e-17, -5.7567444820733025e-18,
)
# fmt: on
# The zeros of J0 and J1 up to 8, each with what float64 drops of it.
ZEROS = (
    ((2.404825557695773, -1.176691651530894e-16), (5.520078110286311, 8.088597146146722e-17)),
    ((3.8317059702075125, -1.5269184090088067e-16), (7.015586669815619, -9.414165653410389e-17)),
)
# sin(x) / x for |x| < 0.5, in x**2.
SPHERICAL = tuple((-1) ** k / math.factorial(2 * k + 1) for k in reversed(range(8)))


# ---- The first and the second kind -----------------------------------------------------------------------------------------


def _first_near(order: int, x: Expr, t: Expr, short: bool) -> Expr:
    value = chebyshev(t, J1_NEAR if order else J0_NEAR, short)
    for zero, rest in ZEROS[order]:
        value = value * ((x - zero) - rest) * (x + zero)
    return value * x if order else value


def _far(order: int, x: Expr, short: bool) -> tuple[Expr, Expr]:
    """J and Y by their phases, x - (order / 2 + 1 / 4) pi, and amplitudes."""
    inverse = 8.0 / x
    t = 2.0 * inverse * inverse - 1.0
    p = chebyshev(t, P1 if order else P0, short)
    q = chebyshev(t, Q1 if order else Q0, short) / x
    cosine, sine = cos(x), sin(x)
    along, across = (sine - cosine, -(sine + cosine)) if order else (sine + cosine, sine - cosine)
    scale = 1.0 / sqrt(x * math.pi)
    return scale * (p * along - q * across), scale * (p * across + q * along)


def _split(x: Expr, bound: float) -> tuple[Expr, Expr]:
    """`x` where it is at most `bound`, and where it is larger; else the bound."""
    is_near = x <= bound
    return select(is_near, x, as_expr(bound, x)), select(is_near, as_expr(bound, x), x)


def _first(order: int) -> Callable[[Expr, bool], Expr]:
    def function(x: Expr, short: bool) -> Expr:
        size = absolute(x)
        inside, outside = _split(size, 8.0)
        near = _first_near(order, inside, inside * inside * (1 / 32) - 1.0, short)
        far, _ = _far(order, outside, short)
        value = select(size <= 8.0, near, far)
        return select(isnan(x), x, value * copysign(as_expr(1.0, x), x) if order else value)

    return function


def _second(order: int) -> Callable[[Expr, bool], Expr]:
    def function(x: Expr, short: bool) -> Expr:
        inside, outside = _split(x, 8.0)
        t = inside * inside * (1 / 32) - 1.0
        rest = chebyshev(t, Y1_NEAR if order else Y0_NEAR, short)
        logarithm = (log(inside) - math.log(2)) * _first_near(order, inside, t, short)
        near = (
            (logarithm - 1.0 / inside) * (2 / math.pi) + inside * rest
            if order
            else logarithm * (2 / math.pi) + rest
        )
        _, far = _far(order, outside, short)
        value = select(x <= 8.0, near, far)
        return select(x < 0, math.nan, select(eq(x, 0), -math.inf, value))

    return function


# ---- The modified functions of the second kind -------------------------------------------------------------------------------


def _modified(order: int, scaled: bool) -> Callable[[Expr, bool], Expr]:
    """K(x), or exp(x) K(x); NaN left of 0."""

    def function(x: Expr, short: bool) -> Expr:
        inside, outside = _split(x, 2.0)
        t = inside * inside * 0.5 - 1.0
        logarithm = log(inside * 0.5)
        if order:
            grown = inside * chebyshev(t, I1_SMALL, short)
            near = chebyshev(t, K1_NEAR, short) / inside + logarithm * grown
        else:
            near = chebyshev(t, K0_NEAR, short) - logarithm * chebyshev(t, I0_SMALL, short)
        far = chebyshev(4.0 / outside - 1.0, K1_FAR if order else K0_FAR, short) / sqrt(outside)
        if scaled:
            near = near * exp(inside)
        else:  # in two factors, because the product has a wider range than exp
            root = exp(outside * -0.5)
            far = far * root * root
        value = select(x <= 2.0, near, far)
        return select(x < 0, math.nan, select(eq(x, 0), math.inf, value))

    return function


def _spherical_j0(x: Expr, short: bool) -> Expr:
    is_near = absolute(x) < 0.5
    apart = select(is_near, as_expr(1.0, x), x)
    far = select(eq(absolute(x), math.inf), 0.0, sin(apart) / apart)
    return select(is_near, horner(x * x, SPHERICAL), far)


j0, j1, y0, y1 = (in_float64(kind(order)) for kind in (_first, _second) for order in (0, 1))
k0, k1, k0e, k1e = (in_float64(_modified(order, scaled)) for scaled in (False, True) for order in (0, 1))
spherical_j0 = in_float64(_spherical_j0)
