"""The statements that random programs are made of, and how their arguments are drawn.

A statement is a row of Python source. The single-letter names in a row are its parameters, and the letter decides
what is drawn for it:

    a  any tensor of the program           L  the library itself
    b  a tensor that broadcasts with a     f  a floating point tensor
    w  a tensor that broadcasts to a       r  a tensor with the shape of a
    m  a mask with the shape of a          n  integers that index dimension d of a
    g  integers of the shape of a that index dimension d of a
    d  a dimension of a (e another one)    j  a small integer (h another one)
    s  a shape with as many elements as a  u  a shape that a expands to
    z  any shape                           i  an index
    x  a number (q another one)            y  a dtype
    k  a bool                              p  a permutation of the dimensions of a
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import torch

import weft

LIBRARIES = (torch, weft)


# ---- What an argument can be, besides plain Python values ------------------------------------------------------------


class Ref:
    """A tensor of the program, by its number."""

    __slots__ = ("number",)

    def __init__(self, number: int):
        self.number = number


class Named:
    """A dtype of both libraries."""

    __slots__ = ("name", "both")

    def __init__(self, name: str):
        self.name = name
        self.both = (getattr(torch, name), getattr(weft, name))


class Literal:
    """A tensor that is made where it is used: clones of the same values in both libraries."""

    __slots__ = ("shape", "dtype", "both")

    def __init__(self, values: torch.Tensor):
        self.shape = tuple(values.shape)
        self.dtype = str(values.dtype).removeprefix("torch.")
        mine = weft.zeros(self.shape, dtype=getattr(weft, self.dtype))
        if mine.numel():
            flat = values.contiguous().reshape(-1).view(torch.uint8).numpy()
            mine.view(-1).view(weft.uint8).copy_(weft.from_numpy(flat))
        self.both = (values, mine)

    def source(self) -> str:
        values = re.sub(r"\b(nan|inf)\b", r"float('\1')", repr(self.both[0].tolist()))
        made = f"L.tensor({values}, dtype=L.{self.dtype})"
        return made if 0 not in self.shape else f"L.zeros({list(self.shape)}, dtype=L.{self.dtype})"


def resolved(argument: Any, library: int, tensors: dict[int, Any]) -> Any:
    """What a library is given for an argument. Raises: KeyError if a statement that made a tensor failed."""
    kind = type(argument)
    if kind is Ref:
        return tensors[argument.number][library]
    if kind is Literal:
        return argument.both[library].clone()
    if kind is Named:
        return argument.both[library]
    if kind is tuple:
        return tuple([resolved(each, library, tensors) for each in argument])
    if kind is list:
        return [resolved(each, library, tensors) for each in argument]
    return argument


def refs(argument: Any) -> set[int]:
    """The tensors of the program that an argument mentions."""
    if type(argument) is Ref:
        return {argument.number}
    if isinstance(argument, (tuple, list)):
        return set().union(*map(refs, argument))
    return set()


def written(argument: Any, in_index: bool = False) -> str:
    """An argument as source."""
    if type(argument) is Ref:
        return f"t{argument.number}"
    if type(argument) is Named:
        return f"L.{argument.name}"
    if type(argument) is Literal:
        return argument.source()
    if argument is Ellipsis:
        return "..."
    if isinstance(argument, slice):
        parts = ["" if each is None else repr(each) for each in (argument.start, argument.stop)]
        text = ":".join(parts if argument.step is None else [*parts, repr(argument.step)])
        return text if in_index else f"slice({argument.start}, {argument.stop}, {argument.step})"
    if isinstance(argument, (tuple, list)):
        inner = ", ".join(written(each, in_index) for each in argument)
        if in_index and isinstance(argument, tuple) and argument:
            return inner + ("," if len(argument) == 1 else "")
        return f"[{inner}]" if isinstance(argument, list) else f"({inner}{',' if len(argument) == 1 else ''})"
    if isinstance(argument, float) and not math.isfinite(argument):
        return f"float('{argument}')"
    return repr(argument)


# ---- Pools -----------------------------------------------------------------------------------------------------------

# Few shapes and dtypes, so that plans and kernels are found again.
SHAPES = [
    (),
    (1,),
    (3,),
    (4,),
    (2, 3),
    (3, 2),
    (3, 3),
    (1, 3),
    (3, 1),
    (0,),
    (2, 0),
    (2, 1, 3),
    (2, 3, 2),
    (1, 1),
    (6,),
]
_USUAL = [(3,), (2, 3), (3, 2), (3, 3), (2, 1, 3), ()]
_DTYPES = "float32 float32 float32 float64 float64 int64 int64 bool int32 uint8 bfloat16 complex64".split()
_ALL_DTYPES = [*_DTYPES, "float16", "int8", "int16", "complex128"]
_FEW_DTYPES = ["float32", "float32", "float32", "int64", "bool", "float64"]
DTYPES = {name: Named(name) for name in dict.fromkeys(_ALL_DTYPES)}
_NUMBERS = [0, 1, 2, -1, 3, 0.5, -1.5, 2.0, 2, 1, True, False, 0.25, -2]
_ODD_NUMBERS = [math.inf, -math.inf, math.nan, 1e30, 300, -300, 2**40, 1 + 2j, -0.0, 2.5, 1e-3, 100.0]
# Values of tensors: small, and exact in every dtype that holds them.
_PLAIN = np.array([0, 1, 2, -1, 3, 0.5, -1.5, 2, 4, -2, 0.25, 1, 5, -3, 1.5, -0.5])
_ODD = np.array([np.inf, -np.inf, np.nan, 1e30, -0.0, 100.0, 1e-30, 200.0])

_literals: dict[tuple, Literal] = {}


def literal(rng: Random, shape: tuple[int, ...], name: str) -> Literal:
    """One of five tensors of a shape and dtype; the last has special values."""
    variant = rng.randrange(4) if rng.random() < 0.94 else 4
    key = shape, name, variant
    found = _literals.get(key)
    if found is None:
        found = _literals[key] = Literal(_values(shape, name, variant))
    return found


def _values(shape: tuple[int, ...], dtype: str, variant: int) -> torch.Tensor:
    random = np.random.default_rng([variant, *map(ord, dtype), *shape])
    pool = np.concatenate([_PLAIN, _ODD]) if variant == 4 else _PLAIN
    wanted = DTYPES[dtype].both[0]
    values = random.choice(pool, shape)
    if wanted.is_complex:
        values = values + 1j * random.choice(pool, shape)
    elif not wanted.is_floating_point:
        values = random.integers(0 if dtype in ("uint8", "bool") else -3, 2 if dtype == "bool" else 6, shape)
        if variant == 4 and dtype != "bool":
            values = np.where(random.random(shape) < 0.3, torch.iinfo(wanted).max, values)
    # NumPy's strides of an array without elements are 0, PyTorch's are those of any other tensor.
    return torch.empty(shape, dtype=wanted).copy_(torch.from_numpy(np.array(values)))


def indices(rng: Random, shape: tuple[int, ...], size: int) -> Literal:
    """Integers that index a dimension of a size; rarely one that is out of range."""
    variant = rng.randrange(3) if rng.random() < 0.97 else 3
    dtype = "int64" if rng.random() < 0.9 else "int32"
    key = shape, "indices", size, dtype, variant
    found = _literals.get(key)
    if found is None:
        random = np.random.default_rng([variant, size, *shape])
        low, high = {0: (0, size), 1: (-size, size)}.get(variant, (0, size))
        values = random.integers(min(low, high - 1), max(high, low + 1), shape)
        if variant == 3:
            values = np.where(random.random(shape) < 0.5, size, values)
        found = _literals[key] = Literal(torch.from_numpy(np.array(values)).to(DTYPES[dtype].both[0]))
    return found


def dtype(rng: Random, narrow: bool) -> str:
    """`narrow`: one of few, so that few kernels are compiled."""
    if narrow:
        return rng.choice(_FEW_DTYPES)
    return rng.choice(_DTYPES) if rng.random() < 0.9 else rng.choice(_ALL_DTYPES)


# ---- Drawing ---------------------------------------------------------------------------------------------------------


class Draw:
    """Draws the arguments of one statement, given the tensors that the program has so far."""

    def __init__(self, rng: Random, tensors: dict[int, tuple], narrow: bool):
        self.rng = rng
        self.narrow = narrow
        self.tensors = tensors
        self.numbers = list(tensors)
        self.shape: tuple[int, ...] = ()  # of the first tensor that is drawn
        self.dim: int | None = None  # the dimension that was drawn

    def __call__(self, letters: str) -> list:
        return [getattr(self, letter)() for letter in letters]

    def _any(self) -> int:
        if self.rng.random() < 0.4:
            return self.numbers[-1]
        return self.rng.choice(self.numbers)

    def _suitable(self, accepts: Callable[[torch.Tensor], bool]) -> Ref | None:
        found = [number for number in self.numbers if accepts(self.tensors[number][0])]
        return Ref(self.rng.choice(found)) if found else None

    def _dtype(self) -> str:
        return dtype(self.rng, self.narrow)

    def a(self) -> Ref:
        number = self._any()
        self.shape = tuple(self.tensors[number][0].shape)
        return Ref(number)

    def f(self) -> Ref:
        found = self._suitable(torch.is_floating_point) if self.rng.random() < 0.9 else None
        found = found or Ref(self._any())
        self.shape = tuple(self.tensors[found.number][0].shape)
        return found

    def b(self) -> Any:
        chance = self.rng.random()
        if chance < 0.08:
            return Ref(self._any())
        if chance < 0.75:
            found = self._suitable(lambda t: broadcasts(tuple(t.shape), self.shape))
            if found is not None:
                return found
        return literal(self.rng, self._smaller(), self._dtype())

    c = b

    def w(self) -> Any:
        chance = self.rng.random()
        if chance < 0.06:
            return Ref(self._any())
        if chance < 0.6:
            found = self._suitable(lambda t: broadcast_to(tuple(t.shape), self.shape))
            if found is not None:
                return found
        return literal(self.rng, self._smaller(), self._dtype())

    def v(self) -> Any:
        return self.w()

    def r(self) -> Any:
        if self.rng.random() < 0.6:
            found = self._suitable(lambda t: tuple(t.shape) == self.shape)
            if found is not None:
                return found
        return literal(self.rng, self.shape, self._dtype())

    def m(self) -> Any:
        if self.rng.random() < 0.4:
            found = self._suitable(
                lambda t: t.dtype is torch.bool and broadcast_to(tuple(t.shape), self.shape)
            )
            if found is not None:
                return found
        return literal(self.rng, self.shape, "bool" if self.rng.random() < 0.97 else self._dtype())

    def _smaller(self) -> tuple[int, ...]:
        """A shape that broadcasts to that of `a`."""
        chance = self.rng.random()
        if chance < 0.5 or not self.shape:
            return self.shape
        if chance < 0.65:
            return ()
        if chance < 0.85:
            return self.shape[1:]
        return (*self.shape[:-1], 1)

    def _size(self) -> int:
        return (
            self.shape[self.dim or 0]
            if self.shape and -len(self.shape) <= (self.dim or 0) < len(self.shape)
            else 1
        )

    def n(self) -> Literal:
        return indices(self.rng, (self.rng.choice((0, 1, 2, 2, 3)),), self._size())

    def g(self) -> Literal:
        return indices(self.rng, self.shape, self._size())

    def d(self) -> int:
        ndim = len(self.shape)
        if self.rng.random() < 0.02:
            found = self.rng.choice((ndim, -ndim - 1))
        else:
            found = self.rng.randrange(-ndim, ndim) if ndim else self.rng.choice((0, -1))
        self.dim = found
        return found

    def e(self) -> int:
        """Another dimension than `d`; rarely the same."""
        ndim = len(self.shape)
        if ndim < 2 or self.rng.random() < 0.05:
            return self.dim or 0
        return self.rng.choice([dim for dim in range(ndim) if dim != (self.dim or 0) % ndim])

    def j(self) -> int:
        return self.rng.choice((0, 0, 1, 1, 1, 2, 2, 3, -1))

    h = j

    def k(self) -> bool:
        return self.rng.random() < 0.5

    def x(self) -> Any:
        return self.rng.choice(_NUMBERS if self.rng.random() < 0.9 else _ODD_NUMBERS)

    q = x

    def y(self) -> Named:
        return DTYPES[self._dtype()]

    def p(self) -> list[int]:
        return self.rng.sample(range(len(self.shape)), len(self.shape))

    def s(self) -> tuple[int, ...]:
        count = math.prod(self.shape)
        same = [shape for shape in SHAPES if math.prod(shape) == count]
        chance = self.rng.random()
        if chance < 0.25 or not same:
            return (-1,)
        if chance < 0.3:
            return self.rng.choice(SHAPES)
        found = self.rng.choice(same)
        return (-1, *found[1:]) if found and chance < 0.5 else found

    def u(self) -> tuple[int, ...]:
        if self.rng.random() < 0.05:
            return self.rng.choice(SHAPES)
        found = [self.rng.choice((1, 2, 3)) if size == 1 else size for size in self.shape]
        found = [-1 if self.rng.random() < 0.1 else size for size in found]
        return tuple([self.rng.choice((1, 2)), *found] if self.rng.random() < 0.3 else found)

    def z(self) -> tuple[int, ...]:
        return self.rng.choice(_USUAL if self.rng.random() < 0.7 else SHAPES)

    def i(self) -> Any:
        found = [self._index(size) for size in self.shape]
        chance = self.rng.random()
        if chance < 0.12:
            return self.m()
        if chance < 0.2:
            found.insert(self.rng.randrange(len(found) + 1), None)
        elif chance < 0.3 and found:
            found[self.rng.randrange(len(found))] = Ellipsis
        elif chance < 0.33:
            found.append(0)
        elif chance < 0.36:
            found.insert(0, self.rng.random() < 0.7)
        keep = self.rng.randrange(len(found) + 1) if self.rng.random() < 0.5 else len(found)
        found = found[:keep]
        return found[0] if len(found) == 1 and self.rng.random() < 0.8 else tuple(found)

    def _index(self, size: int) -> Any:
        chance = self.rng.random()
        if chance < 0.25:
            return self.rng.randrange(-size, size) if size and self.rng.random() < 0.97 else 0
        if chance < 0.75:
            return slice(*self.rng.choice(_SLICES))
        if chance < 0.92:
            return indices(self.rng, self.rng.choice(((2,), (2,), (1,), (), (0,), (3, 1))), size)
        return [self.rng.randrange(size) for _ in range(2)] if size else []


_SLICES = [
    (None, None),
    (None, None),
    (1, None),
    (None, -1),
    (None, None, 2),
    (1, 2),
    (0, 0),
    (None, 1),
    (-2, None),
]


def broadcasts(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return all(p == q or p == 1 or q == 1 for p, q in zip(reversed(one), reversed(other)))


def broadcast_to(one: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    return len(one) <= len(whole) and all(p in (1, q) for p, q in zip(reversed(one), reversed(whole)))


# ---- Rows ------------------------------------------------------------------------------------------------------------

CREATION = """
L.zeros(z, dtype=y) ; L.ones(z, dtype=y) ; L.full(z, x) ; L.full(z, x, dtype=y) ; L.zeros_like(a) ; L.ones_like(a, dtype=y)
a.new_zeros(z) ; a.new_ones(z, dtype=y) ; a.new_full(z, x) ; L.full_like(a, x) ; L.arange(j) ; L.arange(x, dtype=y)
L.tensor(x) ; L.tensor([x, q]) ; L.tensor([[x], [q]], dtype=y) ; L.eye(j) ; L.linspace(0, 1, j) ; a.new_tensor(x) ; L.scalar_tensor(x)
L.empty(z, dtype=y).fill_(x) ; L.empty_like(a).zero_() ; L.as_tensor(x, dtype=y) ; L.tensor(x, dtype=y)
"""
VIEWS = """
a.t() ; a.T ; a.mT ; a.transpose(d, e) ; a.permute(p) ; a.movedim(d, e) ; a.view(s) ; a.reshape(s) ; a.flatten() ; a.ravel()
a.flatten(d, e) ; a.unsqueeze(d) ; a.squeeze() ; a.squeeze(d) ; a.expand(u) ; a.expand_as(b) ; L.broadcast_to(a, u)
a.select(d, j) ; a.narrow(d, j, h) ; a.diagonal() ; a.diagonal(j) ; a.unfold(d, h, 1) ; a.unbind() ; a.unbind(d)
a.split(2) ; a.split(j, d) ; a.chunk(2, d) ; a.tensor_split(2, d) ; a.detach() ; a.view(y) ; a.real ; a.imag ; a.conj()
a.contiguous() ; a.clone() ; a.view_as(r) ; L.atleast_2d(a) ; a.unflatten(d, (-1, 1)) ; L.view_as_real(a) ; a[i] ; a[i] ; a[i]
a.resolve_conj() ; a.as_strided((2,), (1,)) ; a.swapaxes(d, e) ; a.hsplit(2) ; a.view(-1) ; a[...] ; a[0] ; a[:, None] ; a[-1:]
a.data ; a.mH ; a.adjoint() ; L.positive(a) ; a.narrow_copy(d, 0, 1) ; a.split([1, j], d) ; a.index_select(d, n) ; a.diag_embed()
a.clone(memory_format=L.contiguous_format) ; a.diff() ; a.squeeze((d, e)) ; a.to(y, copy=True) ; a.flip(d)
"""
CASTS = """
a.to(y) ; a.to(y) ; a.to(b) ; a.float() ; a.double() ; a.long() ; a.int() ; a.bool() ; a.type_as(b) ; a.bfloat16() ; a.half()
a.byte() ; a.cfloat() ; a.type(y)
"""
UNARY = """
-a ; abs(a) ; a.sqrt() ; a.exp() ; a.sin() ; a.sigmoid() ; a.relu() ; a.floor() ; a.sign() ; a.isnan() ; a.isfinite() ; ~a
a.logical_not() ; a.square() ; a.reciprocal() ; a.tanh() ; a.round() ; a.trunc() ; a.nan_to_num() ; a.sgn() ; a.log() ; a.rsqrt()
a.frac() ; a.ceil() ; a.neg() ; a.isinf() ; a.signbit() ; a.angle() ; a.log1p() ; a.expm1() ; a.cos() ; a.erf() ; a.isreal()
L.nn.functional.silu(f) ; L.nn.functional.gelu(f) ; L.nn.functional.relu6(f) ; L.nn.functional.leaky_relu(f)
L.nn.functional.softplus(f) ; L.nn.functional.elu(f) ; L.nn.functional.hardtanh(f) ; L.nn.functional.softsign(f) ; a.exp2() ; a.deg2rad()
L.nn.functional.hardswish(f) ; L.nn.functional.mish(f) ; L.nn.functional.selu(f) ; L.nn.functional.logsigmoid(f)
"""
BINARY = """
a + b ; a + b ; a - b ; a * b ; a * b ; a / b ; a // b ; a % b ; a ** b ; a + x ; a - x ; x - a ; a * x ; x * a ; a / x ; x / a
a // x ; x // a ; a % x ; a ** x ; x ** a ; a ** 2 ; a < b ; a <= b ; a > b ; a >= b ; a == b ; a != b ; a < x ; a == x ; a >= x ; x != a
L.maximum(a, b) ; L.minimum(a, b) ; L.fmax(a, b) ; a.fmod(b) ; a.remainder(b) ; L.atan2(a, b) ; L.hypot(a, b) ; a & b ; a | b
a ^ b ; a & x ; a << j ; a >> j ; L.logical_and(a, b) ; L.logical_xor(a, b) ; L.add(a, b, alpha=x) ; L.sub(a, b, alpha=x)
L.where(m, a, b) ; L.where(m, a, x) ; L.where(m, x, a) ; L.where(a, b, c) ; a.where(m, b) ; L.lerp(a, b, 0.5) ; L.lerp(a, b, c)
L.addcmul(a, b, c) ; L.addcdiv(a, b, c, value=x) ; a.clamp(x, q) ; a.clamp(min=x) ; a.clamp(max=b) ; a.clamp(b, c) ; L.isclose(a, b)
L.div(a, b, rounding_mode='floor') ; L.div(a, b, rounding_mode='trunc') ; L.div(a, x, rounding_mode='floor') ; L.copysign(a, b)
L.heaviside(a, b) ; L.xlogy(a, b) ; L.ldexp(a, b) ; L.logaddexp(a, b) ; a.float_power(b) ; L.floor_divide(a, b) ; L.rsub(a, b) ; L.gcd(a, b)
L.dist(a, b) ; L.nextafter(a, b) ; L.clamp_min(a, x) ; L.polar(a, b) ; L.complex(a, b) ; L.true_divide(a, x) ; L.pow(x, a)
"""
IN_PLACE = """
a.add_(w) ; a.sub_(w) ; a.mul_(w) ; a.div_(w) ; a.add_(x) ; a.mul_(x) ; a.sub_(w, alpha=x) ; a.copy_(w) ; a.copy_(w) ; a.fill_(x)
a.zero_() ; a.fill_(w) ; a.clamp_(x, q) ; a.clamp_(min=x) ; a.neg_() ; a.abs_() ; a.sqrt_() ; a.relu_() ; a.sigmoid_() ; a.square_()
a.exp_() ; a.floor_() ; a.round_() ; a.masked_fill_(m, x) ; a.masked_fill_(m, w) ; a.index_fill_(d, n, x) ; a.pow_(2) ; a.pow_(w)
a.scatter_(d, g, r) ; a.scatter_(d, g, x) ; a.scatter_add_(d, g, r) ; a.lt_(w) ; a.ge_(x) ; a.eq_(w) ; a.ne_(x) ; a.logical_and_(w)
a.logical_not_() ; a.bitwise_and_(w) ; a.bitwise_or_(x) ; a.lerp_(w, 0.5) ; a.addcmul_(w, v) ; a.cumsum_(d) ; a.tril_() ; a.triu_()
a.remainder_(w) ; a.fmod_(x) ; a.floor_divide_(w) ; a.nan_to_num_() ; a.sign_() ; a.trunc_() ; a.reciprocal_() ; a.tanh_()
a.squeeze_() ; a.unsqueeze_(d) ; a.t_() ; a.transpose_(d, e) ; a.swapaxes_(d, e) ; a.detach_() ; a.requires_grad_() ; a.masked_scatter_(m, b)
a.put_(n, r) ; a.index_put_((n,), w) ; a.index_put_((n,), w, accumulate=True) ; a.fill_diagonal_(x) ; a.diagonal().fill_(x) ; a.view(-1).zero_()
a.select(d, 0).copy_(w) ; a[i].mul_(2) ; a[0].add_(1) ; a.t().add_(w) ; a.real.mul_(2) ; a.squeeze(d).add_(x) ; a.cumprod_(d) ; a.index_add_(d, n, b)
a.scatter_reduce_(d, g, r, 'sum') ; a.scatter_reduce_(d, g, r, 'amax') ; a.true_divide_(x) ; a.addcdiv_(w, v) ; a.conj_physical_()
a.xlogy_(w) ; a.copysign_(x) ; a.maximum(w).neg_() ; a.clip_(max=x) ; a.erf_() ; a.sin_() ; a.log_() ; a.index_copy_(d, n, b) ; a.clamp_min_(w)
"""
WRITES = """
a[i] = x ; a[i] = x ; a[i] = b ; a[i] = w ; a[i] = a ; a[...] = w ; a[m] = x ; a[m] = b ; a[0] = x ; a[:, 0] = x ; a[i] += x ; a[i] *= w
a += w ; a -= x ; a *= w ; a /= x ; a //= x ; a **= 2 ; a &= w ; a |= w ; a %= x ; a[i] = x == q ; a[-1] = w ; a.data[0] = x ; a.T[0] = x
"""
OUT = """
L.add(a, b, out=c) ; L.mul(a, b, out=L.empty(0)) ; L.sum(a, d, out=b) ; L.lt(a, b, out=c) ; L.cat((a, b), out=c) ; L.clamp(a, x, out=b)
L.abs(a, out=b) ; L.matmul(a, b, out=c) ; L.add(a.t(), b.t(), out=L.empty(0)) ; L.where(m, a, b, out=c) ; L.exp(a, out=L.empty(0, dtype=y))
"""
REDUCTIONS = """
a.sum() ; a.sum(d) ; a.sum(d, keepdim=k) ; a.sum((d, e)) ; a.sum(dtype=y) ; a.sum(d, dtype=y) ; a.mean() ; a.mean(d) ; a.mean(d, k, dtype=y)
a.prod() ; a.prod(d, keepdim=k) ; a.prod(dtype=y) ; a.max() ; a.min() ; a.max(d) ; a.min(d, keepdim=k) ; a.amax(d) ; a.amin() ; a.amax((d, e), k)
a.any() ; a.all() ; a.any(d) ; a.all(d, keepdim=k) ; a.argmax() ; a.argmin(d) ; a.argmax(d, k) ; a.std() ; a.var(d) ; a.var(d, correction=0)
a.norm() ; a.norm(x, d) ; L.linalg.vector_norm(a, x) ; L.linalg.norm(a) ; a.logsumexp(d) ; a.softmax(d) ; a.log_softmax(d) ; a.count_nonzero()
a.count_nonzero(d) ; a.nansum() ; a.nansum(d, dtype=y) ; a.nanmean(d) ; a.median() ; a.nanmedian() ; a.cumsum(d) ; a.cumsum(d, dtype=y)
a.cumprod(d) ; a.cumprod(d, dtype=y) ; a.cummax(d) ; a.cummin(d) ; a.logcumsumexp(d) ; L.std_mean(a) ; L.aminmax(a) ; a.softmax(d, dtype=y)
L.linalg.vector_norm(a, x, d, dtype=y) ; a.trace() ; a.sum_to_size(a.shape[1:]) ; L.renorm(a, 2, d, 1.0) ; a.quantile(0.5) ; L.trapezoid(a)
a.sum(d, keepdim=k).expand_as(a) ; a.numel() + a.sum() ; a.max(b) ; a.argsort(stable=True) ; a.mean((d, e)) ; L.var_mean(a, d)
"""
JOINS = """
L.cat((a, r)) ; L.cat((a, b), d) ; L.cat((a, b, c), d) ; L.stack((a, r)) ; L.stack((a, r), d) ; L.hstack((a, b)) ; L.vstack((a, b))
a.repeat(u) ; L.tile(a, (2,)) ; a.roll(1, d) ; a.flip((d,)) ; a.repeat_interleave(2, d) ; a.rot90() ; L.block_diag(a, b) ; L.cat([a, L.zeros(0)])
L.column_stack((a, b)) ; L.dstack((a, b)) ; L.cartesian_prod(a, b) ; L.combinations(a) ; L.meshgrid(a, b, indexing='ij') ; L.broadcast_tensors(a, b)
"""
SELECTIONS = """
a.sort() ; a.sort(d, descending=k) ; a.argsort(dim=d, stable=True) ; a.detach().topk(1, d).values ; a.sort(stable=True).values ; a.unique()
a.unique(return_inverse=True, return_counts=True) ; a.unique(dim=d) ; a.nonzero() ; a.masked_select(m) ; a.gather(d, g) ; a.take(n)
a.take_along_dim(g, d) ; a.diag() ; a.tril() ; a.triu(j) ; L.searchsorted(a, b) ; a.masked_fill(m, x) ; a.masked_fill(m, L.tensor(x))
a.scatter(d, g, r) ; a.scatter_add(d, g, r) ; a.index_add(d, n, b) ; a.index_fill(d, n, x) ; a.index_put((n,), w) ; a.detach().kthvalue(1, d).values
a.clamp(max=99).bincount() ; L.isin(a, b) ; L.bucketize(a, b) ; a.histc(4) ; L.nn.functional.one_hot(a, 6) ; a.select_scatter(w, d, 0) ; a.slice_scatter(b, d, 0, 1)
a.detach().median(d).values ; a.detach().mode(d).values ; a.masked_scatter(m, b) ; a.unique_consecutive() ; L.argwhere(a) ; a.diagonal_scatter(b)
a.scatter_reduce(d, g, r, 'mean') ; a.scatter_reduce(d, g, r, 'prod') ; a.index_reduce(d, n, b, 'amin') ; a.bool().nonzero(as_tuple=True)
"""
PRODUCTS = """
a @ b ; a @ b.mT ; L.matmul(a, b.t()) ; L.mm(a, b) ; L.mv(a, b) ; L.dot(a, b) ; L.outer(a, b) ; L.inner(a, b) ; L.bmm(a[None], b[None])
L.einsum('ij,ij->i', a, r) ; L.nn.functional.linear(a, b) ; L.addmm(a, b, c) ; a.t() @ a ; L.kron(a, b) ; L.cross(a, b) ; L.tensordot(a, b, 1)
L.linalg.multi_dot((a, b, c)) ; L.vdot(a, b) ; L.cdist(a, b) ; a.matmul(a.mT) ; L.baddbmm(a, b[None], c[None]) ; L.addmv(a, b, c)
"""
LAYERS = """
L.nn.functional.layer_norm(f, f.shape[-1:]) ; L.nn.functional.mse_loss(a, r) ; L.nn.functional.cross_entropy(f, n) ; L.nn.functional.pad(a, (1, 1))
L.nn.functional.max_pool1d(f, 2) ; L.nn.functional.normalize(f, dim=d) ; L.nn.functional.l1_loss(a, b) ; L.nn.functional.cosine_similarity(a, b, 0)
L.nn.functional.pad(a, (1, 0), value=x) ; L.nn.functional.avg_pool1d(f, 2) ; L.nn.functional.embedding(n, f) ; L.nn.functional.dropout(f, 0.5, False)
L.nn.functional.smooth_l1_loss(f, b) ; L.nn.functional.soft_margin_loss(f, b) ; L.nn.functional.glu(f) ; L.nn.functional.softmin(f, d) ; L.nn.functional.huber_loss(f, b)
L.nn.functional.binary_cross_entropy_with_logits(f, b) ; L.nn.functional.kl_div(f, b) ; L.nn.functional.threshold(f, 0.5, x) ; L.nn.functional.prelu(f, b)
"""
PYTHON = """
a.item() ; a.tolist() ; len(a) ; bool(a) ; int(a) ; float(a) ; a.is_contiguous() ; L.equal(a, b) ; L.allclose(a, b) ; list(a) ; a.shape
a.stride() ; a.numel() ; a.is_floating_point() ; L.result_type(a, b) == L.float32 ; L.can_cast(a.dtype, y) ; a.nbytes ; x in a ; a.element_size()
L.is_nonzero(a) ; a.dim() ; a.data_ptr() == 0 ; complex(a) ; L.promote_types(a.dtype, y) == L.int64 ; a.is_complex() ; a.requires_grad ; range(3)[a]
"""


class Row:
    """A statement: its source, its parameters, and what runs it."""

    def __init__(self, source: str, category: str):
        self.source = source
        self.category = category
        self.letters = "".join(dict.fromkeys(re.findall(_PARAMETER, source)))
        # A dimension decides what its indices are, and tensors decide about everything else.
        self.letters = "".join(sorted(self.letters, key="afdebwvrcmngsuzpixqyjhk".index))
        self.writes = category in ("in place", "write", "out")
        code = f"def run(L, {', '.join(self.letters)}):\n"
        if category == "write":
            code += f"    {source}\n    return None"
        else:
            code += f"    return {source}"
        scope: dict[str, Any] = {}
        exec(code, scope)
        self.run: Callable = scope["run"]

    def written(self, arguments: list) -> str:
        """The source with the arguments in it."""
        given = dict(zip(self.letters, arguments, strict=True))

        def replace(match: re.Match) -> str:
            argument = given[match[1]]
            inside = match.string[match.start() - 1 : match.end() + 1] == f"[{match[1]}]"
            text = written(argument, in_index=inside)
            return (
                text if inside or type(argument) is not complex and not text.startswith("-") else f"({text})"
            )

        return re.sub(_PARAMETER, replace, self.source)


_PARAMETER = r"(?<![.\w'])([a-z])(?![\w'=])"


def _rows(text: str, category: str) -> list[Row]:
    return [Row(each.strip(), category) for each in re.split(" ; |\n", text) if each.strip()]


_CATEGORIES = [
    ("creation", CREATION, 5), ("view", VIEWS, 22), ("cast", CASTS, 7), ("unary", UNARY, 8), ("binary", BINARY, 16),
    ("in place", IN_PLACE, 18), ("write", WRITES, 10), ("out", OUT, 3), ("reduction", REDUCTIONS, 14), ("join", JOINS, 6),
    ("selection", SELECTIONS, 8), ("product", PRODUCTS, 6), ("layer", LAYERS, 3), ("python", PYTHON, 2),
]  # fmt: skip
ROWS = {category: _rows(text, category) for category, text, _ in _CATEGORIES}
_NAMES = [category for category, _, _ in _CATEGORIES]
_CUMULATIVE = np.cumsum([weight for _, _, weight in _CATEGORIES]).tolist()


def choose(rng: Random) -> Row:
    """A row, by the weight of its category."""
    return rng.choice(ROWS[rng.choices(_NAMES, cum_weights=_CUMULATIVE)[0]])
