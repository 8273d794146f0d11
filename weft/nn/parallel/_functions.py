"""The steps of data parallelism as differentiable functions. There is no GPU, so all of them refuse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...autograd.function import Function
from ...core.tensor import Tensor
from . import comm


def _refuse_cpu(name: str, inputs: Sequence[Tensor]) -> None:
    if any(each.device.type == "cpu" for each in inputs):
        raise AssertionError(f"{name} function not implemented for CPU tensors")


class Broadcast(Function):
    """Makes copies of tensors on several GPUs."""

    @staticmethod
    def forward(ctx: Any, target_gpus: Sequence[Any], *inputs: Tensor) -> Any:
        _refuse_cpu("Broadcast", inputs)
        return tuple(comm.broadcast_coalesced(inputs, target_gpus)) if inputs else ()


class ReduceAddCoalesced(Function):
    """Computes sums over GPUs of `num_inputs` tensors on each of them."""

    @staticmethod
    def forward(ctx: Any, destination: Any, num_inputs: int, *grads: Tensor) -> Any:
        rows = [grads[start : start + num_inputs] for start in range(0, len(grads), num_inputs)]
        return comm.reduce_add_coalesced(rows, destination)


class Gather(Function):
    """Joins tensors on several GPUs into one."""

    @staticmethod
    def forward(ctx: Any, target_device: Any, dim: int, *inputs: Tensor) -> Any:
        _refuse_cpu("Gather", inputs)
        return comm.gather(inputs, dim, target_device)


class Scatter(Function):
    """Spreads the parts of a tensor over several GPUs."""

    @staticmethod
    def forward(ctx: Any, target_gpus: Sequence[Any], chunk_sizes: Any, dim: int, input: Tensor) -> Any:
        return comm.scatter(input, target_gpus, chunk_sizes, dim)
