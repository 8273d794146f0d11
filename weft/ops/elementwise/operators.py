"""Python's operators on tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.overrides import declined
from ...core.public import add_method
from ...core.tensor import Tensor
from ...families.calls import binary, inplace_of, is_operand, reflected, unary, with_array
from ...families.map import Map
from . import arithmetic as rows
from . import powers
from .pointwise import OPS, positive


def _install(symbol: str, op: Map) -> None:
    """`a symbol b`, `b symbol a` and `a symbol= b`."""
    _set(symbol, binary(op, operator=True), reflected(op), inplace_of(op))


def _set(symbol: str, forward: Callable, backward: Callable, inplace: Callable | None) -> None:
    add_method(f"__{symbol}__", forward)
    add_method(f"__r{symbol}__", backward)
    if inplace is not None:
        add_method(f"__i{symbol}__", _augmented(inplace))


def _augmented(method: Callable) -> Callable:
    def augmented(self, other):
        # As in PyTorch, `tensor += array` is `tensor = tensor + array`.
        if isinstance(other, np.ndarray):
            return NotImplemented
        return method(self, other) if is_operand(other) else declined(augmented, self, other)

    return augmented


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
    add_method(f"__{_symbol}__", binary(OPS[_symbol], operator=True))


def _reflected_division(self: Tensor, other: Any) -> Tensor:
    """other / self as PyTorch computes it: the reciprocal is rounded before it is multiplied."""
    if isinstance(other, np.ndarray):
        self, other = with_array(rows.DIV, self, other)
        return rows.DIV(other, self)
    return (
        OPS["reciprocal"](self) * other if is_operand(other) else declined(Tensor.__rtruediv__, self, other)
    )


for _symbol in ("truediv", "div"):
    add_method(f"__r{_symbol}__", _reflected_division)


# ---- Powers: the exponent may choose a simpler row ------------------------------------------------------------------


_SIMPLE_POWERS = {exponent: unary(row) for exponent, row in powers.SIMPLE_POWERS.items()}
_tensor_power = binary(powers.POW, operator=True)


def _power(self: Tensor, other: Any) -> Tensor:
    kind = type(other)
    if kind is Tensor:
        return _tensor_power(self, other)
    if kind in (int, float) and self.spec.dtype.kind in "fc" and other in _SIMPLE_POWERS:
        return _SIMPLE_POWERS[other](self)
    if isinstance(other, np.ndarray):
        self, other = with_array(powers.POW, self, other)
    return powers.pow(self, other) if is_operand(other) else declined(Tensor.__pow__, self, other)


def _reflected_power(self: Tensor, other: Any) -> Tensor:
    if isinstance(other, np.ndarray):
        self, other = with_array(powers.POW, self, other)
    return powers.pow(other, self) if is_operand(other) else declined(Tensor.__rpow__, self, other)


_set("pow", _power, _reflected_power, getattr(Tensor, "pow_"))  # noqa: B009


# ---- One operand ---------------------------------------------------------------------------------------------------


def _invert(self: Tensor) -> Tensor:
    if self.spec.dtype.category > 1:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return OPS["bitwise_not"](self)


_UNARY = {"neg": unary(OPS["neg"]), "abs": unary(OPS["abs"]), "pos": positive, "invert": _invert}
for _symbol, _function in _UNARY.items():
    add_method(f"__{_symbol}__", _function)
# NumPy's scalars and arrays leave `array + tensor` to the tensor.
setattr(Tensor, "__array_priority__", 1000)  # noqa: B010 (mypy knows the attributes in the class)
