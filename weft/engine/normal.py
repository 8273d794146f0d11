"""Functions of the normal distribution as expressions: its quantiles, the logarithm of its area, and the scaled erfc that it takes.

Computed in float64, see `engine/special.py`. Sources: Shepherd and Laframboise 1981, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x";
Wichura 1988, "Algorithm AS 241" (the regions of the quantiles). The Chebyshev coefficients are interpolations in 50 digits.
"""

from __future__ import annotations

import math

from .approx import erfc, exp, log, log1p
from .expr import Expr, absolute, eq, fma, isnan, select, sqrt
from .special import chebyshev, in_float64

# fmt: off
# (1 + 2 x) exp(x**2) erfc(x) in (x - 3.75) / (x + 3.75), for x >= 0.
ERFCX = (
    1.1775789345674017, -0.004590054580646478, -0.08424913336651792, 0.05920993999819189, -0.026658668435305753,
    0.009074997670705265, -0.002413163540417608, 0.0004907758365258086, -6.916973302501207e-05, 4.13902798607301e-06,
    7.74038306619849e-07, -2.1886401049234397e-07, 1.076499946567091e-08, 4.521959811218287e-09,
    -7.754400208831351e-10, -6.318088340886684e-11, 2.86879501093067e-11, 1.9455868545777347e-13,
    -9.65469674843344e-13, 3.25254814814874e-14, 3.3478119482868056e-14, -1.864562880419313e-15,
    -1.2507950530688648e-15, 7.418235256624044e-17, 5.068148904796111e-17, -2.2370566594359995e-18,
    -2.187342944303018e-18,
)
# The quantile of q + 0.5 over q in 2 (q / 0.425)**2 - 1, for |q| <= 0.425.
CENTRAL = (
    2.8734735392279016, 0.4249523687457461, 0.06986317633479358, 0.014427118125591741, 0.0033201004870131953,
    0.0008138065761203474, 0.0002078684075374738, 5.465725366773796e-05, 1.468387347320025e-05, 4.010738978258519e-06,
    1.1099824248795094e-06, 3.1048977381831365e-07, 8.76239942425181e-08, 2.4913574468428183e-08,
    7.128727140667589e-09, 2.0510368569795625e-09, 5.929461330486637e-10, 1.7214207115839077e-10,
    5.016271397490501e-11, 1.4666377850066188e-11, 4.300954062117301e-12, 1.2646797027235999e-12,
    3.7278749232698614e-13, 1.1013181717350946e-13, 3.260262709486521e-14, 9.669597016771747e-15,
    2.8728720300938122e-15, 8.549085397951056e-16, 2.547815625768706e-16, 7.603544685268746e-17,
    2.2720786063283473e-17, 6.797560949307054e-18,
)
# The quantile of exp(-r**2) over r, for 1.6 <= r <= 5 and 5 <= r <= 27.5, in 1 / r mapped to [-1, 1].
TAIL = (
    -1.126697535254534, 0.2219783760325916, 0.01599172009254618, -0.0010015343243115105, 8.979420596131978e-05,
    -1.0240470472503329e-05, 1.4184143190391003e-06, -2.2634830872695265e-07, 3.9596931017675237e-08,
    -7.3501359770549114e-09, 1.4235856440412697e-09, -2.8539771501378576e-10, 5.895173683408115e-11,
    -1.2499344388004258e-11, 2.7105428593993966e-12, -5.99169627254344e-13, 1.3462264009920928e-13,
    -3.067260051136255e-14, 7.073802690959383e-15, -1.6489165692624192e-15, 3.880443183757341e-16,
    -9.210399769849103e-17, 2.2030733087992012e-17, -5.306635990990952e-18,
)
FAR_TAIL = (
    -1.3755989855896034, 0.03944173726016494, 0.004816060431818342, -0.00026400603947422565, 2.7954432127931647e-05,
    -4.394732781898348e-06, 8.611491525970015e-07, -1.9348113994211982e-07, 4.7767569385480955e-08,
    -1.2628013520875125e-08, 3.515074499201699e-09, -1.0185992281466957e-09, 3.048492976513574e-10,
    -9.368322468471552e-11, 2.9433354558163137e-11, -9.422339269117575e-12, 3.065269574465859e-12,
    -1.0112242110651062e-12, 3.3771031445430084e-13, -1.1400917750335844e-13, 3.886125281018075e-14,
    -1.3361004354916582e-14, 4.629514440118157e-15, -1.6154262211560968e-15, 5.67307590448854e-16,
    -2.00396414850502e-16, 7.116903228122413e-17, -2.54001828729738e-17, 9.106750063461012e-18,
    -3.2788760010626943e-18,
)
# fmt: on
SHIFT = 3.75


def _erfcx(x: Expr, short: bool) -> Expr:
    size = absolute(x)
    right = chebyshev(1.0 - 2.0 * SHIFT / (size + SHIFT), ERFCX, short) / (1.0 + 2.0 * size)
    square = x * x
    low = select(square < math.inf, fma(x, x, -square), 0.0)  # what the square drops
    left = fma(exp(square), 2.0 * (1.0 + low), -right)
    return select(isnan(x), x, select(x < 0, left, right))


def _log_ndtr(x: Expr, short: bool) -> Expr:
    """By the area of the nearer tail: exp(-x**2 / 2) erfcx(|x| / sqrt(2)) / 2. Near 0 by erfc."""
    t = x * math.sqrt(0.5)
    square = x * x
    low = select(square < math.inf, fma(x, x, -square), 0.0)
    tail = _erfcx(absolute(t), short) * 0.5
    left = log(tail) - square * 0.5
    area = select(x <= 1.0, erfc(t) * 0.5, exp(square * -0.5) * (1.0 - low * 0.5) * tail)
    return select(x < -1.0, left, log1p(-area))


def _in_inverse(r: Expr, least: float, most: float, coefficients: tuple[float, ...], short: bool) -> Expr:
    """A fit in 1 / r, which is -1 at `most` and 1 at `least`."""
    low, high = 1 / most, 1 / least
    t = (1.0 / r - (low + high) / 2) * (2 / (high - low))
    return chebyshev(select(absolute(t) <= 1, t, 0.0), coefficients, short)


def _ndtri(p: Expr, short: bool) -> Expr:
    q = p - 0.5
    is_central = absolute(q) <= 0.425
    t = q * q * (2 / 0.425**2) - 1.0
    central = q * chebyshev(select(is_central, t, 0.0), CENTRAL, short)
    r = sqrt(-log(select(q < 0, p, 1.0 - p)))
    lower = r * select(
        r <= 5.0, _in_inverse(r, 1.6, 5.0, TAIL, short), _in_inverse(r, 5.0, 27.5, FAR_TAIL, short)
    )
    lower = select(eq(r, math.inf), -math.inf, lower)
    return select(is_central, central, select(q < 0, lower, -lower))


erfcx, log_ndtr, ndtri = in_float64(_erfcx), in_float64(_log_ndtr), in_float64(_ndtri)
