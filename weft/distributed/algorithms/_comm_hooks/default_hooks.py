"""`torch.distributed.algorithms._comm_hooks.default_hooks`: hooks that average the gradients of FullyShardedDataParallel, also in 16 bits.

A hook gets the gradients of a module in a row, and for strategies that cut parameters also the row of this process, which it fills.
"""

from __future__ import annotations

from typing import Any

from ....core.dtype import DTYPES, DType, float32
from ....core.tensor import Tensor
from ..._collectives import all_reduce, reduce_scatter_single


class DefaultState:
    """The ranks, and the factors by which gradients are divided before and after they are added up.

    Both are near the square root of the number of ranks, so that neither the gradients nor their sums leave the range of 16 bits.

    Raises: ValueError without a group.
    """

    __slots__ = ["process_group", "world_size", "gradient_predivide_factor", "gradient_postdivide_factor"]

    def __init__(self, process_group: Any) -> None:
        if process_group is None:
            raise ValueError(f"Expected to pass in an explicit ProcessGroup to {self}.")
        self.process_group = process_group
        self.world_size = process_group.size()
        self.gradient_predivide_factor = self._get_gradient_predivide_factor(self.world_size)
        self.gradient_postdivide_factor = self.world_size / self.gradient_predivide_factor

    @staticmethod
    def _get_gradient_predivide_factor(world_size: int) -> float:
        factor = 1
        while world_size % factor == 0 and world_size > factor * factor:
            factor *= 2
        return float(factor)


class LowPrecisionState(DefaultState):
    """The same for hooks that send fewer bits. `parameter_type`: the dtype of averages."""

    __slots__ = ["parameter_type"]

    def __init__(self, process_group: Any, parameter_type: DType = float32) -> None:
        super().__init__(process_group)
        self.parameter_type = parameter_type


def allreduce_hook(state: DefaultState, grad: Tensor) -> None:
    """Average gradients that all ranks have as a whole."""
    grad.div_(state.gradient_predivide_factor)
    all_reduce(grad, group=state.process_group)
    grad.div_(state.gradient_postdivide_factor)


def reduce_scatter_hook(state: DefaultState, grad: Tensor, output: Tensor) -> None:
    """Average gradients of which each rank gets a part."""
    grad.div_(state.gradient_predivide_factor)
    reduce_scatter_single(output, grad, group=state.process_group)
    output.div_(state.gradient_postdivide_factor)


def _in_precision(dtype: DType, state: LowPrecisionState, grad: Tensor, output: Tensor | None) -> None:
    sent = grad.to(dtype)
    if output is None:
        allreduce_hook(state, sent)
        grad.data = sent.to(state.parameter_type)
    else:
        part = output.to(dtype)
        reduce_scatter_hook(state, sent, part)
        output.data = part.to(state.parameter_type)


def fp16_compress_hook(state: LowPrecisionState, grad: Tensor, output: Tensor | None = None) -> None:
    """Average gradients in float16."""
    _in_precision(DTYPES["float16"], state, grad, output)


def bf16_compress_hook(state: LowPrecisionState, grad: Tensor, output: Tensor | None = None) -> None:
    """Average gradients in bfloat16."""
    _in_precision(DTYPES["bfloat16"], state, grad, output)
