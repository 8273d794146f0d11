"""Ops under short names, and steps that several optimizers share, for the rules of `families/update.py`.

A rule may use these and the operators and methods of tensors. It runs on tensors, or is traced into one kernel.
"""

from __future__ import annotations

from typing import Any

from ..ops.elementwise.arithmetic import ADD_SCALED, ADDCDIV, ADDCMUL, LERP
from ..ops.elementwise.comparison import CLAMP
from ..ops.elementwise.pointwise import OPS
from ..ops.indexing.masking import WHERE

add_scaled = ADD_SCALED  # (a, b, alpha): a + alpha * b
addcmul = ADDCMUL  # (a, b, c, value): a + value * b * c
addcdiv = ADDCDIV  # (a, b, c, value): a + value * b / c
lerp = LERP  # (a, b, weight): a + weight * (b - a)
sqrt, absolute, reciprocal, sign, maximum = (
    OPS[name] for name in ("sqrt", "abs", "reciprocal", "sign", "maximum")
)
clamp = CLAMP
where = WHERE


def directed(grad: Any, param: Any, maximize: bool, weight_decay: Any) -> Any:
    """Return the gradient to descend along: negated if `maximize`, plus `weight_decay` times the parameter unless that is None."""
    grad = -grad if maximize else grad
    return grad if weight_decay is None else add_scaled(grad, param, weight_decay)


def decayed(
    grad: Any, param: Any, maximize: bool, decay: str, weight_decay: Any, kept: Any
) -> tuple[Any, Any]:
    """Return the gradient to descend along, and the parameter, which is multiplied by `kept` if `decay` is "decoupled"."""
    if decay == "decoupled":
        param = param * kept
    return directed(grad, param, maximize, weight_decay if decay == "coupled" else None), param
