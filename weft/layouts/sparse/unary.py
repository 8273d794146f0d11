"""Functions of one sparse tensor whose value at zero is zero: the result has the indices of the tensor.

A nonlinear function of a COO tensor needs the sums of the values at equal indices, so the tensor is coalesced first. PyTorch coalesces
for most linear functions, too, and the result says that it is coalesced.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...core.layout import sparse_coo
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ...families.custom_vjp import custom_vjp
from ..parts import is_plain, values_of, with_values
from .conversion import coalesce
from .coo import is_coalesced
from .rules import SPARSE, write

rule = SPARSE.rule
zeros_like = FUNCTIONS["zeros_like"]


def summed(x: Tensor) -> Tensor:
    """The tensor with one value for each element: a COO tensor is coalesced."""
    return coalesce(x) if x.layout is sparse_coo else x


def on_values(x: Tensor, function: Callable, *args: Any, **kwargs: Any) -> Tensor:
    """Return the function of the values, with the indices of x."""
    return with_values(x, function(values_of(x), *args, **kwargs))


def _check_sparse(input: Tensor, name: str) -> None:
    if is_plain(input):
        raise RuntimeError(f"{name}: the input is dense, but the tensor to write into is sparse")


# ---- Functions that need sums ------------------------------------------------------------------------------------------


def _define(name: str) -> None:
    function = FUNCTIONS[name]

    def compute(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        _check_sparse(input, name)
        return on_values(summed(input), function, *args, **kwargs)

    rule(name)(compute)
    _define_in_place(name, compute)


def _define_in_place(name: str, compute: Callable, needs_sums: bool = True) -> None:
    def in_place(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if needs_sums and input.layout is sparse_coo and not is_coalesced(input):
            raise RuntimeError(f"{name}_ requires coalesced input")
        write(compute(*SPARSE.operands((input, *args)), **kwargs), input, keeps_memory=True)
        return input

    rule(f"{name}_")(in_place)


for _name in (
    "abs angle asin asinh atan atanh erf erfinv expm1 isinf isnan isneginf isposinf log1p nan_to_num relu sgn signbit sin sinh sqrt square "
    "tan tanh"
).split():
    _define(_name)


# ---- Functions with a derivative that works on cotangents of any layout ---------------------------------------------------


@custom_vjp(lambda ct, out, x, function: function(ct), inputs=1)
def _linear(x: Tensor, function: Callable) -> Tensor:
    """A linear function that is its own adjoint."""
    return on_values(x, function)


@custom_vjp(lambda ct, out, x, function: ct, inputs=1)
def _shifted(x: Tensor, function: Callable) -> Tensor:
    """Return a function with slope 1."""
    return on_values(x, function)


@custom_vjp(lambda ct, out, x, function: zeros_like(ct), inputs=1)
def _stepped(x: Tensor, function: Callable) -> Tensor:
    """A function that is constant between its jumps."""
    return on_values(x, function)


def _define_by(step: Callable, names: str, prepare: Callable = summed) -> None:
    for name in names.split():
        _define_one(step, name, FUNCTIONS[name], prepare)


def _define_one(step: Callable, name: str, function: Callable, prepare: Callable) -> None:
    def compute(input: Tensor, **options: Any) -> Tensor:
        _check_sparse(input, name)
        return step(prepare(input), functools.partial(function, **options) if options else function)

    rule(name)(compute)
    _define_in_place(name, compute, prepare is summed)


_define_by(_linear, "deg2rad rad2deg")
_define_by(_linear, "conj_physical neg", lambda x: x)
_define_by(_shifted, "frac")
_define_by(_stepped, "ceil floor round sign trunc")


@rule("positive")
def positive(input: Tensor) -> Tensor:
    return on_values(input, FUNCTIONS["positive"])


# ---- Complex numbers -----------------------------------------------------------------------------------------------------


@rule("conj")
def conj(input: Tensor) -> Tensor:
    return _linear(input, FUNCTIONS["conj_physical"]) if input.is_complex() else input


@rule("resolve_conj", "resolve_neg")
def resolved(input: Tensor) -> Tensor:
    return input


@rule("real")
def real(input: Tensor) -> Tensor:
    return on_values(input, _copied_part, "real") if input.is_complex() else input


@rule("imag")
def imag(input: Tensor) -> Tensor:
    return on_values(input, _copied_part, "imag")


def _copied_part(values: Tensor, name: str) -> Tensor:
    return FUNCTIONS[name](values).clone()
