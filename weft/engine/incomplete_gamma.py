"""The regularized incomplete gamma functions as loops over one element, for devices that have a kernel for such loops.

P(a, x) and Q(a, x) = 1 - P(a, x) in float64. Sources: DLMF 8.7.3 and 8.11.4 (series), 8.9.2 (continued fraction), 8.12 (Temme's expansion).
"""

from __future__ import annotations

import functools
import math

from ..core.dtype import float64
from .approx import erfc, exp, expm1, log
from .expr import Expr, absolute, as_expr, const, copysign, eq, fma, horner, isnan, select, sqrt
from .iterations import ALWAYS, Case, Cases, Iteration, Turn
from .special import LGAMMA, LGAMMA_TAIL, lgamma

# Temme's expansion holds the precision of float64 from this `a` on, for |x / a - 1| below this bound.
_LARGE, _NEAR = 25.0, 0.3
# Below this x, Q has a series that does not cancel.
_SMALL = 1.1
_PRECISION = 2.0**-54
# fmt: off
# The coefficients of eta**n / a**k in Temme's expansion, a row for each k, the highest n first. They are computed as fractions from
# DLMF 8.12.10: the ones that contribute more than 2e-18 for all `a` and `x` of the bounds above.
_TEMME = (
    (-5.830772132550426e-11, -2.5514193994946248e-11, 9.14769958223679e-10, -4.382036018453353e-09,
     1.0261809784240309e-08, 6.707853543401498e-09, -1.7665952736826078e-07, 8.296711340953087e-07,
     -1.85406221071516e-06, -2.185448510679992e-06, 3.919263178522438e-05, -0.0001787551440329218,
     0.0003527336860670194, 0.0011574074074074073, -0.014814814814814815, 0.08333333333333333,
     -0.3333333333333333,),
    (4.162792991842583e-10, -1.0091543710600413e-09, -1.7543241719747647e-11, 1.1951628599778148e-08,
     -5.752545603517705e-08, 1.378633446915721e-07, 4.647127802807434e-09, -1.6120900894563446e-06,
     7.64916091608111e-06, -1.8098550334489977e-05, -4.018775720164609e-07, 0.00020576131687242798,
     -0.0009902263374485596, 0.0026455026455026454, -0.003472222222222222, -0.001851851851851852,),
    (6.228974084922022e-09, -1.409252991086752e-08, -2.0477098421990866e-10, 1.4280614206064242e-07,
     -6.298992138380055e-07, 1.3721957309062934e-06, 3.423578734096138e-08, -1.2760635188618728e-05,
     5.2923448829120125e-05, -0.0001073665322636516, 2.0093878600823047e-06, 0.0007716049382716049,
     -0.0026813271604938273, 0.004133597883597883,),
    (-1.9111168485973655e-08, 8.099464905388083e-08, -1.6958404091930278e-07, -2.7861080291528143e-11,
     1.4230900732435883e-06, -5.6749528269915965e-06, 1.1082654115347302e-05, -2.396505113867297e-07,
     -7.561801671883977e-05, 0.00026772063206283885, -0.0004691894943952557, 0.00022947209362139917,
     0.0006494341563786008,),
    (-2.292934834000805e-07, 8.907507532205309e-07, -1.6954149536558305e-06, 2.507497226237533e-10,
     1.1375726970678419e-05, -3.968365047179435e-05, 6.641498215465122e-05, -1.4638452578843418e-06,
     -0.0002990724803031902, 0.0007840392217200666, -0.0008618882909167117,),
    (-2.291481176508095e-06, 8.018470256334202e-06, -1.3594048189768693e-05, 1.419062920643967e-07,
     6.797780477937208e-05, -0.00019932570516188847, 0.0002772753244959392, -6.972813758365857e-05,
     -0.00033679855336635813,),
    (3.465155368803609e-06, -3.0796134506033047e-09, -1.8329116582843375e-05, 5.61168275310625e-05,
     -8.153969367561969e-05, 7.902353232660328e-07, 0.0002708782096718045, -0.0005921664373536939,
     0.0005313079364639922,),
    (-1.8263488805711332e-05, 2.7744451511563645e-05, -1.2741009095484485e-07, -0.00010976582244684731,
     0.0002812695154763237, -0.00033493161081142234, 5.171790908260592e-05, 0.00034436760689237765,),
    (-0.00012783517679769218, 0.00016644846642067547, -6.969091458420552e-07, -0.000438297098541721,
     0.0008394987206720873, -0.0006526239185953094,),
    (-0.0006401475260262758, 0.0006782308837667328, -7.204895416020011e-05, -0.0005967612901927463,),
    (-0.0019144384985654776, 0.0013324454494800656,),
)
# fmt: on
# log(1 + m) - m is -m r + 2 r**3 (1/3 + r**2 / 5 + ...) for r = m / (2 + m): the terms that count for |m| < _NEAR.
_ATANH = tuple(1.0 / (2 * k + 3) for k in reversed(range(11)))


def _log_less(ratio: Expr, m: Expr) -> Expr:
    """Return log(ratio) - m for m = ratio - 1, without cancellation near 0."""
    near = absolute(m) < _NEAR
    inside = select(near, m, 0.0)
    r = inside / (inside + 2.0)
    square = r * r
    series = fma(square * r * 2.0, horner(square, _ATANH), -inside * r)
    return select(near, series, log(ratio) - m)


def _log_gamma_after(a: Expr) -> Expr:
    """Return the logarithm of gamma(1 + a) for a >= 0, which is 0 at a = 0, to its last bits."""
    below = a <= 1.0
    inside = select(below, a, 0.5)
    near = inside * (inside - 1.0) * horner(fma(inside, 2.0, -1.0), LGAMMA)
    return select(below, near, lgamma(select(below, 1.0, a) + 1.0))


def _first_term(a: Expr, x: Expr) -> Expr:
    """Return x**a exp(-x) / gamma(a + 1)."""
    large = a >= _LARGE
    far = select(large, a, _LARGE)
    inverse = 1.0 / far
    rest = inverse * horner(inverse * inverse, LGAMMA_TAIL)
    at_large = exp(far * _log_less(x / far, (x - far) / far) - rest) / sqrt(far * (2 * math.pi))
    near = select(large, 1.0, a)
    return select(large, at_large, exp(near * log(x) - x - _log_gamma_after(near)))


def _series_turn(first: Expr, a: Expr, x: Expr, term: Expr, total: Expr, k: Expr) -> Turn:
    """P is the first term times 1 + x / (a + 1) + x**2 / ((a + 1) (a + 2)) + ..."""
    term = term * (x / (a + k))
    total = total + term
    return Turn(term <= total * _PRECISION, first * total, carried=(term, total, k + 1.0))


_SERIES = Iteration(lambda a, x: (_first_term(a, x), a, x), _series_turn, start=(1.0, 1.0, 1.0))

_TINY = 1e-300  # in place of a denominator of 0 (Lentz's method)


def _fraction_turn(first: Expr, a: Expr, x: Expr, above: Expr, below: Expr, product: Expr, k: Expr) -> Turn:
    """Q is the first term times a, times 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...)))."""
    numerator = select(eq(k, 0.0), 1.0, k * (a - k))
    denominator = (x - a) + (k * 2.0 + 1.0)
    below = 1.0 / (numerator * below + denominator)
    above = denominator + numerator / above
    factor = above * below
    product = product * factor
    done = absolute(factor - 1.0) <= _PRECISION * 8
    return Turn(done, first * a * product, carried=(above, below, product, k + 1.0))


_FRACTION = Iteration(lambda a, x: (_first_term(a, x), a, x), _fraction_turn, start=(_TINY, 0.0, _TINY, 0.0))


def _small_constants(a: Expr, x: Expr) -> tuple[Expr, ...]:
    power = a * log(x) - _log_gamma_after(a)
    return -expm1(power), a * exp(power), a, x


def _small_turn(head: Expr, scale: Expr, a: Expr, x: Expr, term: Expr, total: Expr, k: Expr) -> Turn:
    """Q is 1 - x**a / gamma(a + 1) (1 + a (-x / (a + 1) + x**2 / (2 (a + 2)) - ...))."""
    term = -term * x / k
    added = term / (a + k)
    total = total + added
    done = absolute(added) <= absolute(total) * _PRECISION
    return Turn(done, head - scale * total, carried=(term, total, k + 1.0))


_SMALL_SERIES = Iteration(_small_constants, _small_turn, start=(1.0, 0.0, 1.0))


def _temme(a: Expr, x: Expr, upper: bool) -> Expr:
    half_square = -_log_less(x / a, (x - a) / a)  # of eta
    eta = copysign(sqrt(half_square * 2.0), x - a)
    inverse = 1.0 / a
    rest = horner(inverse, [horner(eta, row) for row in reversed(_TEMME)])
    rest = rest * exp(-half_square * a) / sqrt(a * (2 * math.pi))
    sign = 1.0 if upper else -1.0
    return 0.5 * erfc(eta * sqrt(a * 0.5) * sign) + rest * sign


@functools.cache
def _expansion(upper: bool) -> Iteration:
    return Iteration(lambda a, x: (_temme(a, x, upper),), lambda value: Turn(ALWAYS, value))


def _regions(a: Expr, x: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    """Where to use Temme's expansion, the series of P, the continued fraction of Q and the series of Q."""
    inside = (a > 0.0) & (x > 0.0) & (a < math.inf) & (x < math.inf)
    temme = inside & (a >= _LARGE) & (absolute(x - a) < a * _NEAR)
    # Where P is small, Q is 1 - P.
    small = select(x <= 0.5, -a * log(x) <= 0.4, a <= x * 1.1) & (x <= _SMALL)
    fraction = (x > _SMALL) & (x >= a)
    rest = inside & ~temme
    return temme, rest & ~small & ~fraction, rest & fraction, rest & small


def _cases(upper: bool, a: Expr, x: Expr) -> tuple[Case, ...]:
    iterations = (_expansion(upper), _SERIES, _FRACTION, _SMALL_SERIES)
    return tuple(
        [Case(region, each, (a, x)) for region, each in zip(_regions(a, x), iterations, strict=True)]
    )


def _result(upper: bool, found: Expr, a: Expr, x: Expr) -> Expr:
    _, of_p, fraction, small = _regions(a, x)
    found = select(of_p if upper else fraction | small, 1.0 - found, found)
    # At the edges; as in PyTorch, P is 1 for a = 0, where x is not.
    one, none = (const(0.0, float64), as_expr(1.0, x)) if upper else (as_expr(1.0, x), const(0.0, float64))
    found = select(eq(x, math.inf) | eq(a, 0.0), one, found)
    found = select((eq(x, 0.0) & (a > 0.0)) | (eq(a, math.inf) & (x < math.inf)), none, found)
    nowhere = (a < 0.0) | (x < 0.0) | (eq(a, 0.0) & eq(x, 0.0)) | (eq(a, math.inf) & eq(x, math.inf))
    return select(nowhere | isnan(a) | isnan(x), math.nan, found)


LOWER, UPPER = (
    Cases(functools.partial(_cases, upper), functools.partial(_result, upper)) for upper in (False, True)
)
