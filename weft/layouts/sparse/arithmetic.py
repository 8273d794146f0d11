"""Elementwise functions of sparse tensors."""

from __future__ import annotations

from typing import Any

from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ..parts import assign, is_plain, values_of, with_values
from .accumulation import add_entries_
from .conversion import coalesce, to_dense
from .coo import coo, indices_of
from .rules import SPARSE

cat = FUNCTIONS["cat"]


def _zero_preserving(name: str) -> None:
    function = FUNCTIONS[name]

    def rule(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        input = coalesce(input)
        return with_values(input, function(values_of(input), *args, **kwargs))

    SPARSE.rule(name)(rule)


for _name in "abs neg sin sqrt tanh sign relu".split():
    _zero_preserving(_name)


@SPARSE.rule("add")
def add(input: Tensor, other: Tensor, *, alpha: Any = 1) -> Tensor:
    if is_plain(input):
        return input + alpha * to_dense(other)
    indices = cat((indices_of(input), indices_of(other)), 1)
    return coo(indices, cat((values_of(input), alpha * values_of(other))), input.shape, False)


@SPARSE.rule("add_")
def add_(input: Tensor, other: Tensor, *, alpha: Any = 1) -> Tensor:
    if is_plain(input):
        return add_entries_(input, other, alpha)
    assign(add(input, other, alpha=alpha), input)
    return input


@SPARSE.rule("mul")
def mul(input: Any, other: Any) -> Tensor:
    if not isinstance(input, Tensor):
        input, other = other, input
    return with_values(input, values_of(input) * other)
