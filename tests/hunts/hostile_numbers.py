"""Hostile numbers in linear algebra and Fourier transforms: python tests/hunts/hostile_numbers.py --calls 100000

Each call is drawn from its seed: a function, a dtype, shapes, layouts, and matrices with NaN, infinities, denormals, numbers
at both ends of the range, singular, defective and ill-conditioned ones, pivots and reflectors that no factorization
gives. weft and PyTorch make the call in two child processes, each with a time limit. weft may not crash and may not
hang. It raises PyTorch's exception or gives results of the same shapes and dtypes. Results are finite where PyTorch's
are, and close to them where the matrices are well-conditioned.
"""

from __future__ import annotations

import argparse
import collections
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from children import Child, Died, Silent, serve

# For one call, which takes milliseconds; most of it is for a busy machine. PyTorch hangs in earnest: give up earlier.
SECONDS, THEIR_SECONDS = 60, 5
ADDRESSES = 24 << 30  # bytes of address space of a child: huge sizes fail instead of filling the machine
DTYPES = tuple(map(np.dtype, ("float32", "float64", "complex64", "complex128")))

# ---- Matrices --------------------------------------------------------------------------------------------------------


class Operand(NamedTuple):
    """A tensor of a call: its values, how they lie in memory, and whether the call is differentiated by it."""

    values: np.ndarray
    layout: str = "contiguous"
    grad: bool = False


def _filled(value: float) -> Callable:
    return lambda a, rng: np.full_like(a, value)


def _spiked(*values: complex) -> Callable:
    """A few elements replaced by one of the values."""

    def spoil(a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        with np.errstate(all="ignore"):
            chosen = np.asarray(values, complex)[rng.integers(len(values), size=a.shape)]
            chosen = chosen.astype(a.dtype) if a.dtype.kind == "c" else chosen.real.astype(a.dtype)
        where = rng.random(a.shape) < 1 / max(a.size, 1)
        if a.size:
            where.flat[rng.integers(a.size)] = True
        return np.where(where, chosen, a)

    return spoil


def _scaled(exponent: float) -> Callable:
    """Elements about 10 ** exponent of the largest number of the type, or of the smallest."""

    def scale(a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        limits = np.finfo(a.dtype)
        edge = limits.max if exponent > 0 else limits.smallest_subnormal * 8
        with np.errstate(all="ignore"):
            return (a / max(np.abs(a).max(initial=1), 1) * edge).astype(a.dtype)

    return scale


def _singular(a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if a.ndim >= 2 and a.shape[-2] > 1:
        a[..., -1, :] = a[..., 0, :]
    return a


def _defective(a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if a.ndim < 2:
        return a
    return (np.eye(*a.shape[-2:]) + np.eye(*a.shape[-2:], 1) + a * 0).astype(a.dtype)


def _ill(a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Columns of very different size."""
    span = 30 if a.dtype.char in "fF" else 250
    return (a * 10.0 ** np.linspace(-span, span, a.shape[-1])).astype(a.dtype) if a.ndim else a


def _specials(a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    limits = np.finfo(a.dtype)
    values = np.array([0, -0.0, 1, -1, limits.max, -limits.max, limits.tiny, limits.smallest_subnormal])
    values = np.append(values, (limits.eps, 1 + limits.eps)).astype(a.real.dtype)
    if a.dtype.kind == "c":
        return (rng.choice(values, a.shape) + 1j * rng.choice(values, a.shape)).astype(a.dtype)
    return rng.choice(values, a.shape)


_INF, _NAN = float("inf"), float("nan")
KINDS: dict[str, Callable] = {
    "ordinary": lambda a, rng: a,
    "zeros": _filled(0.0),
    "negative zeros": _filled(-0.0),
    "ones": _filled(1.0),
    "singular": _singular,
    "defective": _defective,
    "ill-conditioned": _ill,
    "largest": _scaled(1),
    "denormal": _scaled(-1),
    "special values": _specials,
    "NaN somewhere": _spiked(_NAN, complex(0, _NAN), complex(_NAN, 1)),
    "inf somewhere": _spiked(_INF, -_INF, complex(0, _INF), complex(_INF, _NAN)),
    "NaN": _filled(_NAN),
    "inf": _filled(_INF),
}
LAYOUTS = ("contiguous", "contiguous", "transposed", "gaps", "conjugated", "expanded")
SIZES = (0, 1, 1, 2, 3, 3, 4, 5, 7)
STACKS = ((), (), (), (), (2,), (1,), (0,), (2, 3), (40,), (1300,))


class Maker:
    """Draws the operands of one call; all have one dtype and one kind of numbers."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.dtype = DTYPES[self.rng.integers(4)]
        self.kind = str(self.rng.choice(list(KINDS))) if self.rng.random() < 0.8 else "ordinary"
        self.stack = STACKS[self.rng.integers(len(STACKS))]
        large = self.rng.random() < 0.05 and not self.stack
        self.sizes = (33, 50, 70) if large else SIZES
        self.grad = self.stack != (1300,) and self.rng.random() < 0.4
        self.spoiled = False

    def pick(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def size(self) -> int:
        return int(self.rng.choice(self.sizes))

    def normal(self, *shape: int) -> np.ndarray:
        a = self.rng.normal(size=shape)
        if self.dtype.kind == "c":
            a = a + 1j * self.rng.normal(size=shape)
        return np.asarray(a).astype(self.dtype)

    def spoil(self, a: np.ndarray) -> np.ndarray:
        return KINDS[self.kind](a, self.rng)

    def operand(self, a: np.ndarray, grad: bool = True) -> Operand:
        layout = self.pick(*LAYOUTS) if a.size < 5000 else "contiguous"
        return Operand(a, layout, grad and self.grad and a.dtype.kind in "fc")

    def matrix(self, m: int, n: int, stack: tuple[int, ...] | None = None) -> Operand:
        shape = (*(self.stack if stack is None else stack), m, n)
        return self.operand(self.spoil(self.normal(*shape)))

    def vector(self, n: int) -> Operand:
        return self.operand(self.spoil(self.normal(*self.stack, n)))

    def square(self) -> Operand:
        n = self.size()
        return self.matrix(n, n)

    def any(self) -> Operand:
        return self.matrix(self.size(), self.size())

    def definite(self) -> Operand:
        """Positive-definite, if the kind of numbers leaves it so."""
        n = self.size()
        a = self.normal(*self.stack, n, n)
        a = a @ a.conj().swapaxes(-1, -2) + max(n, 1) * np.eye(n, dtype=self.dtype)
        return self.operand(self.spoil(a.astype(self.dtype)))

    def factor(self, n: int) -> Operand:
        """What a factorization gives: a real diagonal that is not small."""
        a = self.normal(*self.stack, n, n) * 0.3
        diagonal = np.arange(n)
        a[..., diagonal, diagonal] = 1 + np.abs(a[..., diagonal, diagonal])
        return self.operand(self.spoil(a.astype(self.dtype)))

    def integers(self, low: int, high: int, *shape: int) -> Operand:
        return Operand(self.rng.integers(low, high + 1, shape).astype(np.int32))


# ---- Functions: the arguments of each --------------------------------------------------------------------------------
# A recipe gives the positional arguments, and perhaps a dict of keyword arguments as the last.


def _pair(make: Maker) -> list:
    n, k = make.size(), make.size()
    a, b = make.matrix(n, n), make.matrix(n, k)
    return [a, b if make.rng.random() < 0.8 else make.vector(n)]


def _factor_and_right(make: Maker) -> tuple[Operand, Operand]:
    n = make.size()
    return make.factor(n), make.matrix(n, make.size())


def _lu_solve(make: Maker) -> list:
    a, b = _factor_and_right(make)
    n = a.values.shape[-1]
    pivots = make.integers(*make.pick((1, max(n, 1)), (-1, n + 1), (0, n)), *make.stack, n)
    return [
        a,
        pivots,
        b,
        {"left": bool(make.pick(True, True, False)), "adjoint": bool(make.pick(True, False))},
    ]


def _old_lu_solve(make: Maker) -> list:
    a, pivots, b, _ = _lu_solve(make)
    return [b, a, pivots]


def _lu_unpack(make: Maker) -> list:
    a = make.any()
    m, n = a.values.shape[-2:]
    pivots = make.integers(*make.pick((1, max(m, 1)), (1, max(m, 1)), (-1, m + 1)), *make.stack, min(m, n))
    return [a, pivots, bool(make.pick(True, True, False)), True]


def _ldl_solve(make: Maker) -> list:
    a, b = _factor_and_right(make)
    n = a.values.shape[-1]
    pivots = make.integers(
        *make.pick((-n, n), (-n, n), (-1, -1), (1, max(n, 1)), (-n - 1, n + 1)), *make.stack, n
    )
    if make.rng.random() < 0.3:  # pairs, as a factorization gives them
        pivots.values[...] = -(np.arange(n) // 2 * 2 + 2)
        if n % 2:
            pivots.values[..., -1:] = n
    return [a, pivots, b, {"hermitian": bool(make.pick(True, False))}]


def _reflectors(make: Maker) -> tuple[Operand, Operand]:
    m, n = sorted((make.size(), make.size()), reverse=True)
    k = int(make.rng.integers(n + 1))
    return make.matrix(m, n), make.vector(k)


def _ormqr(make: Maker) -> list:
    a, tau = _reflectors(make)
    m, other = a.values.shape[-2], make.size()
    left = bool(make.pick(True, False))
    c = make.matrix(m, other) if left else make.matrix(other, m)
    return [a, tau, c, left, bool(make.pick(True, False))]


def _triangular(make: Maker) -> list:
    left = bool(make.pick(True, True, False))
    n, k = make.size(), make.size()
    b = make.matrix(n, k) if left else make.matrix(k, n)
    options = {"upper": bool(make.pick(True, False)), "unitriangular": bool(make.pick(True, False))}
    return [make.factor(n), b, {**options, "left": left}]


def _old_triangular(make: Maker) -> list:
    a, b = _factor_and_right(make)
    return [b, a, *(bool(make.pick(True, False)) for _ in range(3))]


def _lstsq(make: Maker) -> list:
    m, n = make.size(), make.size()
    options = {"driver": make.pick("gels", "gelsy", "gelsd", "gelss", None)}
    if make.rng.random() < 0.3:
        options["rcond"] = make.pick(0.0, -1.0, 1e-3, 1e-6)
    return [make.matrix(m, n), make.matrix(m, make.size()), options]


def _tolerances(make: Maker) -> dict:
    options: dict[str, Any] = {"hermitian": bool(make.pick(False, False, True))}
    for name in ("atol", "rtol"):
        if make.rng.random() < 0.3:
            options[name] = make.pick(0.0, -1.0, 1e-3, _NAN, _INF)
    return options


def _pinv(make: Maker) -> list:
    options = _tolerances(make)
    return [make.definite() if options["hermitian"] else make.any(), options]


def _power(make: Maker) -> list:
    return [make.square(), make.pick(0, 1, 2, 3, 7, -1, -2, 2**31, 2**62, -(2**63))]


def _matrix_norm(make: Maker) -> list:
    order = make.pick("fro", "nuc", 1, -1, 2, -2, _INF, -_INF, 3, "x", _NAN)
    dims = make.pick((-2, -1), (-2, -1), (0, 1), (1, 1), (-1, -2), (0, 7), (0,))
    return [make.any(), order, dims, bool(make.pick(True, False))]


def _vector_norm(make: Maker) -> list:
    order = make.pick(0, 1, 2, 3, -1, 0.5, -2, _INF, -_INF)
    return [make.any(), order, make.pick(None, None, -1, (0, 1), (-1, -1), 5)]


def _cond(make: Maker) -> list:
    return [make.square(), make.pick(None, "fro", "nuc", 1, -1, 2, -2, _INF, -_INF, 3)]


def _chain(make: Maker) -> list:
    sizes = [make.size() for _ in range(int(make.rng.integers(3, 6)))]
    return [[make.matrix(m, n, ()) for m, n in zip(sizes, sizes[1:], strict=False)]]


def _product(make: Maker) -> list:
    m, n, k = make.size(), make.size(), make.size()
    return [make.matrix(m, n), make.matrix(n, k)]


def _two_vectors(make: Maker) -> list:
    n = make.size()
    return [make.vector(n), make.vector(n)]


def _tensorinv(make: Maker) -> list:
    n = make.pick(1, 2, 4, 6)
    return [Operand(make.spoil(make.normal(n, 1, n))), make.pick(1, 2, 2, 0, -1)]


def _tensorsolve(make: Maker) -> list:
    a = Operand(make.spoil(make.normal(2, 3, 6)))
    return [a, make.operand(make.spoil(make.normal(2, 3)))]


def _lowrank(make: Maker) -> list:
    a = make.any()
    return [a, {"q": int(make.rng.integers(0, 8)), "niter": make.pick(0, 1, 2)}]


def _lobpcg(make: Maker) -> list:
    n = make.pick(3, 4, 6, 9)
    a = make.normal(n, n)
    a = (a @ a.conj().T + n * np.eye(n)).astype(make.dtype)
    return [make.operand(make.spoil(a), False), make.pick(1, 1, 2, 3, 0)]


def _transform(make: Maker) -> list:
    n = make.pick(None, None, None, 1, 2, 5, 8, 13, 0, -1, 2**40, 2**62, -(2**63))
    return [
        make.any(),
        n,
        make.pick(-1, -1, 0, 1, 5, -7),
        make.pick(None, "ortho", "forward", "backward", "x"),
    ]


def _transforms(make: Maker) -> list:
    a = make.any()
    dims = make.pick(None, None, (-1,), (0, 1), (-2, -1), (0, 0), (0, 9), ())
    sizes = make.pick(None, None, None, (4,), (2, 3), (5, 0), (2**40, 2**40), (-1, 3), (1, 1, 1, 1, 1))
    return [a, sizes, dims, make.pick(None, "ortho", "forward")]


def _transforms_2d(make: Maker) -> list:
    a, sizes, _, norm = _transforms(make)
    return [a, sizes, make.pick((-2, -1), (0, 1), (0, 0), (1,)), norm]


def _stft(make: Maker) -> list:
    n_fft = make.pick(1, 2, 4, 8, 0, -1, 2**40)
    options = {"hop_length": make.pick(None, 1, 3, 0, -1), "return_complex": True}
    return [make.operand(make.spoil(make.normal(make.pick(0, 1, 9, 40)))), n_fft, options]


def _eigh(make: Maker) -> list:
    return [make.definite() if make.rng.random() < 0.7 else make.square(), make.pick("L", "U")]


def _covariance(make: Maker) -> list:
    return [make.matrix(make.size(), make.size(), ())]


def _just(*makers: str, **choices: tuple) -> Callable[[Maker], list]:
    """Arguments that a Maker's methods give, and keyword arguments picked from choices."""

    def recipe(make: Maker) -> list:
        options = {name: make.pick(*values) for name, values in choices.items()}
        return [*(getattr(make, each)() for each in makers), options]

    return recipe


_BOTH = (False, True)
RECIPES: dict[str, Callable[[Maker], list]] = {
    "linalg.cholesky": _just("definite", upper=_BOTH),
    "linalg.cholesky_ex": _just("definite", upper=_BOTH, check_errors=_BOTH),
    "cholesky": _just("definite", upper=_BOTH),
    "cholesky_solve": lambda make: [*reversed(_factor_and_right(make)), make.pick(*_BOTH)],
    "cholesky_inverse": lambda make: [make.factor(make.size()), make.pick(*_BOTH)],
    "linalg.inv": _just("square"),
    "linalg.inv_ex": _just("square", check_errors=_BOTH),
    "linalg.det": _just("square"),
    "linalg.slogdet": _just("square"),
    "logdet": _just("square"),
    "linalg.eig": _just("square"),
    "linalg.eigvals": _just("square"),
    "linalg.eigh": _eigh,
    "linalg.eigvalsh": _eigh,
    "linalg.svd": _just("any", full_matrices=_BOTH),
    "linalg.svdvals": _just("any"),
    "svd": _just("any", some=_BOTH, compute_uv=_BOTH),
    "linalg.qr": _just("any", mode=("reduced", "complete", "r")),
    "geqrf": _just("any"),
    "linalg.householder_product": lambda make: list(_reflectors(make)),
    "ormqr": _ormqr,
    "linalg.lu": _just("any"),
    "linalg.lu_factor": _just("any"),
    "linalg.lu_factor_ex": _just("any", check_errors=_BOTH),
    "linalg.lu_solve": _lu_solve,
    "lu_solve": _old_lu_solve,
    "lu_unpack": _lu_unpack,
    "linalg.ldl_factor": _just("definite", hermitian=_BOTH),
    "linalg.ldl_factor_ex": _just("definite", hermitian=_BOTH, check_errors=_BOTH),
    "linalg.ldl_solve": _ldl_solve,
    "linalg.lstsq": _lstsq,
    "linalg.solve": _pair,
    "linalg.solve_ex": _pair,
    "linalg.solve_triangular": _triangular,
    "triangular_solve": _old_triangular,
    "linalg.pinv": _pinv,
    "pinverse": _just("any", rcond=(1e-15, 0.0, _NAN)),
    "linalg.matrix_rank": _pinv,
    "linalg.matrix_power": _power,
    "linalg.matrix_exp": _just("square"),
    "linalg.matrix_norm": _matrix_norm,
    "linalg.norm": _matrix_norm,
    "linalg.vector_norm": _vector_norm,
    "linalg.cond": _cond,
    "linalg.multi_dot": _chain,
    "linalg.tensorinv": _tensorinv,
    "linalg.tensorsolve": _tensorsolve,
    "linalg.vander": _just("any", N=(None, 2, 5, 0, -1)),
    "linalg.vecdot": _two_vectors,
    "matmul": _product,
    "cov": _covariance,
    "corrcoef": _covariance,
    "svd_lowrank": _lowrank,
    "pca_lowrank": _lowrank,
    "lobpcg": _lobpcg,
    **{f"fft.{name}": _transform for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{f"fft.{name}n": _transforms for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{f"fft.{name}2": _transforms_2d for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    "stft": _stft,
}


class Call(NamedTuple):
    path: str
    kind: str
    args: list
    options: dict

    def __str__(self) -> str:
        return f"{self.path}({', '.join([*map(_shown, self.args), *(f'{k}={v!r}' for k, v in self.options.items())])})"


def _shown(value: Any) -> str:
    if isinstance(value, Operand):
        grad = ", grad" if value.grad else ""
        values = np.array2string(value.values, threshold=40, separator=", ").replace("\n", "")
        return f"<{value.values.dtype}{list(value.values.shape)} {value.layout}{grad}: {values}>"
    return f"[{', '.join(map(_shown, value))}]" if isinstance(value, list) else repr(value)


def draw(seed: int, only: str | None = None) -> Call:
    make = Maker(seed)
    paths = [path for path in RECIPES if only is None or path == only]
    path = paths[make.rng.integers(len(paths))]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        *args, last = RECIPES[path](make)
    args, options = (args, last) if isinstance(last, dict) else ([*args, last], {})
    return Call(path, make.kind, args, options)


# ---- In a child: make the call ---------------------------------------------------------------------------------------


class Failure(NamedTuple):
    """An exception: the names of its type and of its bases, and the message."""

    kinds: list[str]
    message: str

    @classmethod
    def of(cls, error: Exception) -> Failure:
        return cls([base.__name__ for base in type(error).__mro__], str(error))


class Outcome(NamedTuple):
    """The results and the gradients of a call; or, in place of either, the exception."""

    results: list[np.ndarray] | Failure
    gradients: list[np.ndarray] | Failure


def tensor_from(library: Any, operand: Operand) -> Any:
    values, layout = operand.values, operand.layout
    if layout == "transposed" and values.ndim >= 2:
        tensor = library.from_numpy(values.swapaxes(-1, -2).copy()).mT
    elif layout == "gaps" and values.ndim:
        tensor = library.from_numpy(np.repeat(values, 2, -1))[..., ::2]
    elif layout == "conjugated" and values.dtype.kind == "c":
        tensor = library.from_numpy(values.conj()).conj()
    elif layout == "expanded" and values.ndim >= 3:
        tensor = library.from_numpy(values[:1].copy()).expand(values.shape)
    else:
        tensor = library.from_numpy(values.copy())
    return tensor.detach().requires_grad_() if operand.grad else tensor


def perform(library: Any, call: Call) -> Outcome:
    leaves: list = []

    def given(value: Any) -> Any:
        if isinstance(value, list):
            return list(map(given, value))
        if not isinstance(value, Operand):
            return value
        tensor = tensor_from(library, value)
        if value.grad:
            leaves.append(tensor)
        return tensor

    function = library
    for part in call.path.split("."):
        function = getattr(function, part)
    library.manual_seed(0)
    args = list(map(given, call.args))
    try:
        found = function(*args, **call.options)
    except Exception as error:
        return Outcome(Failure.of(error), [])
    results = [each for each in (found if isinstance(found, tuple) else (found,)) if each is not None]
    return Outcome([_numpy(each) for each in results], _gradients(results, leaves))


def _gradients(results: list, leaves: list) -> list[np.ndarray] | Failure:
    recorded = [each for each in results if each.requires_grad]
    if not recorded or not leaves:
        return []
    try:
        # Squares of absolute values, because phases and signs of vectors are not determined.
        total = sum((each.abs() ** 2).sum() for each in recorded)
        total.backward()
    except Exception as error:
        return Failure.of(error)
    return [None if leaf.grad is None else _numpy(leaf.grad) for leaf in leaves]


def _numpy(tensor: Any) -> np.ndarray:
    return np.array(tensor.detach().resolve_conj().resolve_neg().numpy())


def _work(name: str) -> None:
    limit = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES if limit < 0 else min(ADDRESSES, limit), limit))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the hunt, which ends its children
    warnings.simplefilter("error" if name == "weft" else "ignore", RuntimeWarning)  # NumPy's must not leak
    library = __import__(name)
    library.set_num_threads(1)
    serve(lambda request: perform(library, draw(*request)))


# ---- Comparison ------------------------------------------------------------------------------------------------------

# Whether such a matrix is singular, and which of its results overflow, is decided by roundings.
AT_THE_EDGE = ("singular", "ill-conditioned", "largest", "denormal", "special values")
# Derivatives at such a matrix divide by differences that are rounding errors, or by zero.
SINGULAR = ("zeros", "negative zeros", "ones", "defective")

# What is determined of results that are not, such as eigenvectors.


def _power_sums(values: np.ndarray) -> list[np.ndarray]:
    """Eigenvalues come in any order."""
    return [values.sum(-1), (values**2).sum(-1)]


def _product_of(left: np.ndarray, values: np.ndarray, right: np.ndarray) -> np.ndarray:
    return (left[..., : values.shape[-1]] * values[..., None, :]) @ right[..., : values.shape[-1], :]


def _adjoint(a: np.ndarray) -> np.ndarray:
    return a.conj().swapaxes(-1, -2)


DETERMINED: dict[str, Callable] = {
    "linalg.eigvals": lambda values: _power_sums(values),
    "linalg.eig": lambda values, vectors: _power_sums(values),
    "linalg.eigh": lambda values, vectors: [values, _product_of(vectors, values, _adjoint(vectors))],
    "linalg.svd": lambda U, S, Vh: [S, _product_of(U, S, Vh)],
    "svd": lambda U, S, V: [S, _product_of(U, S, _adjoint(V))],
    "svd_lowrank": lambda U, S, V: [S],
    "pca_lowrank": lambda U, S, V: [S],
    "lobpcg": lambda values, vectors: [values],
}


def differences(call: Call, mine: Outcome, theirs: Outcome) -> Iterator[str]:
    yield from _compared(call, "results", mine.results, theirs.results)
    if not isinstance(mine.results, Failure) and not isinstance(theirs.results, Failure):
        yield from _compared(call, "gradients", mine.gradients, theirs.gradients)


def _compared(call: Call, what: str, mine: Any, theirs: Any) -> Iterator[str]:
    if isinstance(mine, Failure) and isinstance(theirs, Failure) and theirs.kinds[0] in mine.kinds:
        return
    if isinstance(mine, Failure) or isinstance(theirs, Failure):
        yield f"{what}: {_told(mine)} instead of {_told(theirs)}"
        return
    if what == "gradients":  # of what does not matter: None, or zeros
        both = [(a, b) for a, b in zip(mine, theirs, strict=False) if a is not None and b is not None]
        mine, theirs = [a for a, _ in both], [b for _, b in both]
    specs = [[(a.dtype.name, a.shape) for a in each] for each in (mine, theirs)]
    if specs[0] != specs[1]:
        yield f"{what}: {specs[0]} instead of {specs[1]}"
        return
    if call.kind not in AT_THE_EDGE and (what == "results" or call.kind not in SINGULAR):
        for i, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            if np.isfinite(a).all() != np.isfinite(b).all():
                yield f"{what}[{i}] {'not ' if np.isfinite(b).all() else ''}finite"
    if call.kind == "ordinary":
        with np.errstate(all="ignore"):
            yield from _values(call, what, mine, theirs)


def _told(outcome: Any) -> str:
    return f"{outcome.kinds[0]} ({outcome.message[:150]})" if isinstance(outcome, Failure) else "numbers"


def _values(call: Call, what: str, mine: list, theirs: list) -> Iterator[str]:
    if what == "results" and call.path in DETERMINED:
        mine, theirs = DETERMINED[call.path](*mine), DETERMINED[call.path](*theirs)
    for i, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        if a.dtype.kind not in "fc":
            continue
        both = np.isfinite(a) & np.isfinite(b)
        tolerance = 2e-2 if a.dtype.char in "fF" else 1e-6
        scale = np.abs(b).max(initial=tolerance, where=both)
        most = np.abs(a - b).max(initial=0, where=both)
        if most > tolerance * scale:
            yield f"{what}[{i}] differ by {most / scale:.1e} of their size"


# ---- Accepted differences --------------------------------------------------------------------------------------------


class Accepted(NamedTuple):
    """Differences that are no defect of weft."""

    reason: str
    of: Callable[[Call, str], bool]


def _non_finite(call: Call) -> bool:
    return "NaN" in call.kind or "inf" in call.kind


_SOLVING = ("linalg.inv", "linalg.tensorinv", "linalg.solve", "linalg.tensorsolve", "linalg.cond")

ACCEPTED = (
    Accepted(
        "PyTorch's own errors: MKL's transforms of nothing, assertions about LAPACK's answers",
        lambda call, said: "instead of RuntimeError (MKL FFT" in said or "INTERNAL ASSERT" in said,
    ),
    Accepted(
        "Derivatives that PyTorch lacks, or spoils by writing in place",
        lambda call, said: any(
            theirs in said
            for theirs in ("does not support automatic diff", "modified by an inplace", "view size is not compatible")
        ),
    ),
    Accepted(
        "PyTorch iterates, from a start that fails for hostile and small problems; weft solves the dense problem",
        lambda call, said: call.path == "lobpcg",
    ),
    Accepted(
        "Whether a matrix is singular, and whether an iteration converges, is decided by roundings",
        lambda call, said: ("_LinAlgError" in said or "U[" in said or "D[" in said)
        and (call.kind in AT_THE_EDGE or (call.kind in SINGULAR and said.startswith("gradients"))),
    ),
    Accepted(
        "inf and NaN: one raises, the other gives NaN, where PyTorch's answer depends on LAPACK's library and on the size",
        lambda call, said: _non_finite(call)
        and ("_LinAlgError" in said or said.startswith("results: RuntimeError (torch.linalg.")),
    ),
    Accepted(
        "inf and NaN: libraries find other pivots, and complex products of inf differ",
        lambda call, said: _non_finite(call) and call.path.startswith(("linalg.lu", "linalg.cholesky", "cholesky", "linalg.ldl", "linalg.lstsq", "linalg.matrix_power")),
    ),
    Accepted(
        "A quotient by an infinite pivot is 0, or NaN if the library multiplies by its inverse",
        lambda call, said: "inf" in call.kind and "finite" in said and call.path.startswith(_SOLVING),
    ),
    Accepted(
        "Singular values that are zero but for roundings, if q is beyond the rank: their derivatives are not determined",
        lambda call, said: call.path in ("svd_lowrank", "pca_lowrank") and said.startswith("gradients"),
    ),
    Accepted(
        "Pivots that no factorization gives: PyTorch reads outside its memory",
        lambda call, said: "Negative pivots" in said or "Pivots given to lu_solve" in said,
    ),
    Accepted(
        "PyTorch's backward of lu_unpack fails without the factors",
        lambda call, said: call.path == "lu_unpack" and said.startswith("gradients: numbers instead"),
    ),
)  # fmt: skip


def accepted(call: Call, difference: str) -> str | None:
    """Why a difference is no defect of weft, or None."""
    return next((each.reason for each in ACCEPTED if each.of(call, difference)), None)


# ---- The hunt --------------------------------------------------------------------------------------------------------


def hunt(seeds: range, only: str | None, report: Callable[[int, Call, str], None]) -> collections.Counter:
    """Make the calls of these seeds in both libraries, and report each difference. Returns counts of what happened."""
    mine, theirs = (Child([sys.executable, __file__, "--child", name]) for name in ("weft", "torch"))
    counts: collections.Counter = collections.Counter()
    try:
        for seed in seeds:
            mine.send((seed, only))
            theirs.send((seed, only))
            call = draw(seed, only)
            counts["calls"] += 1
            answers = []
            for child, name, seconds in ((mine, "weft", SECONDS), (theirs, "PyTorch", THEIR_SECONDS)):
                try:
                    answers.append(child.receive(seconds))
                except Died as death:
                    answers.append(f"{name} died: {death}")
                except Silent:
                    answers.append(f"{name} hung")
            if isinstance(answers[1], str):
                counts[answers[1].split(":")[0]] += 1
            if isinstance(answers[0], str):
                counts["differences"] += 1
                report(seed, call, answers[0])
            elif not isinstance(answers[1], str):
                counts["gradients"] += bool(answers[0].gradients)
                for difference in differences(call, *answers):
                    reason = accepted(call, difference)
                    counts["accepted" if reason else "differences"] += 1
                    if not reason:
                        report(seed, call, difference)
    finally:
        mine.close()
        theirs.close()
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument(
        "--seed", type=int, default=0, help="the seed of the first call; the next ones follow"
    )
    parser.add_argument("--only", choices=sorted(RECIPES), help="calls of this function only")
    parser.add_argument("--brief", action="store_true", help="one line for each difference, without the call")
    parser.add_argument("--child", choices=("weft", "torch"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        _work(options.child)
        return 0

    def report(seed: int, call: Call, difference: str) -> None:
        print(f"seed {seed}: {call.path}, {call.kind}: {difference}", flush=True)
        if not options.brief:
            print(f"    {str(call)[:1500]}")

    begin = time.monotonic()
    counts = hunt(range(options.seed, options.seed + options.calls), options.only, report)
    print(f"{dict(counts)} in {time.monotonic() - begin:.0f} s")
    return 1 if counts["differences"] else 0


if __name__ == "__main__":
    sys.exit(main())
