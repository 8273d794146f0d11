"""Reducer: averages gradients over the ranks of a group while a backward pass still computes others.

Gradients are put into buckets, those of the last parameters first, because a backward pass computes them first. As soon as all gradients
of a bucket are there, its collective begins in the thread of the group. Buckets begin in their order, which is the same on all ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.current_pass import ExecutionEngine
from ..core.dtype import int32
from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..ops.assembly.joining import cat
from ..ops.creation.creation import zeros_like
from ..ops.creation.from_data import tensor
from ._collectives import all_reduce
from ._grad_bucket import GradBucket
from ._group import ProcessGroup
from ._options import AllreduceOptions

FIRST_BUCKET = 1 << 20  # bytes; PyTorch's limit of the first bucket, so that the first message leaves early

Hook = Callable[[Any, GradBucket], Any]


class _Bucket:
    """Parameters whose gradients are averaged at once."""

    def __init__(self, index: int, parameters: list[Tensor]) -> None:
        self.index = index
        self.parameters = parameters
        self.missing: set[int] = set()  # the ids of parameters whose gradients are not there yet
        self.views: list[Tensor] = []  # parts of the buffer that are the gradients, if they are to be views
        self.sent: GradBucket | None = None
        self.work: Any = None

    def collect(self, as_views: bool) -> Tensor:
        """All gradients in one row, zeros for those that are not there. `as_views`: they become views of that row."""
        gradients = [_gradient(each) for each in self.parameters]
        if not as_views:
            return cat([each.reshape(-1) for each in gradients])
        if not self.views:
            self.row = cat([each.reshape(-1) for each in gradients])
            parts = self.row.split([each.numel() for each in self.parameters])
            self.views = [part.view(each.shape) for part, each in zip(parts, self.parameters)]
        else:
            for view, gradient in zip(self.views, gradients):
                if gradient is not view:
                    view.copy_(gradient)
        return self.row

    def write_back(self, averaged: Sequence[Tensor], unused: set[int]) -> None:
        """Let the gradients be these, but for the parameters with the ids `unused`."""
        places: Sequence[Tensor | None] = self.views or [None] * len(self.parameters)
        for parameter, average, view in zip(self.parameters, averaged, places):
            if id(parameter) in unused:
                continue
            if view is not None:
                if average.data_ptr() != view.data_ptr():
                    view.copy_(average)
                parameter.grad = view
            elif parameter.grad is None:
                parameter.grad = average.clone()
            else:
                parameter.grad.copy_(average)


def _gradient(parameter: Tensor) -> Tensor:
    return zeros_like(parameter) if parameter.grad is None else parameter.grad


class Reducer:
    """Averages the gradients of `parameters` over the ranks of `group`.

    `bucket_bytes`: the size of all buckets but the first. `find_unused`: some parameters may get no gradient in a pass.
    `as_views`: gradients become views of the buckets.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        group: ProcessGroup,
        bucket_bytes: int,
        find_unused: bool,
        as_views: bool,
    ) -> None:
        self.parameters = list(parameters)
        self.group = group
        self.find_unused = find_unused
        self.as_views = as_views
        self.divisor = group.size()  # PyTorch divides before it adds
        self.hook: tuple[Hook, Any] | None = None
        self.buckets = [_Bucket(*each) for each in enumerate(grouped(parameters, bucket_bytes))]
        self.bucket_of = {id(each): bucket for bucket in self.buckets for each in bucket.parameters}
        self.active = False  # whether the next backward pass averages
        self.begun = 0  # how many buckets have begun
        self.callback_queued = False
        # The ids of parameters that had a gradient since the last average: those of passes that only accumulated count, too.
        self.used: set[int] = set()
        # Parameters without gradients in the last pass, for which nobody was prepared.
        self.unused: list[int] = []
        self.handles = [
            each.register_post_accumulate_grad_hook(self._gradient_is_ready) for each in parameters
        ]

    def prepare(self) -> None:
        """Let the next backward pass average.

        Raises: RuntimeError if the last one left parameters without gradients.
        """
        if self.unused:
            raise RuntimeError(
                "Expected to have finished reduction in the prior iteration before starting a new one. This error "
                "indicates that your module has parameters that were not used in producing loss. Pass "
                "`find_unused_parameters=True` to DistributedDataParallel, and let all outputs of `forward` take part in "
                f"the loss. Parameter indices which did not receive grad for rank {self.group.rank()}: "
                + " ".join(map(str, self.unused))
            )
        self.active = True
        self.begun = 0
        self.callback_queued = False
        for bucket in self.buckets:
            bucket.missing = {id(each) for each in bucket.parameters}
            bucket.sent = bucket.work = None

    def _gradient_is_ready(self, parameter: Tensor) -> None:
        if self.find_unused:
            self.used.add(id(parameter))
        if not self.active:
            return
        if not self.callback_queued:
            self.callback_queued = True
            ExecutionEngine().queue_callback(self._finish)
        self.bucket_of[id(parameter)].missing.discard(id(parameter))
        self._begin_full_buckets()

    def _begin_full_buckets(self) -> None:
        while self.begun < len(self.buckets) and not self.buckets[self.begun].missing:
            self._begin(self.buckets[self.begun])
            self.begun += 1

    def _begin(self, bucket: _Bucket) -> None:
        """Begin to average a bucket."""
        is_last = bucket.index == len(self.buckets) - 1
        with no_grad():
            bucket.sent = GradBucket(bucket.index, bucket.collect(self.as_views), bucket.parameters, is_last)
            if self.hook is not None:
                hook, state = self.hook
                bucket.work = hook(state, bucket.sent)
                return
            buffer = bucket.sent.buffer()
            buffer.div_(self.divisor)
            options = AllreduceOptions()
            options.asyncOp = not is_last  # nothing is computed during the last one
            bucket.work = self.group.allreduce([buffer], options)  # type: ignore[attr-defined]

    def _finish(self) -> None:
        """The end of a backward pass."""
        self.active = False
        if self.find_unused:
            for bucket in self.buckets:
                bucket.missing.clear()
            self._begin_full_buckets()
            # Ranks begin buckets at different times, so that only what comes after all buckets comes at the same place everywhere.
            counts = self._count([id(each) in self.used for each in self.parameters])
            unused = {id(each) for each, count in zip(self.parameters, counts) if not count}
            self.used.clear()
        else:
            unused = set()
        indices = {id(each): index for index, each in enumerate(self.parameters)}
        self.unused = sorted(indices[each] for bucket in self.buckets for each in bucket.missing)
        with no_grad():
            for bucket in self.buckets[: self.begun]:
                assert bucket.sent is not None
                result = bucket.work.wait()
                if self.hook is not None:
                    bucket.sent.set_buffer(result[0] if isinstance(result, list | tuple) else result)
                bucket.write_back(bucket.sent.gradients(), unused)
                bucket.sent = bucket.work = None

    def _count(self, used: Sequence[bool]) -> list[int]:
        """How many ranks use each parameter."""
        counts = tensor([int(each) for each in used], dtype=int32)
        all_reduce(counts, group=self.group)
        return counts.tolist()

    def shadow(self) -> None:
        """Take part in the backward pass of other ranks with gradients of zero."""
        for bucket in self.buckets:
            row = cat([zeros_like(each).reshape(-1) for each in bucket.parameters])
            if self.hook is not None:
                hook, state = self.hook
                hook(
                    state, GradBucket(bucket.index, row, bucket.parameters, bucket is self.buckets[-1])
                ).wait()
            else:
                all_reduce(row, group=self.group)
        if self.find_unused:
            self._count([False] * len(self.parameters))


def grouped(parameters: Sequence[Tensor], bucket_bytes: int) -> list[list[Tensor]]:
    """Parameters by bucket: the first bucket has the last parameters. A bucket has one dtype."""
    buckets: list[list[Tensor]] = []
    size, limit = 0, 0
    for parameter in reversed(parameters):
        if not buckets or size >= limit or parameter.dtype != buckets[-1][0].dtype:
            limit = bucket_bytes if buckets else min(FIRST_BUCKET, bucket_bytes)
            buckets.append([])
            size = 0
        buckets[-1].append(parameter)
        size += parameter.numel() * parameter.element_size()
    return [bucket[::-1] for bucket in buckets]
