"""Sorting, and running sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._builder import Builder
from .base import translates


@translates("cumsum")
def cumsum(b: Builder, input: Any, dim: int, *, dtype: Any = None) -> str:
    return b.op("CumSum", b.tensor(input, b.result().dtype), b.constant(dim, np.int64))


@translates("topk")
def topk(b: Builder, input: Any, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple:
    return b.op(
        "TopK",
        b.tensor(input),
        b.int_vector(k),
        axis=dim,
        largest=int(largest),
        sorted=int(sorted),
        outputs=2,
    )


@translates("sort")
def sort(b: Builder, input: Any, dim: int = -1, descending: bool = False, **_: Any) -> tuple:
    count = b.int_vector(b.size_of(input, dim))
    return b.op("TopK", b.tensor(input), count, axis=dim, largest=int(descending), sorted=1, outputs=2)


@translates("argsort")
def argsort(b: Builder, input: Any, dim: int = -1, descending: bool = False, **_: Any) -> str:
    return sort(b, input, dim, descending)[1]
