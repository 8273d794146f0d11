"""Points that fill the unit cube more evenly than random ones, `torch.quasirandom`."""

from __future__ import annotations

import functools
import os
from typing import Any

import numpy as np

import weft
from weft.core.tensor import Tensor

__all__ = ["SobolEngine"]


class SobolEngine:
    """A Sobol sequence of points in [0, 1) ** `dimension`, PyTorch's bit for bit.

    With `scramble` the points are randomized by matrices and shifts that are drawn with `seed`, or by the default
    generator; they stay evenly distributed (Owen 1998, Matousek 1998). The sequence is Joe and Kuo's (2010).

    >>> import weft as torch
    >>> torch.quasirandom.SobolEngine(2).draw(4)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500],
            [0.2500, 0.7500]])
    """

    MAXBIT = 30  # points are multiples of 2 ** -30
    MAXDIM = 21201  # of Joe and Kuo's table

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None):
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.sobolstate = weft.from_numpy(_direction_numbers(dimension, self.MAXBIT))
        self.shift = weft.zeros(dimension, dtype=weft.long)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next `n` points, [n, dimension], in `dtype` (by default the default dtype)."""
        dtype = weft.get_default_dtype() if dtype is None else dtype
        first = self._first_point.to(dtype)
        if (
            self.num_generated == 0
        ):  # the first point is the shift; the state is always that of the last point
            found = first if n == 1 else weft.cat((first, self._next(n - 1, 0, dtype)), dim=-2)
        else:
            found = self._next(n, self.num_generated - 1, dtype)
        self.num_generated += n
        return found if out is None else out.resize_as_(found).copy_(found)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next 2 ** m points.

        Raises: ValueError unless the number of all points drawn so far is then a power of 2, which balances them.
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: n={self.num_generated}+2**{m}={total}. "
                "If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Start again from the first point."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skip the next `n` points, without computing them."""
        start = max(self.num_generated - 1, 0)
        self.num_generated += n
        for bit in _bits_of((start ^ start >> 1) ^ (end := self.num_generated - 1) ^ end >> 1):
            self.quasi.bitwise_xor_(self.sobolstate[:, bit])
        return self

    def _next(self, n: int, index: int, dtype: Any) -> Tensor:
        """The `n` points behind the one of this index; the Gray code of an index differs from the last in one bit.

        Source: Antonov and Saleev 1979.
        """
        changed = np.arange(index, index + n, dtype=np.int64)
        lowest_zero = ~changed & (changed + 1)
        bits = np.round(np.log2(lowest_zero)).astype(np.int64)
        steps = self.sobolstate.numpy().T[bits]
        steps[:1] ^= self.quasi.numpy()
        points = np.bitwise_xor.accumulate(steps, axis=0)
        if n:
            self.quasi = weft.from_numpy(points[-1].copy())
        return weft.from_numpy(points).to(dtype) * 2.0**-self.MAXBIT

    def _scramble(self) -> None:
        generator = None
        if self.seed is not None:
            generator = weft.Generator()
            generator.manual_seed(self.seed)
        n, bits = self.dimension, self.MAXBIT
        shifts = weft.randint(2, (n, bits), generator=generator).numpy()
        self.shift = weft.from_numpy(shifts @ (1 << np.arange(bits)))
        matrices = np.tril(weft.randint(2, (n, bits, bits), generator=generator).numpy(), -1)
        rows = (matrices + np.eye(bits, dtype=np.int64)) @ (1 << np.arange(bits)[::-1])
        self.sobolstate = weft.from_numpy(_products(rows, self.sobolstate.numpy()))

    def __repr__(self) -> str:
        text = f"dimension={self.dimension}"
        if self.scramble:
            text += ", scramble=True"
        if self.seed is not None:
            text += f", seed={self.seed}"
        return f"{type(self).__name__}({text})"


def _bits_of(number: int) -> list[int]:
    return [bit for bit in range(number.bit_length()) if number >> bit & 1]


def _products(rows: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Products of matrices and vectors of bits, packed into integers, the first row's bit being the highest.

    Shapes: [dimension, bits] rows, [dimension, bits] vectors -> [dimension, bits].
    """
    found = np.zeros_like(vectors)
    for row in rows.T:
        ones = np.bitwise_count(row[:, None] & vectors)
        found = found << 1 | (ones & 1)
    return found


def _direction_numbers(dimension: int, n_bits: int) -> np.ndarray:
    """[dimension, n_bits]: what each bit of a Gray code contributes to a coordinate.

    Source: Bratley and Fox 1988 for the recurrence, Joe and Kuo 2010 for the polynomials and first numbers.
    """
    polynomials, first = _joe_kuo()
    numbers = np.empty((dimension, n_bits), np.int64)
    numbers[0] = 1
    for row, polynomial, start in zip(
        numbers[1:], polynomials[1:dimension].tolist(), first[1:dimension], strict=True
    ):
        degree = polynomial.bit_length() - 1
        row[:degree] = start[:degree]
        coefficients = [polynomial >> (degree - each) & 1 for each in range(1, degree + 1)]
        known = row.tolist()
        for i in range(degree, n_bits):
            value = known[i - degree]
            for each, coefficient in enumerate(coefficients, 1):
                if coefficient:
                    value ^= known[i - each] << each
            known[i] = value
        row[:] = known
    return numbers << np.arange(n_bits)[::-1]


@functools.cache
def _joe_kuo() -> tuple[np.ndarray, np.ndarray]:
    """The polynomials, as bits, and the first direction numbers of each dimension: SciPy brings the table along."""
    import scipy

    path = os.path.join(os.path.dirname(scipy.__file__), "stats", "_sobol_direction_numbers.npz")
    with np.load(path) as table:
        return table["poly"], table["vinit"]
