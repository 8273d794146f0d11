"""Batch normalization over the batches of all ranks of a group, for SyncBatchNorm."""

from __future__ import annotations

from typing import Any

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..ops.assembly.joining import cat
from ..ops.creation.from_data import tensor
from ._world import _group_or_default_group, is_initialized
from .nn.functional import all_reduce


def group_of(process_group: Any) -> Any:
    """The group that a layer normalizes over, None if that is this process alone."""
    if process_group is None and not is_initialized():
        return None
    group = _group_or_default_group(process_group)
    return group if group.size() > 1 else None


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    momentum: float,
    eps: float,
    group: Any,
) -> Tensor:
    """Normalize each channel by the mean and the variance over all ranks, whose batches may differ in size.

    Shapes: [N, C, ...] -> the same; N may be 0 on some ranks.
    Raises: ValueError if all ranks together have one value for each channel.
    """
    dims = [0, *range(2, input.dim())]
    shape = [1, -1, *[1] * (input.dim() - 2)]
    own = input.numel() // max(input.size(1), 1)
    # The deviations from the mean are summed afterwards: the difference of two large sums would be less accurate.
    sums = all_reduce(cat([input.sum(dims), tensor([own], dtype=input.dtype)]), group=group)
    count = float(sums[-1].detach())
    if count == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {input.size()}"
        )
    mean = sums[:-1] / count
    deviation = input - mean.view(shape)
    var = all_reduce(deviation.square().sum(dims), group=group) / count
    with no_grad():
        if running_mean is not None:
            running_mean.lerp_(mean.detach().to(running_mean.dtype), momentum)
        if running_var is not None:
            running_var.lerp_((var.detach() * (count / (count - 1))).to(running_var.dtype), momentum)
    result = deviation * (var + eps).rsqrt().view(shape)
    if weight is not None:
        result = result * weight.view(shape)
    return result if bias is None else result + bias.view(shape)
