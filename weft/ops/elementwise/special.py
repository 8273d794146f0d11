"""Computes special functions: gamma, Bessel and error functions, orthogonal polynomials. Sources: DLMF, SciPy."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from ...core.derivative import nondifferentiable
from ...core.dtype import DType, float64
from ...core.public import add_inplace
from ...core.registry import FUNCTIONS, add_member
from ...core.tensor import Tensor
from ...engine import airy, bessel, blas, normal
from ...engine import scalar as s
from ...engine import special as functions
from ...engine.incomplete_gamma import LOWER, UPPER
from ...families.array_op import ArrayMap
from ...families.calls import chosen, publish
from ...families.iterated import iterated
from ...families.map import NO_COMPLEX, ONLY_FLOATS, Map, same_dtype, to_float
from ..tensor.rules import unknown
from .pointwise import OPS


def scipy(name: str) -> Callable:
    """A function of `scipy.special`, imported at the first call."""

    def function(*arrays):
        return getattr(blas.scipy("special"), name)(*arrays)

    return function


# ---- Functions with a formula of their own ---------------------------------------------------------------------------

SQRT_HALF = math.sqrt(0.5)


def _entr(a):
    positive = s.where(
        s.as_expr(0.0, a) < a, -a * s.log(a), s.where(s.eq(a, 0), s.as_expr(0.0, a), s.as_expr(-math.inf, a))
    )
    return s.where(s.isnan(a), a, positive)


def _xlog1py(a, b):
    return s.where(s.isnan(b), b, s.where(s.eq(a, 0), s.as_expr(0.0, a), a * s.log1p(b)))


def _ndtr(a):
    return s.erfc(a * -SQRT_HALF) * 0.5


# ---- Functions that SciPy computes -------------------------------------------------------------------------------------


def _gammainc(upper: bool) -> Callable:
    if upper:
        return scipy("gammaincc")

    def lower(a, x):
        """SciPy returns 0 for a denormal `a`. It returns 1 for the least normal number, which is right for denormals as well."""
        tiny = np.finfo(np.result_type(a)).tiny
        return scipy("gammainc")(np.where((0 < a) & (a < tiny), tiny, a), x)

    return lower


# The Euler-Maclaurin sum of zeta: terms that are added one by one, and how many of the rest. B(2k) / (2k)! for k = 1, 2, ...
_TERMS, _MOST_LEFT_OF_0 = 10, 100
_BERNOULLI = tuple(
    float(Fraction(top, bottom) / math.factorial(2 * k))
    for k, (top, bottom) in enumerate(
        ((1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510), (43867, 798)), 1
    )
)


def _zeta(s: Any, q: Tensor) -> Tensor | None:
    """The sum of (q + k)**-s over all k from 0 on, for `s` a number or a tensor. Source: DLMF 25.11.5.

    None if some q lies so far left of 0 that its sum has many terms.
    """
    left = float(q.masked_fill(q.isnan(), 0).amin())
    if left < -_MOST_LEFT_OF_0:
        return None
    q = q.double()
    s = s.double() if isinstance(s, Tensor) else q.new_full((), s)
    total = q.new_zeros(())
    terms = _TERMS + (math.ceil(-left) if left < 0 else 0)
    for k in range(terms):
        total = total + (q + k) ** -s
    end = q + terms
    power = end**-s
    total = total + power * end / (s - 1) + power * 0.5
    factor = s / end
    for k, coefficient in enumerate(_BERNOULLI):
        term = coefficient * factor * power
        total = total + term.where(term.isfinite(), 0)
        factor = factor * ((s + (2 * k + 1)) * (s + (2 * k + 2)) / (end * end))
    # Beside the domain as SciPy, which has NaN for some q where s is infinite.
    total = total.masked_fill(q == math.inf, 0)
    is_nan = ~(s >= 1) | ((q < 0) & (s != s.floor()))
    at_pole = (q <= 0) & (q == q.floor()) & ~(s < 1)
    return total.masked_fill(is_nan, math.nan).masked_fill(at_pole | (s == 1), math.inf)


def _polygamma_by_kernels(n: int, factor: float, x: Tensor) -> Tensor | None:
    found = _zeta(n + 1, x)
    return None if found is None else found * factor


@functools.lru_cache(maxsize=64)
def _polygamma(n: int) -> Map:
    if n == 0:
        return OPS["digamma"]
    if n == 1:
        return TRIGAMMA
    factor = (1.0 if n % 2 else -1.0) * (math.gamma(n + 1) if n <= 170 else math.inf)
    return ArrayMap(
        "polygamma",
        to_float,
        lambda x: factor * scipy("zeta")(n + 1, x),
        check=NO_COMPLEX,
        by_kernels=functools.partial(_polygamma_by_kernels, n, factor),
        derivative=lambda ct, out, a: ct * a.polygamma(n + 1),
    )


MOST_TERMS = 16  # of an expression, because compiling it takes as long as it is


@functools.lru_cache(maxsize=64)
def _mvlgamma(p: int) -> Map:
    constant = p * (p - 1) / 4 * math.log(math.pi)
    kind, lgamma = (Map, functions.lgamma) if p <= MOST_TERMS else (ArrayMap, scipy("gammaln"))
    return kind(
        "mvlgamma",
        to_float,
        lambda x: functools.reduce(operator.add, [lgamma(x - j / 2) for j in range(p)]) + constant,
        check=NO_COMPLEX,
        derivative=lambda ct, out, a: ct * sum((a - j / 2).digamma() for j in range(p)),
    )


# ---- Derivatives that do not fit a row; PyTorch has none of the other Bessel functions and of the polynomials -------------

ROOT_2_PI, ROOT_2_BY_PI, TWO_BY_ROOT_PI = (
    math.sqrt(2 * math.pi),
    math.sqrt(2 / math.pi),
    2 / math.sqrt(math.pi),
)


def _i1_rule(ct, out, a):
    apart = a.masked_fill(a == 0, 1)
    return ct * (apart.i0() - out / apart).masked_fill(a == 0, 0.5)


def _i1e_rule(ct, out, a):
    apart = a.masked_fill(a == 0, 1)
    return ct * (OPS["special.i0e"](apart) - out * (apart.sgn() + 1 / apart)).masked_fill(a == 0, 0.5)


def _gammainc_rule(sign: int) -> Callable:
    return lambda ct, out, a, b: ct * (sign * ((a - 1) * b.log() - b - a.lgamma()).exp())


# fmt: off
_UNARY = (
    # names                                      element              forms                      derivative                                                                     what
    ("lgamma special.gammaln",                   functions.lgamma,    "function method inplace", lambda ct, out, a: ct * a.digamma(),                                           "the logarithm of |gamma(input)|"),
    ("digamma special.digamma special.psi",      functions.digamma,   "function method inplace", lambda ct, out, a: ct * a.polygamma(1),                                        "the derivative of lgamma"),
    ("i0 special.i0 special.modified_bessel_i0", functions.i0,        "function method inplace", lambda ct, out, a: ct * OPS["special.i1"](a),                                  "the modified Bessel function of the first kind, order 0"),
    ("special.i1 special.modified_bessel_i1",    functions.i1,        "function",                _i1_rule,                                                                      "the modified Bessel function of the first kind, order 1"),
    ("special.i0e",                              functions.i0e,       "function",                lambda ct, out, a: ct * (OPS["special.i1e"](a) - a.sgn() * out),               "exp(-|input|) i0(input)"),
    ("special.i1e",                              functions.i1e,       "function",                _i1e_rule,                                                                     "exp(-|input|) i1(input)"),
    ("special.entr",                             _entr,               "function",                lambda ct, out, a: ct * (-a.log() - 1),                                        "-input * log(input); 0 at 0, -inf left of it"),
    ("special.ndtr",                             _ndtr,               "function",                lambda ct, out, a: ct * ((a * a / -2).exp() / ROOT_2_PI),                      "the area under the standard normal density left of input"),
    ("special.modified_bessel_k0",               bessel.k0,           "function",                nondifferentiable,                                                             "the modified Bessel function of the second kind, order 0"),
    ("special.modified_bessel_k1",               bessel.k1,           "function",                nondifferentiable,                                                             "the modified Bessel function of the second kind, order 1"),
    ("special.scaled_modified_bessel_k0",        bessel.k0e,          "function",                nondifferentiable,                                                             "exp(input) modified_bessel_k0(input)"),
    ("special.scaled_modified_bessel_k1",        bessel.k1e,          "function",                nondifferentiable,                                                             "exp(input) modified_bessel_k1(input)"),
    ("special.bessel_j0",                        bessel.j0,           "function",                nondifferentiable,                                                             "the Bessel function of the first kind, order 0"),
    ("special.bessel_j1",                        bessel.j1,           "function",                nondifferentiable,                                                             "the Bessel function of the first kind, order 1"),
    ("special.bessel_y0",                        bessel.y0,           "function",                nondifferentiable,                                                             "the Bessel function of the second kind, order 0"),
    ("special.bessel_y1",                        bessel.y1,           "function",                nondifferentiable,                                                             "the Bessel function of the second kind, order 1"),
    ("special.spherical_bessel_j0",              bessel.spherical_j0, "function",                nondifferentiable,                                                             "sin(input) / input; 1 at 0"),
    ("special.airy_ai",                          airy.ai,             "function",                nondifferentiable,                                                             "the Airy function Ai"),
    ("special.erfcx",                            normal.erfcx,        "function",                lambda ct, out, a: ct * (2 * a * out - TWO_BY_ROOT_PI),                        "exp(input**2) erfc(input)"),
    ("special.log_ndtr",                         normal.log_ndtr,     "function",                lambda ct, out, a: ct * (ROOT_2_BY_PI / OPS["special.erfcx"](a * -SQRT_HALF)), "the logarithm of ndtr(input)"),
    ("special.ndtri",                            normal.ndtri,        "function",                lambda ct, out, a: ct * (ROOT_2_PI * (out * out / 2).exp()),                   "the inverse of ndtr"),
)
# fmt: on
for _names, _element, _forms, _derivative, _what in _UNARY:
    _name, *_aliases = _names.split()
    OPS[_name] = Map(_name, to_float, _element, check=NO_COMPLEX, derivative=_derivative)
    publish(OPS[_name], 1, _forms, *_aliases, doc=f"Of each element {_what}.")
TRIGAMMA = Map(
    "polygamma",
    to_float,
    functions.trigamma,
    check=NO_COMPLEX,
    derivative=lambda ct, out, a: ct * a.polygamma(2),
)

OPS["special.xlog1py"] = Map(
    "special.xlog1py",
    to_float,
    _xlog1py,
    check=NO_COMPLEX,
    derivative=(
        lambda ct, out, a, b: OPS["special.xlog1py"](ct, b).masked_fill((a == 0) & (b <= -1), 0),
        lambda ct, out, a, b: ct * a / (b + 1),
    ),
)
publish(
    OPS["special.xlog1py"],
    2,
    "function",
    numbers="input other",
    doc="input * log1p(other); 0 where input is 0.",
)
OPS["special.zeta"] = ArrayMap(
    "special.zeta",
    to_float,
    scipy("zeta"),
    check=NO_COMPLEX,
    by_kernels=_zeta,
    derivative=(unknown("zeta"), lambda ct, out, a, b: ct * -a * OPS["special.zeta"](a + 1, b)),
)
publish(
    OPS["special.zeta"],
    2,
    "function",
    numbers="input other",
    doc="The Hurwitz zeta function of (input, other).",
)
for _name, _upper in (("igamma special.gammainc", False), ("igammac special.gammaincc", True)):
    _own, _alias = _name.split()
    OPS[_own] = ArrayMap(
        _own,
        same_dtype,
        _gammainc(_upper),
        check=ONLY_FLOATS,
        by_kernels=functools.partial(iterated, UPPER if _upper else LOWER),
        derivative=(unknown(f"{_own}: input"), _gammainc_rule(-1 if _upper else 1)),
    )
    _what = f"The regularized {'upper' if _upper else 'lower'} incomplete gamma function of (input, other)."
    publish(OPS[_own], 2, "function method inplace", _alias, numbers="", doc=_what)


@chosen("function", "special.polygamma")
def polygamma(n: int, input: Tensor):
    """The n-th derivative of digamma. Raises: RuntimeError for negative n."""
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return _polygamma(n), (input,)


# The method has its arguments the other way round.
add_member("polygamma", lambda self, n: polygamma(n, self))


def _polygamma_(self: Tensor, n: int) -> Tensor:
    """Apply `polygamma` in place."""
    return _polygamma(n).inplace(self)


add_inplace("polygamma", _polygamma_)


@chosen("function method inplace", "special.multigammaln")
def mvlgamma(input: Tensor, p: int):
    """The logarithm of the multivariate gamma function of dimension `p`. Raises: RuntimeError for p < 1 and bools."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if input.spec.dtype.kind == "b":
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if p * max(input.spec.numel, 1) >= 2**31:  # PyTorch allocates a tensor with p elements
        raise RuntimeError(
            f"mvlgamma: p is too large: a sum of {p} terms for each of {input.spec.numel} elements"
        )
    return _mvlgamma(p), (input,)


# ---- Orthogonal polynomials: three-term recurrences ----------------------------------------------------------------
# Chebyshev polynomials of a higher degree than the first are computed in closed form. No recurrence has more steps than the
# second.
_CLOSED_FROM, _LAST_STEP = 64, 1 << 20


class _Functions:
    """The public functions of tensors, in NumPy's place."""

    float64 = float64

    def __getattr__(self, name: str) -> Callable:
        return FUNCTIONS[name]

    @staticmethod
    def astype(x: Tensor, dtype: DType) -> Tensor:
        return x.to(dtype)


def _recurrence(first: Callable, step: Callable, known: Callable) -> Callable:
    """Compute P_n(x) from P_0 = 1, P_1 = first(x), P_(k+1) = step(x, P_k, P_(k-1), k); 0 for negative n.

    The degree may differ from element to element, so each element keeps its value when its own n is reached. `known(xp, x, n)`
    returns a mask of the elements that need no steps, and their values. `xp` is NumPy, or has functions of tensors under its names.
    """

    def element(xp, x, n):
        # PyTorch converts all other numbers, NaN included, to the least int64.
        n = xp.where(xp.abs(n) < 2.0**63, xp.trunc(n), -1)
        ones = xp.ones_like(x + n)
        result = xp.where(n < 0, 0, ones)
        before, current = ones, first(x)
        result = xp.where(xp.isnan(x), xp.where(n < 0, 0, x), result)
        direct, values = known(xp, x, n)
        top = int(xp.amax(xp.where(direct | xp.isnan(x), -1, n)))
        if top > _LAST_STEP:
            raise RuntimeError(
                f"A polynomial of degree {top} takes as many steps, and weft makes at most {_LAST_STEP}"
            )
        for k in range(1, top + 1):
            result = xp.where(n == k, current, result)
            before, current = current, step(x, current, before, k)
        return xp.astype(xp.where(direct & (n >= 0), values, result), x.dtype)

    return element


def _chebyshev_closed(xp: Any, kind: str, x: Any, n: Any) -> Any:
    """Computed from the angle: x = cos(angle), and outside of [-1, 1] x = cosh(angle) or -cosh(angle)."""
    x, n = xp.astype(x, xp.float64), xp.astype(n, xp.float64)
    size, sign = xp.abs(x), xp.where((x < 0) & (n % 2 == 1), -1.0, 1.0)  # sign is that of x**n
    inside = size < 1
    angle = xp.where(inside, xp.arccos(xp.where(inside, x, 0)), xp.arccosh(xp.where(inside, 1, size)))

    def cos(t):
        return xp.where(inside, xp.cos(t), xp.cosh(t))

    def sin(t):
        return xp.where(inside, xp.sin(t), xp.sinh(t))

    if kind == "t":
        return xp.where(inside, 1, sign) * cos(n * angle)
    if kind == "u":
        return xp.where(inside, 1, sign) * xp.where(size == 1, n + 1, sin((n + 1) * angle) / sin(angle))
    v = cos((n + 0.5) * angle) / cos(angle / 2)
    w = xp.where(size == 1, 2 * n + 1, sin((n + 0.5) * angle) / sin(angle / 2))
    own, other = (v, w) if kind == "v" else (w, v)
    return xp.where(x <= -1, sign * other, own)  # V_n(-x) is W_n(x) with the sign of (-1)**n


def _chebyshev(kind: str, first: Callable, shifted: bool) -> Callable:
    def argument(x):
        return 2 * x - 1 if shifted else x

    def known(xp, x, n):
        values = _chebyshev_closed(xp, kind, argument(x), n)
        # If the result is infinite, PyTorch's recurrence ends with a difference of infinities, which is NaN.
        return n > _CLOSED_FROM, xp.where(xp.isfinite(values), values, math.nan)

    return _recurrence(
        lambda x: first(argument(x)), lambda x, p, before, k: 2 * argument(x) * p - before, known
    )


def _hermite_known(xp, x, n):
    """NaN from the degree on at which PyTorch's recurrence stops."""
    return n > (128 if x.dtype.itemsize == 4 else 512), math.nan


def _laguerre_known(xp, x, n):
    return x == 0, 1.0


def _legendre_known(xp, x, n):
    return xp.abs(x) == 1, xp.where(n % 2 == 0, 1.0, x)


# fmt: off
_CHEBYSHEV = {"t": lambda x: x, "u": lambda x: 2 * x, "v": lambda x: 2 * x - 1, "w": lambda x: 2 * x + 1}
_POLYNOMIALS = {
    **{f"chebyshev_polynomial_{kind}": _chebyshev(kind, first, False) for kind, first in _CHEBYSHEV.items()},
    **{f"shifted_chebyshev_polynomial_{kind}": _chebyshev(kind, first, True) for kind, first in _CHEBYSHEV.items()},
    "hermite_polynomial_h":  _recurrence(lambda x: 2 * x, lambda x, p, before, k: 2 * x * p - 2 * k * before, _hermite_known),
    "hermite_polynomial_he": _recurrence(lambda x: x,     lambda x, p, before, k: x * p - k * before, _hermite_known),
    "laguerre_polynomial_l": _recurrence(lambda x: 1 - x, lambda x, p, before, k: ((2 * k + 1 - x) * p - k * before) / (k + 1), _laguerre_known),
    "legendre_polynomial_p": _recurrence(lambda x: x,     lambda x, p, before, k: ((2 * k + 1) * x * p - k * before) / (k + 1), _legendre_known),
}
# fmt: on
for _name, _element in _POLYNOMIALS.items():
    _name = f"special.{_name}"
    OPS[_name] = ArrayMap(
        _name,
        to_float,
        functools.partial(_element, np),
        check=NO_COMPLEX,
        derivative=nondifferentiable,
        by_kernels=functools.partial(_element, _Functions()),
    )
    publish(
        OPS[_name], 2, "function", numbers="input other", doc="The polynomial of degree `other` at `input`."
    )
