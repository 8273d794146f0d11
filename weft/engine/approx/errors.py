"""Computes erf, erfc, erfinv and the cumulative normal distribution."""

from __future__ import annotations

import math

from ...core.dtype import DType, float32, float64
from ..expr import Expr, absolute, const, copysign, eq, fma, horner, one_function, select
from ..wide import Wide, constant, fast_two_sum, leading, narrow, where, widen
from ..wide import sqrt as wide_sqrt
from .exponential import exp_parts, exp_reduce, exp_tail, power_of_two
from .extended import wide_exp, wide_log, wide_scale
from .floats import INF, NAN, clamp

# fmt: off
# erf(x) / x - 1 in x**2 on |x| <= 1, 2**-29.3 and 2**-56.2 of erf(1).
_ERF = {
    float32: (7.92031e-05, -0.0008030751, 0.0051907334, -0.026855126, 0.11283618, -0.3761263, 0.12837917),
    float64: (1.338734537295533e-10, -1.5868361363944591e-09, 1.5850949006020543e-08, -1.653184329438595e-07,
              1.6478569694765026e-06, -1.492672039618256e-05, 0.00012055379285702889, -0.0008548328342598227,
              0.00522397764931669, -0.026866170647691836, 0.11283791670969426, -0.3761263890318407,
              0.1283791670955126),
}
# -log(1 - erf(x)) on 0.95 <= x <= 3.95, 2**-29.5.
_ERF_LARGE = (-0.00019249624, 0.0030092197, -0.022090321, 0.10364577, 0.63751096, 1.1274785, 0.00024389343)
# -log(erfc(x / sqrt(2))) / x to x = 5.6, 2**-25.8 of the result there: beyond, 1 - erfc / 2 is 1.
_TAIL_END = 5.6
_TAIL = (1.9763815e-08, -5.826441e-07, 7.3929577e-06, -5.136497e-05, 0.00018689956, 1.6846838e-05, -0.0048381514,
         0.036365997, 0.31830218, 0.79788524)
# (1 + 2x) exp(x**2) erfc(x) in t = (x - 4) / (x + 4); to x = 10.2 for float32 (t = (x - 3) / (x + 3), 2**-30.3)
# and to 27.3, 2**-58.0, whose constant term is in two parts.
_ERFC = {
    float32: (3.5806543534972336e-05, -0.00018193415873340592, -0.0007416908328427157, 0.0019493676385657051,
              0.0025296260680840598, -0.02378738012658001, 0.06830601570044859, -0.11927168034861305,
              0.12964540710560668, -0.04756238058955008, -0.13562111253130912),
    float64: (2.8696671307860754e-10, 2.083937396984843e-09, 1.671290447413828e-09, -1.655979427075211e-08,
              -1.902596091111301e-08, 1.1324240856205732e-07, 7.690536402217913e-08, -8.27766875097381e-07,
              2.9175471872353905e-07, 5.7108019527664826e-06, -1.1220958818458365e-05, -2.439952990582202e-05,
              0.00015062133029352718, -0.00019925663328116972, -0.0007577732184828804, 0.0050319699699904324,
              -0.016197734066577728, 0.037167515538185786, -0.06633036581157792, 0.09373283499830995,
              -0.10103906603632824, 0.06809705425469388, 0.015379652102620088, -0.13962111684056253),
}
_ERFC_0 = {float32: (1.2530080589083992, 0.0), float64: (1.2329951186255526, -4.625318921008717e-17)}
_ERFC_CENTRE = {float32: 3.0, float64: 4.0}
_ERFC_END = {float32: 10.2, float64: 27.3}
# erfinv(x) / x, w = -log(1 - x**2): (w from, centre, constant term in two parts, the rest); from 6.25 on in sqrt(w).
_ERFINV = {
    float32: (
        (0.0, 3.125, (1.6536545713871147, 0.0),
         (6.416725418381796e-10, -4.6309531004272075e-09, -2.429195568052777e-08, 4.2617070488200675e-07,
          -1.3913246456465456e-06, -1.3890640160641784e-05, 0.00018679766733438436, -0.0007406894021525761,
          -0.006033727816109459, 0.2401581750875373)),  # 2**-27.4
        (6.25, 3.25, (3.083885602272992, 0.0),
         (7.081609973278336e-05, -4.3527384389041754e-05, -0.00034842310536190924, 0.0009893122860980576,
          -0.0016918886318937018, 0.002483391769419091, -0.0037506583538787688, 0.005371554473634554,
          1.005258948670989)),  # 2**-28.5
    ),
    float64: (
        (0.0, 3.125, (1.6536545626831027, -2.3602490514133155e-17),
         (-3.319760042551228e-22, 3.1936966761039514e-21, 1.8416805901372127e-20, -3.473381176798047e-19,
          6.470933021323407e-19, 1.5510758126539142e-17, -1.2272501032171497e-16, -3.940466394584977e-17,
          6.526479765471587e-15, -4.001997596119998e-14, -8.074974023530305e-14, 2.630526317612969e-12,
          -1.2978686569787824e-11, -5.414303004281731e-11, 1.0512230787493491e-09, -4.112660446474588e-09,
          -2.907039081810245e-08, 4.2347881684093947e-07, -1.3654691762635912e-06, -1.38825233939787e-05,
          0.0001867342080199518, -0.0007407025341546313, -0.00603367087142686, 0.24015818242558834)),  # 2**-57.66
        (6.25, 3.25, (3.0838856104922208, -8.717498657592625e-17),
         (7.853492640776817e-09, -1.5326431697700476e-08, -2.1392282163088062e-08, 1.3161444703295835e-07,
          -2.4494885543705085e-07, -2.7611341390071263e-08, 1.4812573370098705e-06, -3.98573682528425e-06,
          2.932700897577466e-06, 1.246505189463652e-05, -4.732070617258352e-05, 6.828710860601949e-05,
          2.4031515729369032e-05, -0.0003550378120077323, 0.0009532893414393805, -0.0016882755356406407,
          0.0024914420979580167, -0.00375120850821507, 0.00537091455355505, 1.0052589676941652)),  # 2**-57.78
        (16.0, 5.0, (4.849906401408584, -8.25220929251163e-17),
         (-1.6216553111882295e-11, 4.315344556193245e-11, 5.054833511086128e-11, -4.384840060565573e-10,
          1.3519271177188858e-09, -3.470337451831067e-09, 7.785067287886863e-09, -1.5255281004141452e-08,
          2.903989693657678e-08, -6.755653834042771e-08, 2.2904563000881653e-07, -9.930291195327593e-07,
          4.526053860310841e-06, -1.968177077154962e-05, 7.599527797814562e-05, -0.00021503011982106505,
          -0.00013871931837656162, 1.0103004648645453)),  # 2**-55.67
    ),
}
# fmt: on


@one_function
def erf(x: Expr) -> Expr:
    """A polynomial for small |x|, else 1 - erfc(|x|), where erfc need not be right to its own last bit."""
    size = absolute(x)
    if x.dtype is float32:
        marked, _, r = exp_reduce(-horner(clamp(size, 0.0, 3.95), _ERF_LARGE))
        scale = power_of_two(marked)
        large = fma(-exp_tail(r), scale, 1.0 - scale)
    else:
        clamped = clamp(size, 0.0, 6.0)
        square = clamped * clamped
        marked, power = exp_parts(-square)
        rest = power.low - power.high * fma(clamped, clamped, -square)
        ratio = _erfc_ratio(clamped, x.dtype)
        large = 1.0 - fma(power.high, ratio, rest * ratio) * power_of_two(marked)
    small = size < 0.97
    return copysign(select(small, fma(size, horner(x * x, _ERF[x.dtype]), size), large), x)


@one_function
def normal_cdf(x: Expr) -> Expr:
    """The cumulative normal distribution to about 2**-24, for which erf would calculate more bits of small arguments."""
    if x.dtype is not float32:
        return erf(x * math.sqrt(0.5)) * 0.5 + 0.5
    size = absolute(x)
    clamped = clamp(size, 0.0, _TAIL_END)
    marked, _, r = exp_reduce(-clamped * horner(clamped, _TAIL))
    half = power_of_two(marked, -1)
    tail = select(size < _TAIL_END, fma(exp_tail(r), half, half), 0.0)
    return select(x < 0, tail, 1.0 - tail)


@one_function
def erfc(x: Expr) -> Expr:
    dtype = x.dtype
    y = _erfc_positive(widen(clamp(absolute(x), 0.0, _ERFC_END[dtype])), dtype)
    y = select(x < 0, 2.0 - y, y)
    if dtype is float32:
        return y
    near_1 = fast_two_sum(const(1.0, dtype), -x)  # less the part of erf(x) beyond x
    near_1 = near_1.high + fma(-x, horner(x * x, _ERF[dtype]), near_1.low)
    return select(absolute(x) < 0.5, near_1, y)


def _erfc_positive(x: Wide, dtype: DType) -> Expr:
    marked, power = wide_exp(-(x * x), dtype)
    return wide_scale(marked, power * _erfc_ratio(x, dtype), dtype)


def _erfc_ratio(x: Wide, dtype: DType) -> Wide:
    """exp(x**2) erfc(x) for positive x, which is nearly 1 / (1 + 2x)"""
    centre = _ERFC_CENTRE[dtype]
    t = (x - centre) / (x + centre)
    return _wide_polynomial(t, _ERFC_0[dtype], _ERFC[dtype]) / (x * 2.0 + 1.0)


def _wide_polynomial(t: Wide, constant_term: tuple[float, float], rest: tuple[float, ...]) -> Wide:
    """The polynomial, of which the constant term is the largest, so that only its sum needs more bits."""
    return t * horner(leading(t), rest) + constant(*constant_term, t)


@one_function
def erfinv(x: Expr) -> Expr:
    """Compute x times a function of w = -log(1 - x**2), in pieces.

    Source: Giles, "Approximating the erfinv function", GPU Computing Gems Jade Edition (2011); fitted anew.
    """
    size = absolute(x)
    inside = widen(select(size < 1, size, 0.0))
    w = -wide_log((1.0 - inside) * (inside + 1.0))
    root = wide_sqrt(w)
    first, *others = _ERFINV[x.dtype]
    ratio = _erfinv_piece(w, first)
    for piece in others:
        ratio = where(leading(w) < piece[0], ratio, _erfinv_piece(root, piece))
    y = copysign(narrow(ratio * inside, x.dtype), x)
    y = select(eq(size, 1), copysign(const(INF, x.dtype), x), y)
    return select(size <= 1, y, NAN)


def _erfinv_piece(w: Wide, piece: tuple) -> Wide:
    _, centre, constant_term, rest = piece
    return _wide_polynomial(w - centre, constant_term, rest)
