"""Complex numbers as pairs of expressions.

Products and quotients are PyTorch's. Infinities and NaNs come out as C99 Annex G says where PyTorch follows it.
Source of the inverse functions and of tanh: Kahan, "Branch cuts for complex elementary functions" (1987).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ..core.dtype import float32, float64
from . import approx
from .approx.floats import clamp
from .expr import Expr, as_expr, cast, const, copysign, fma, select
from .expr import absolute as _size
from .expr import eq as _eq
from .expr import isnan as _isnan
from .expr import ne as _ne
from .expr import sqrt as _sqrt
from .wide import Double, Wide, two_sum, widen

_INF = math.inf


class Complex:
    """real + i imag. Real expressions and Python numbers take part in arithmetic as complex numbers."""

    __slots__ = ("real", "imag")

    def __init__(self, real: Expr, imag: Expr):
        self.real, self.imag = real, imag

    def _lift(self, other: Any) -> Complex:
        if isinstance(other, Complex):
            return other
        if isinstance(other, Expr):
            return Complex(other, const(0.0, other.dtype))
        return Complex(as_expr(float(other.real), self.real), as_expr(float(other.imag), self.real))

    def __add__(self, other: Any) -> Complex:
        other = self._lift(other)
        return Complex(self.real + other.real, self.imag + other.imag)

    def __sub__(self, other: Any) -> Complex:
        other = self._lift(other)
        return Complex(self.real - other.real, self.imag - other.imag)

    def __mul__(self, other: Any) -> Complex:
        a, b = self, self._lift(other)
        return Complex(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)

    def __truediv__(self, other: Any) -> Complex:
        """Smith's method: divide through by the larger part of the divisor."""
        other = self._lift(other)
        swap = ~(_size(other.imag) <= _size(other.real))  # with a NaN too, which then spoils both parts
        large, small = select(swap, other.imag, other.real), select(swap, other.real, other.imag)
        first, second = select(swap, self.imag, self.real), select(swap, self.real, self.imag)
        ratio = small / large
        scale = 1.0 / (large + small * ratio)
        real, imag = (first + second * ratio) * scale, (second - first * ratio) * scale
        zero = _eq(large, 0)
        return Complex(
            select(zero, self.real / _size(other.real), real),
            select(zero, self.imag / _size(other.imag), select(swap, -imag, imag)),
        )

    def __neg__(self) -> Complex:
        return Complex(-self.real, -self.imag)

    def __radd__(self, other: Any) -> Complex:
        return self._lift(other) + self

    def __rsub__(self, other: Any) -> Complex:
        return self._lift(other) - self

    def __rmul__(self, other: Any) -> Complex:
        return self._lift(other) * self

    def __rtruediv__(self, other: Any) -> Complex:
        return self._lift(other) / self

    def times_i(self) -> Complex:
        return Complex(-self.imag, self.real)

    def over_i(self) -> Complex:
        return Complex(self.imag, -self.real)

    def scaled(self, factor: float) -> Complex:
        return Complex(self.real * factor, self.imag * factor)


def _pair(a: Any, b: Any) -> tuple[Complex, Complex]:
    like = a if isinstance(a, Complex) else b
    return like._lift(a), like._lift(b)


def where(condition: Expr, a: Any, b: Any) -> Complex:
    a, b = _pair(a, b)
    return Complex(select(condition, a.real, b.real), select(condition, a.imag, b.imag))


def eq(a: Any, b: Any) -> Expr:
    a, b = _pair(a, b)
    return _eq(a.real, b.real) & _eq(a.imag, b.imag)


def ne(a: Any, b: Any) -> Expr:
    a, b = _pair(a, b)
    return _ne(a.real, b.real) | _ne(a.imag, b.imag)


def isnan(z: Complex) -> Expr:
    return _isnan(z.real) | _isnan(z.imag)


def isinf(z: Complex) -> Expr:
    return _eq(_size(z.real), _INF) | _eq(_size(z.imag), _INF)


def isfinite(z: Complex) -> Expr:
    return (_size(z.real) < _INF) & (_size(z.imag) < _INF)


def absolute(z: Complex) -> Expr:
    return approx.hypot(z.real, z.imag)


def angle(z: Complex) -> Expr:
    return approx.atan2(z.imag, z.real)


def sgn(z: Complex) -> Complex:
    """Compute z / |z|, or 0"""
    size = absolute(z)
    zero = _eq(size, 0)
    return Complex(select(zero, 0.0, z.real / size), select(zero, 0.0, z.imag / size))


def square(z: Complex) -> Complex:
    return z * z


def reciprocal(z: Complex) -> Complex:
    return 1.0 / z


def rsqrt(z: Complex) -> Complex:
    return reciprocal(sqrt(z))


def sigmoid(z: Complex) -> Complex:
    return 1.0 / (exp(-z) + 1.0)


# ------------------------------------------------------------------------------------------ exp and log


def exp(z: Complex) -> Complex:
    return _polar(z.real, z.imag)


def _polar(x: Expr, y: Expr) -> Complex:
    """exp(x) (cos(y) + i sin(y)); exp(x) in two factors, since it may overflow where the result does not."""
    half = approx.exp(x * 0.5)
    real, imag = half * approx.cos(y) * half, half * approx.sin(y) * half
    turning = _size(y) < _INF
    endless = _eq(x, _INF) & ~turning
    vanishing = _eq(x, -_INF) & ~turning
    return Complex(
        select(endless, as_expr(_INF, x), select(vanishing, 0.0, real)),
        select(_eq(y, 0), y, select(vanishing, 0.0, imag)),
    )


def exp2(z: Complex) -> Complex:
    return exp(z.scaled(math.log(2)))


def expm1(z: Complex) -> Complex:
    """Compute expm1(x) cos(y) - 2 sin(y/2)**2 + i exp(x) sin(y)"""
    half = approx.sin(z.imag * 0.5)
    real = fma(approx.expm1(z.real), approx.cos(z.imag), half * half * -2.0)
    whole = exp(z)
    return Complex(select(_size(whole.real) < _INF, real, whole.real), whole.imag)


def _log_of_size(z: Complex, log: Callable[[Expr], Expr] = approx.log, base: float = math.e) -> Expr:
    """log(|z|), half the logarithm of |z|**2 in twice the precision: what log(1 + tiny) is made of is in the low part."""
    x, y, dtype = z.real, z.imag, z.real.dtype
    factor, exponent = _into_range(x, y)
    a, b = widen(x * factor), widen(y * factor)
    total = _exact_sum(a * a, b * b)
    # Away from 1 the low part is below the last bit of the result.
    low = select(_size(total.high - 1.0) < 0.5, total.low, 0.0)
    if dtype is float64:
        size = fma(log(total.high) + low / math.log(base), 0.5, exponent / math.log2(base))
    else:
        size = cast((approx.log_short(total.high) + low) * (0.5 / math.log(base)), float32)
    return select(isinf(z), as_expr(_INF, x), size)


def _into_range(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """A power of two by which the squares of x and y do not leave the range, and log2 of its inverse.

    The squares of float32 are in the range of float64.
    """
    one, zero = as_expr(1.0, x), as_expr(0.0, x)
    if x.dtype is float32:
        return one, zero
    larger = approx.larger(x, y)
    tiny, huge = larger < 2.0**-400, const(2.0**400, float64) < larger
    factor = select(tiny, as_expr(2.0**600, x), select(huge, as_expr(2.0**-600, x), one))
    return factor, select(tiny, as_expr(-600.0, x), select(huge, as_expr(600.0, x), zero))


def _exact_sum(a: Wide, b: Wide) -> Double:
    """The sum of two squares; those of float32 are exact in float64."""
    if isinstance(a, Double) or isinstance(b, Double):
        return a + b
    return Double(*two_sum(a, b))


def log(z: Complex) -> Complex:
    return Complex(_log_of_size(z), angle(z))


def log2(z: Complex) -> Complex:
    return Complex(_log_of_size(z, approx.log2, 2.0), angle(z) / math.log(2))


def log10(z: Complex) -> Complex:
    return Complex(_log_of_size(z, approx.log10, 10.0), angle(z) / math.log(10))


def log1p(z: Complex) -> Complex:
    """Near 0 the modulus comes from |1 + z|**2 - 1 = x (x + 2) + y**2."""
    shifted = Complex(z.real + 1.0, z.imag)
    near = approx.log1p(fma(z.real, z.real + 2.0, z.imag * z.imag)) * 0.5
    small = (_size(z.real) < 0.5) & (_size(z.imag) < 0.5)
    real = select(small, near, _log_of_size(shifted))
    return Complex(select(isnan(z), math.nan, real), angle(shifted))


def pow(z: Any, exponent: Any) -> Complex:
    """exp(exponent log(z)): no special cases, so that 0 to the power 0 is NaN."""
    z, exponent = _pair(z, exponent)
    dtype = z.real.dtype
    if dtype is float32:  # the logarithm's error grows with the exponent
        z, exponent = _cast(z, float64), _cast(exponent, float64)
    return _cast(exp(exponent * log(z)), dtype)


def _cast(z: Complex, dtype) -> Complex:
    return Complex(cast(z.real, dtype), cast(z.imag, dtype))


# Below the inverse of this, sqrt multiplies by it, because halves of denormal numbers lose bits.
_SQRT_SCALE = {float32: 2.0**64, float64: 2.0**512}


def sqrt(z: Complex) -> Complex:
    """The half plane of the result is the right one. Powers of 4 keep what is squared and halved inside the range."""
    scale = _SQRT_SCALE[z.real.dtype]
    size = _size(z.real) + _size(z.imag)
    large, small = const(2.0**100, z.real.dtype) < size, size < 1.0 / scale
    shrink = select(large, as_expr(0.0625, z.real), select(small, as_expr(scale, z.real), 1.0))
    x, y = z.real * shrink, z.imag * shrink
    root = _sqrt((_size(x) + approx.hypot(x, y)) * 0.5)
    other = select(_eq(root, 0), _size(y), _size(y) / (root + root))
    left = x < 0
    grow = select(large, as_expr(4.0, z.real), select(small, as_expr(scale**-0.5, z.real), 1.0))
    real = select(left, other, root) * grow
    imag = copysign(select(left, root, other) * grow, y)
    endless = _eq(_size(y), _INF)
    return Complex(select(endless, as_expr(_INF, x), real), select(endless, y, imag))


# ------------------------------------------------------------------------- circular and hyperbolic functions


def sinh(z: Complex) -> Complex:
    x, y = z.real, z.imag
    sine, cosine = approx.sin(y), approx.cos(y)
    real = select(_eq(x, 0), x, _grown(x, approx.sinh, cosine))
    imag = select(_eq(y, 0), y, _grown(x, approx.cosh, sine))
    endless = _eq(_size(x), _INF) & ~(_size(y) < _INF)
    return Complex(select(endless, _size(x), real), imag)


def cosh(z: Complex) -> Complex:
    x, y = z.real, z.imag
    sine, cosine = approx.sin(y), approx.cos(y)
    real = _grown(x, approx.cosh, cosine)
    zero = copysign(const(0.0, x.dtype), x) * copysign(const(1.0, y.dtype), y)
    imag = select(_eq(x, 0) | _eq(y, 0), zero, _grown(x, approx.sinh, sine))
    endless = _eq(_size(x), _INF) & ~(_size(y) < _INF)
    return Complex(select(endless, as_expr(_INF, x), real), imag)


def _grown(x: Expr, function: Any, factor: Expr) -> Expr:
    """function(x) * factor for sinh and cosh, where the first may overflow and the product not."""
    limit = 80.0 if x.dtype is float32 else 700.0
    beyond = clamp(_size(x) - limit, 0.0, limit)
    inside = clamp(x, -limit, limit)
    grown = function(inside) * factor * approx.exp(beyond)
    return select(_eq(_size(x), _INF), function(x) * factor, grown)


def tanh(z: Complex) -> Complex:
    x, y = z.real, z.imag
    slope = approx.tan(y)
    growth = approx.sinh(clamp(x, -40.0, 40.0))
    beta, rho = fma(slope, slope, 1.0), _sqrt(fma(growth, growth, 1.0))
    below = fma(beta * growth, growth, 1.0)
    # tan(y) of the float nearest to pi/2 squared overflows in no type; past 20 the real part is 1 exactly.
    far = const(20.0, x.dtype) < _size(x)
    fading = approx.exp(_size(x) * -2.0)
    wave = approx.sin(y) * approx.cos(y) * 4.0 * fading
    endless, turning = _eq(_size(x), _INF), _size(y) < _INF
    limit = select(endless | turning, copysign(const(1.0, x.dtype), x), math.nan)
    real = select(far, limit, beta * rho * growth / below)
    imag = select(far, select(endless & ~turning, copysign(const(0.0, y.dtype), y), wave), slope / below)
    return Complex(select(_eq(x, 0), x, real), select(_eq(y, 0), y, imag))


def sin(z: Complex) -> Complex:
    return sinh(z.over_i()).times_i()


def cos(z: Complex) -> Complex:
    return cosh(z.times_i())


def tan(z: Complex) -> Complex:
    return tanh(z.times_i()).over_i()


def _roots_around_1(z: Complex) -> tuple[Complex, Complex]:
    """sqrt(1 + z) and sqrt(1 - z), whose imaginary parts keep the sign of a zero: it picks the side of the cut."""
    return sqrt(Complex(z.real + 1.0, z.imag)), sqrt(Complex(1.0 - z.real, -z.imag))


def asin(z: Complex) -> Complex:
    plus, minus = _roots_around_1(z)
    real = approx.atan2(z.real, plus.real * minus.real - plus.imag * minus.imag)
    imag = _asinh_of_product(z, minus, plus)
    return _endless_inverse(z, Complex(select(_eq(z.real, 0), z.real, real), copysign(imag, z.imag)))


def _asinh_of_product(z: Complex, a: Complex, b: Complex) -> Expr:
    """asinh(Im(conj(a) * b)) for |a * b| about |z|; a quarter of it, where asinh is a logarithm, does not overflow."""
    large = const(2.0**100, z.real.dtype) < _size(z.real) + _size(z.imag)
    quarter = select(large, as_expr(0.25, z.real), 1.0)
    product = (a.real * quarter) * b.imag - (a.imag * quarter) * b.real
    return approx.asinh(product) + copysign(select(large, as_expr(math.log(4), z.real), 0.0), product)


def _endless_inverse(z: Complex, inverse: Complex) -> Complex:
    """asin where a part of z is infinite."""
    infinite = isinf(z)
    real = approx.atan2(z.real, _size(z.imag))
    imag = copysign(const(_INF, z.imag.dtype), z.imag)
    return Complex(select(infinite, real, inverse.real), select(infinite, imag, inverse.imag))


def acos(z: Complex) -> Complex:
    plus, minus = _roots_around_1(z)
    real = select(_eq(z.real, 0), as_expr(math.pi / 2, z.real), approx.atan2(minus.real, plus.real) * 2.0)
    imag = _asinh_of_product(z, plus, minus)
    infinite = isinf(z)
    return Complex(
        select(infinite, approx.atan2(_size(z.imag), z.real), real),
        select(infinite, copysign(const(_INF, z.imag.dtype), -z.imag), imag),
    )


def acosh(z: Complex) -> Complex:
    """Compute acos(z) turned into the right half plane."""
    turned = acos(z)
    left = _is_negative(turned.imag) | _isnan(turned.imag)
    return Complex(_size(turned.imag), select(left, turned.real, -turned.real))


def _is_negative(x: Expr) -> Expr:
    return copysign(const(1.0, x.dtype), x) < 0


def asinh(z: Complex) -> Complex:
    return asin(z.times_i()).over_i()


class _AtanhRange(NamedTuple):
    """Where the formula of atanh leaves the range of a type."""

    large: float  # from here on 1 / z is the result, but for pi / 2
    shrink: float  # times this, numbers beyond `large` can be squared
    close: float  # below, the square of y is lost beside 1 - x = 0
    exponent: int  # 2 / close is 2 ** exponent times a number in the range


_ATANH_RANGE = {
    float32: _AtanhRange(2.0**60, 2.0**-66, 2.0**-60, 30),
    float64: _AtanhRange(2.0**500, 2.0**-516, 2.0**-500, 200),
}


def atanh(z: Complex) -> Complex:
    x, y = _size(z.real), z.imag
    limits = _ATANH_RANGE[x.dtype]
    less, more = 1.0 - x, x + 1.0
    large = const(limits.large, x.dtype) < x + _size(y)
    close = _eq(less, 0) & (_size(y) < limits.close)  # log(2 / |y|) / 2
    width, height = select(large, x * limits.shrink, less), select(large, y * limits.shrink, y)
    above = select(close, as_expr(2.0 ** (1 - limits.exponent), x), select(large, width, x * 4.0))
    ratio = above / select(close, _size(y), fma(width, width, height * height))
    logarithm = approx.log1p(ratio) * 0.25
    grown = fma(logarithm, 2.0, limits.exponent * math.log(2) / 2)
    real = select(close, grown, select(large, ratio * limits.shrink, logarithm))
    run = select(large, as_expr(-1.0, x), fma(less, more, -(y * y)))
    imag = approx.atan2(select(large, y * 0.0, y + y), run) * 0.5
    infinite = isinf(z)
    imag = select(infinite & ~_isnan(y), copysign(const(math.pi / 2, y.dtype), y), imag)
    return Complex(copysign(select(infinite | _eq(x, 0), 0.0, real), z.real), imag)


def atan(z: Complex) -> Complex:
    return atanh(z.times_i()).over_i()
