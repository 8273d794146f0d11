"""Operators of `torch.ops.quantized` that write into a given tensor, and those that take a number first."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from .arithmetic_operators import add_out, add_scalar, cat, mul_out, mul_scalar
from .operators import operator
from .tensors import per_tensor, plain, quantizer_of, take
from .views import assign


def _both(name: str, rest: str, function: Any) -> None:
    """Define the operator, and the one with relu. name: has {} where "_relu" belongs."""
    operator(f"{name.format('')}{rest}")(function)
    operator(f"{name.format('_relu')}{rest}")(lambda *args, **kwargs: function(*args, **kwargs, relu=True))


def _into(result: Tensor, out: Tensor) -> Tensor:
    """Write a result and its quantizer."""
    integers = plain(out)
    integers.copy_(plain(result))
    return take(out, integers, quantizer_of(result))


def _with_numbers(name: str, function: Any) -> None:
    def swapped(b: Any, qa: Tensor, relu: bool = False) -> Tensor:
        return function(qa, b, relu)

    def written(qa: Tensor, b: Any, out: Tensor, relu: bool = False) -> Tensor:
        return _into(function(qa, b, relu), out)

    _both(f"{name}{{}}.Scalar2", "(Scalar b, Tensor qa) -> Tensor qc", swapped)
    of_tensor = "(Tensor qa, Tensor b, Tensor(a!) out) -> Tensor(a!) out"
    of_number = "(Tensor qa, Scalar b, Tensor(a!) out) -> Tensor(a!) out"
    _both(f"{name}{{}}.Scalar_out", of_number, written)
    _both(f"{name}_scalar{{}}_out", of_number, written)
    _both(f"{name}_scalar{{}}_out.Tensor", of_tensor, written)


_PAIR = "(Tensor qa, Tensor qb, Tensor(a!) out) -> Tensor(a!) out"
_both("add{}_out", _PAIR, add_out)
_both("mul{}_out", _PAIR, mul_out)
_with_numbers("add", add_scalar)
_with_numbers("mul", mul_scalar)


def _cat_out(qx: Any, dim: int, out: Tensor, relu: bool = False) -> Tensor:
    found = cat(qx, dim, *per_tensor(out, "quantized.cat"), relu=relu)
    if found.shape != out.shape:
        raise RuntimeError(
            f"quantized.cat_out: the result {list(found.shape)} does not fit into out {list(out.shape)}"
        )
    assign(found, out)
    return out


_both("cat{}_out", "(Tensor[] qx, int dim, Tensor(a!) out) -> Tensor(a!)", _cat_out)
