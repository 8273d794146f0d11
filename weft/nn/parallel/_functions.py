"""The steps of data parallelism as differentiable functions."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Any

from ...autograd.function import Function
from ...core.tensor import Tensor
from ...core.warn import user_level
from . import comm


def _refuse_cpu(name: str, inputs: Sequence[Tensor]) -> None:
    if any(each.device.type == "cpu" for each in inputs):
        raise AssertionError(f"{name} function not implemented for CPU tensors")


class Broadcast(Function):
    """Makes copies of tensors on several GPUs: all of the first GPU, then all of the next. Gradients are added where the tensors are."""

    @staticmethod
    def forward(ctx: Any, target_gpus: Sequence[Any], *inputs: Tensor) -> Any:
        _refuse_cpu("Broadcast", inputs)
        if not inputs:
            return ()
        ctx.input_device, ctx.num_inputs = inputs[0].device, len(inputs)
        rows = comm.broadcast_coalesced(inputs, target_gpus)
        needed = ctx.needs_input_grad[1:]
        ctx.mark_non_differentiable(
            *[copy for row in rows for copy, is_needed in zip(row, needed, strict=True) if not is_needed]
        )
        return tuple(itertools.chain.from_iterable(rows))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, *ReduceAddCoalesced.apply(ctx.input_device, ctx.num_inputs, *grads)


class ReduceAddCoalesced(Function):
    """Computes sums over GPUs of `num_inputs` tensors on each of them."""

    @staticmethod
    def forward(ctx: Any, destination: Any, num_inputs: int, *grads: Tensor) -> Any:
        rows = [grads[start : start + num_inputs] for start in range(0, len(grads), num_inputs)]
        ctx.target_gpus = [row[0].device for row in rows]
        return comm.reduce_add_coalesced(rows, destination)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, *Broadcast.apply(ctx.target_gpus, *grads)


class Gather(Function):
    """Joins tensors on several GPUs into one."""

    @staticmethod
    def forward(ctx: Any, target_device: Any, dim: int, *inputs: Tensor) -> Any:
        _refuse_cpu("Gather", inputs)
        ctx.is_of_scalars = dim == 0 and all(each.dim() == 0 for each in inputs)
        if ctx.is_of_scalars:
            warnings.warn(
                "Was asked to gather along dimension 0, but all input tensors were scalars; "
                "will instead unsqueeze and return a vector.",
                stacklevel=user_level(),
            )
            inputs = tuple(each.view(1) for each in inputs)
        ctx.dim, ctx.gpus = dim, [each.device for each in inputs]
        ctx.sizes = [each.shape[dim] for each in inputs]
        return comm.gather(inputs, dim, target_device)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        parts = Scatter.apply(ctx.gpus, ctx.sizes, ctx.dim, grad)
        return None, None, *((part[0] for part in parts) if ctx.is_of_scalars else parts)


class Scatter(Function):
    """Spreads the parts of a tensor over several GPUs."""

    @staticmethod
    def forward(ctx: Any, target_gpus: Sequence[Any], chunk_sizes: Any, dim: int, input: Tensor) -> Any:
        ctx.dim, ctx.place = dim, input.device
        return comm.scatter(input, target_gpus, chunk_sizes, dim)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, None, Gather.apply(ctx.place, ctx.dim, *grads)
