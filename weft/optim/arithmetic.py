"""The arithmetic that rules are written with: of tensors, and of elements inside a kernel (`families/update.py`)."""

from __future__ import annotations

from typing import Any

from ..families.update import Traced, fusible
from ..ops.elementwise.arithmetic import ADD, ADD_SCALED, ADDCDIV, ADDCMUL, DIV, LERP, MUL, SUB
from ..ops.elementwise.comparison import CLAMP
from ..ops.elementwise.pointwise import OPS
from ..ops.indexing.masking import WHERE

add_scaled = fusible(ADD_SCALED)  # (a, b, alpha): a + alpha * b
addcmul = fusible(ADDCMUL)  # (a, b, c, value): a + value * b * c
addcdiv = fusible(ADDCDIV)  # (a, b, c, value): a + value * b / c
lerp = fusible(LERP)  # (a, b, weight): from a to b
sqrt = fusible(OPS["sqrt"])
absolute = fusible(OPS["abs"])
reciprocal = fusible(OPS["reciprocal"])
sign = fusible(OPS["sign"])
maximum = fusible(OPS["maximum"])
clamp = fusible(CLAMP)
where = fusible(WHERE)

for _symbol, _op in {
    "add": ADD,
    "sub": SUB,
    "mul": MUL,
    "truediv": DIV,
    "neg": OPS["neg"],
    "lt": OPS["lt"],
    "gt": OPS["gt"],
}.items():
    setattr(Traced, f"__{_symbol}__", fusible(_op))


def detached(value: Any) -> Any:
    """The same values, through which no gradients flow; none flow in a kernel."""
    return value if type(value) is Traced else value.detach()


def directed(grad: Any, param: Any, maximize: bool, weight_decay: Any) -> Any:
    """The gradient to descend along: turned round to maximize, the weight decay's added (unless that is None)."""
    grad = -grad if maximize else grad
    return grad if weight_decay is None else add_scaled(grad, param, weight_decay)


def decayed(
    grad: Any, param: Any, maximize: bool, decay: str, weight_decay: Any, kept: Any
) -> tuple[Any, Any]:
    """The gradient to descend along, and the parameter, of which `decay` "decoupled" leaves `kept` times as much."""
    if decay == "decoupled":
        param = param * kept
    return directed(grad, param, maximize, weight_decay if decay == "coupled" else None), param
