"""`torch.distributed.algorithms.ddp_comm_hooks.default_hooks`: hooks that average gradients, also in fewer bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....core.dtype import DTYPES, DType
from ....core.futures import Future
from ....core.tensor import Tensor
from ..._grad_bucket import GradBucket
from ..._group import ProcessGroup
from ..._world import _group_or_default_group

__all__ = [
    "allreduce_hook",
    "fp16_compress_hook",
    "bf16_compress_hook",
    "fp16_compress_wrapper",
    "bf16_compress_wrapper",
]

Hook = Callable[[Any, GradBucket], Future[Tensor]]


def _allreduce_fut(process_group: ProcessGroup | None, tensor: Tensor) -> Future[Tensor]:
    """The average of a tensor over all ranks, which is written into it."""
    group = _group_or_default_group(process_group)
    tensor.div_(group.size())
    work = group.allreduce([tensor])  # type: ignore[attr-defined]
    return work.get_future().then(lambda done: done.value()[0])


def allreduce_hook(process_group: ProcessGroup, bucket: GradBucket) -> Future[Tensor]:
    """Average the gradients of all ranks."""
    return _allreduce_fut(process_group, bucket.buffer())


def _compress_hook(dtype: DType, process_group: ProcessGroup, bucket: GradBucket) -> Future[Tensor]:
    buffer = bucket.buffer()
    return _allreduce_fut(process_group, buffer.to(dtype)).then(lambda done: buffer.copy_(done.value()))


def fp16_compress_hook(process_group: ProcessGroup, bucket: GradBucket) -> Future[Tensor]:
    """Average the gradients of all ranks in float16."""
    return _compress_hook(DTYPES["float16"], process_group, bucket)


def bf16_compress_hook(process_group: ProcessGroup, bucket: GradBucket) -> Future[Tensor]:
    """Average the gradients of all ranks in bfloat16."""
    return _compress_hook(DTYPES["bfloat16"], process_group, bucket)


def _wrapped(hook: Hook, dtype: DType) -> Hook:
    def compressed(hook_state: Any, bucket: GradBucket) -> Future[Tensor]:
        before = bucket.buffer()
        bucket.set_buffer(before.to(dtype))
        return hook(hook_state, bucket).then(lambda done: before.copy_(done.value()))

    return compressed


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Give a hook the gradients in float16."""
    return _wrapped(hook, DTYPES["float16"])


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Give a hook the gradients in bfloat16."""
    return _wrapped(hook, DTYPES["bfloat16"])
