"""How many floating-point operations an operator takes, as far as PyTorch's profiler counts them; see `flops`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.profiler_util import FunctionEvent
from ..core.spec import Spec
from ..core.tensor import Tensor


def flops(event: FunctionEvent, inputs: Sequence[Any], result: Any) -> int | None:
    """The number for products, convolutions, `add` and `mul`; None for other operators, and where a part of the event has one.

    A multiplication and an addition are two operations. The bias of `addmm` is none, as in PyTorch.
    """
    formula = _FORMULAS.get(event.name)
    if formula is None or not isinstance(result, Tensor) or any(each.flops for each in event.cpu_children):
        return None
    tensors = [result, *[each for each in inputs if isinstance(each, Tensor)]]
    if any(type(each.spec) is not Spec for each in tensors):  # sizes of nested tensors are no numbers
        return None
    first, *others = [each.spec.shape for each in tensors]
    return formula(others, first)


def _product(position: int) -> Callable[[Sequence[Any], Sequence[int]], int]:
    """Of products whose first factor is the argument at this position."""
    return lambda given, result: 2 * math.prod(result) * given[position][-1]


def _convolution(given: Sequence[Any], result: Sequence[int]) -> int:
    """Each element of the result is a product of a filter of the weight with a window."""
    return 2 * math.prod(result) * math.prod(given[1][1:])


def _elementwise(given: Sequence[Any], result: Sequence[int]) -> int:
    return math.prod(result)


_FORMULAS = {
    "aten::mm": _product(0), "aten::bmm": _product(0), "aten::addmm": _product(1), "aten::baddbmm": _product(1),
    "aten::conv1d": _convolution, "aten::conv2d": _convolution, "aten::conv3d": _convolution,
    "aten::add": _elementwise, "aten::mul": _elementwise,
}  # fmt: skip
