"""`torch.distributed.algorithms.ddp_comm_hooks.quantization_hooks`: gradients are sent in 8 bits, with the scale and zero point of each rank."""

from __future__ import annotations

from typing import Any

from ....core.dtype import float32, uint8
from ....core.futures import Future
from ....core.tensor import Tensor
from ....ops.assembly.joining import stack
from ....ops.assembly.padding import pad
from ..._collectives import all_gather
from ..._grad_bucket import GradBucket
from ..._group import ProcessGroup
from ..._world import _group_or_default_group

_LARGEST = 255
_LEAST_SCALE = 2.0**-23  # the scale of zeros


def _scales(channels: Tensor) -> Tensor:
    """The scale and the zero point of each row, in [2, rows, 1]: its elements and 0 lie between 0 and 255."""
    low, high = channels.amin(1, keepdim=True).clamp(max=0), channels.amax(1, keepdim=True).clamp(min=0)
    scale = ((high - low) / _LARGEST).clamp(min=_LEAST_SCALE)
    return stack([scale, (-(low / scale).round()).clamp(0, _LARGEST)]).to(float32)


def _averaged(process_group: ProcessGroup | None, bucket: GradBucket, channels: Tensor) -> Future[Tensor]:
    """The average of the rows of `channels`, which have the elements of the bucket. Each row of a rank has a scale."""
    group = _group_or_default_group(process_group)
    settings = _scales(channels)
    of_all = [settings.new_empty(settings.shape) for _ in range(group.size())]
    all_gather(of_all, settings, group=group)
    scale, zero_point = settings
    quantized = ((channels / scale).round() + zero_point).clamp(0, _LARGEST).to(uint8)
    outputs = [quantized.new_empty(quantized.shape) for _ in range(group.size())]
    work = group.allgather([outputs], [quantized])  # type: ignore[attr-defined]

    def average(done: Future[Any]) -> Tensor:
        total = settings.new_zeros(channels.shape)
        for (scale, zero_point), output in zip(of_all, outputs):
            total += scale * (output.to(float32) - zero_point)
        return total.reshape(-1)[: bucket.buffer().numel()] / group.size()

    return work.get_future().then(average)


def quantization_pertensor_hook(process_group: ProcessGroup, bucket: GradBucket) -> Future[Tensor]:
    """Average the gradients of all ranks in 8 bits, with one scale for a bucket of a rank."""
    return _averaged(process_group, bucket, bucket.buffer().unsqueeze(0))


def quantization_perchannel_hook(
    process_group: ProcessGroup, bucket: GradBucket, bucket_size: int = 512
) -> Future[Tensor]:
    """Average the gradients of all ranks in 8 bits, with one scale for `bucket_size` elements of a rank."""
    row = bucket.buffer()
    channels = pad(row, (0, -row.numel() % bucket_size)).view(-1, bucket_size)
    return _averaged(process_group, bucket, channels)
