"""Defines Python's operators on tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.entry import declined, entry, in_front_of
from ...core.registry import add_member, add_method
from ...core.tensor import Tensor
from ...families.calls import binary, inplace_of, is_operand, reflected, unary, with_array
from ...families.calls import powers as functions_of_powers
from ...families.map import Map
from . import arithmetic as rows
from . import powers
from .pointwise import OPS, positive


def _install(symbol: str, op: Map) -> None:
    """Set `a symbol b`, `b symbol a` and `a symbol= b`."""
    backward = entry(_divided_by, is_operator=True) if op is rows.DIV else reflected(op)
    _set(symbol, binary(op, operator=True), backward, inplace_of(op))


def _set(symbol: str, forward: Callable, backward: Callable, inplace: Callable | None) -> None:
    add_member(f"__{symbol}__", forward)
    add_member(f"__r{symbol}__", backward)
    if inplace is not None:
        add_member(f"__i{symbol}__", _augmented(inplace))


def _augmented(method: Callable) -> Callable:
    def body(self, other):
        # As in PyTorch, `tensor += array` is `tensor = tensor + array`.
        if isinstance(other, np.ndarray):
            return NotImplemented
        return method(self, other) if is_operand(other) else declined(other)

    general = entry(body, is_operator=True)

    @in_front_of(general, method)
    def augmented(self, other):
        return method(self, other) if type(other) is Tensor else general(self, other)

    return augmented


def _divided_by(self: Tensor, other: Any) -> Tensor:
    """other / self as PyTorch computes it, with the rounded reciprocal of `self`."""
    if isinstance(other, np.ndarray) and is_operand(other):
        self, other = with_array(rows.DIV, self, other)
        return rows.DIV(other, self)
    return OPS["reciprocal"](self) * other if is_operand(other) else declined(other)


# fmt: off
_ARITHMETIC = {
    "add": rows.ADD, "sub": rows.SUB, "mul": rows.MUL, "truediv": rows.DIV, "div": rows.DIV, "floordiv": rows.FLOOR_DIVIDE,
    "mod": rows.REMAINDER, "and": OPS["bitwise_and"], "or": OPS["bitwise_or"], "xor": OPS["bitwise_xor"],
    "lshift": OPS["bitwise_left_shift"], "rshift": OPS["bitwise_right_shift"],
}
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
# fmt: on
for _symbol, _op in _ARITHMETIC.items():
    _install(_symbol, _op)
for _symbol in _COMPARISONS:
    add_member(f"__{_symbol}__", binary(OPS[_symbol], operator=True))


# ---- Powers: the exponent may choose a simpler row ------------------------------------------------------------------


_SIMPLE_POWERS = {exponent: unary(row) for exponent, row in powers.SIMPLE_POWERS.items()}
_tensor_power = binary(powers.POW, operator=True)
functions_of_powers.update({None: _tensor_power, **_SIMPLE_POWERS})


def _general_power(self: Tensor, other: Any) -> Tensor:
    if isinstance(other, np.ndarray) and is_operand(other):
        self, other = with_array(powers.POW, self, other)
    return powers.pow(self, other) if is_operand(other) else declined(other)


_power_entry = entry(_general_power, is_operator=True)


@in_front_of(_power_entry, _tensor_power, *_SIMPLE_POWERS.values())
def _power(self: Tensor, other: Any) -> Tensor:
    kind = type(other)
    if kind is Tensor:
        return _tensor_power(self, other)
    if kind in (int, float) and self.spec.dtype.kind in "fc" and other in _SIMPLE_POWERS:
        return _SIMPLE_POWERS[other](self)
    return _power_entry(self, other)


def _reflected_power(self: Tensor, other: Any) -> Tensor:
    if isinstance(other, np.ndarray) and is_operand(other):
        self, other = with_array(powers.POW, self, other)
    return powers.pow(other, self) if is_operand(other) else declined(other)


_set("pow", _power, entry(_reflected_power, is_operator=True), getattr(Tensor, "pow_"))  # noqa: B009


# ---- One operand ---------------------------------------------------------------------------------------------------


def _invert(self: Tensor) -> Tensor:
    if self.spec.dtype.category > 1:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return OPS["bitwise_not"](self)


_UNARY = {"neg": unary(OPS["neg"]), "abs": unary(OPS["abs"]), "pos": positive, "invert": _invert}
for _symbol, _function in _UNARY.items():
    add_method(f"__{_symbol}__", _function)
# This makes NumPy's scalars and arrays return NotImplemented from `array + tensor`, so that Python calls the tensor.
setattr(Tensor, "__array_priority__", 1000)  # noqa: B010 (mypy knows the attributes in the class)
