"""Reducer: averages gradients over the ranks of a group while a backward pass still computes others.

In the first backward pass one bucket has all gradients, unless the user gives sizes. Afterwards the buckets follow the order in which the gradients of that pass
were computed on rank 0. As soon as all gradients of a bucket are there, its collective begins in the thread of the group. Buckets begin in their order,
which is the same on all ranks. If parameters may get no gradient, the order is unknown, and the buckets have the last parameters first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.current_pass import ExecutionEngine
from ..core.dtype import DType, int32, int64
from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..ops.assembly.joining import cat
from ..ops.creation.creation import zeros_like
from ..ops.creation.from_data import tensor
from ._collectives import all_reduce, broadcast
from ._grad_bucket import GradBucket
from ._group import ProcessGroup
from ._options import AllreduceOptions

DEFAULT_LIMITS = (
    1 << 20,
    25 << 20,
)  # bytes; PyTorch's: the first bucket is small, so that the first message leaves early

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
                parameter.grad = average.to(parameter.dtype, copy=True)
            else:
                parameter.grad.copy_(average)


def _gradient(parameter: Tensor) -> Tensor:
    return zeros_like(parameter) if parameter.grad is None else parameter.grad


class Reducer:
    """Averages the gradients of `parameters` over the ranks of `group`.

    `limits`: the sizes of the buckets in bytes; the last one holds for all that follow. `first_limits`: those of the first pass. `find_unused`: some parameters may get no gradient in a pass.
    `same_unused`: they are the same ones on all ranks. `as_views`: gradients become views of the buckets.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        group: ProcessGroup,
        first_limits: Sequence[float],
        limits: Sequence[float],
        find_unused: bool,
        as_views: bool,
        same_unused: bool = False,
    ) -> None:
        self.parameters = list(parameters)
        self.group = group
        self.find_unused = find_unused
        self.as_views = as_views
        self.same_unused = same_unused
        self.divisor = group.size()  # PyTorch divides before it adds
        self.hook: tuple[Hook, Any] | None = None
        self.limits = limits
        # The ids of parameters in the order of their gradients, from which the buckets are made again; None once they were.
        self.order: list[int] | None = None if find_unused else []
        self.averages = 0  # how many passes have averaged
        self._use_buckets(grouped_by_place(self.parameters, first_limits))
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

    def _use_buckets(self, groups: Sequence[list[Tensor]]) -> None:
        self.buckets = [_Bucket(*each) for each in enumerate(groups)]
        self.bucket_of = {id(each): bucket for bucket in self.buckets for each in bucket.parameters}

    def _order_buckets(self) -> None:
        """After the first average, let the buckets follow the order of the gradients on rank 0. All ranks do so at the same place."""
        if self.order is None or not self.averages:
            return
        places = {id(each): place for place, each in enumerate(self.parameters)}
        # Parameters without gradients come last: all of them on a rank that had no inputs (`join`).
        rest = [id(each) for each in reversed(self.parameters) if id(each) not in set(self.order)]
        sent = tensor([places[each] for each in (*self.order, *rest)], dtype=int64)
        broadcast(sent, group=self.group, group_src=0)
        self.order = None
        self._use_buckets(grouped([self.parameters[place] for place in sent.tolist()], self.limits))

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
        self._order_buckets()
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
        missing = self.bucket_of[id(parameter)].missing
        if self.order is not None and id(parameter) in missing:
            self.order.append(id(parameter))
        missing.discard(id(parameter))
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
        self.averages += 1
        if self.find_unused:
            for bucket in self.buckets:
                bucket.missing.clear()
            self._begin_full_buckets()
            # Ranks begin buckets at different times, so that only what comes after all buckets comes at the same place everywhere.
            used = [id(each) in self.used for each in self.parameters]
            counts = used if self.same_unused else self._count(used)
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
                    bucket.sent._receive(result)
                bucket.write_back(bucket.sent.gradients(), unused)
                bucket.sent = bucket.work = None

    def _count(self, used: Sequence[bool]) -> Sequence[int]:
        """How many ranks use each parameter."""
        counts = tensor([int(each) for each in used], dtype=int32)
        all_reduce(counts, group=self.group)
        return counts.tolist()

    def shadow(self) -> None:
        """Take part in the backward pass of other ranks with gradients of zero."""
        self._order_buckets()
        for bucket in self.buckets:
            row = cat([zeros_like(each).reshape(-1) for each in bucket.parameters])
            if self.hook is not None:
                hook, state = self.hook
                hook(
                    state, GradBucket(bucket.index, row, bucket.parameters, bucket is self.buckets[-1])
                ).wait()
            else:
                all_reduce(row, group=self.group)
        if self.find_unused and not self.same_unused:
            self._count([False] * len(self.parameters))


def grouped(parameters: Sequence[Tensor], limits: Sequence[float]) -> list[list[Tensor]]:
    """Parameters by bucket, in their order. A bucket has one dtype, and is full from its limit on, in bytes; the last limit holds for all that follow."""
    full: list[list[Tensor]] = []
    open_buckets: dict[DType, list[Tensor]] = {}
    sizes: Counter[DType] = Counter()  # of the open buckets, in bytes
    counts: Counter[DType] = Counter()  # of the full buckets
    for parameter in parameters:
        kind = parameter.dtype
        open_buckets.setdefault(kind, []).append(parameter)
        sizes[kind] += parameter.numel() * parameter.element_size()
        if sizes[kind] >= limits[min(counts[kind], len(limits) - 1)]:
            full.append(open_buckets.pop(kind))
            sizes[kind] = 0
            counts[kind] += 1
    return full + list(open_buckets.values())


def grouped_by_place(parameters: Sequence[Tensor], limits: Sequence[float]) -> list[list[Tensor]]:
    """As `grouped`; the bucket whose parameters come last in the module is the first, because a backward pass computes their gradients first."""
    places = {id(each): place for place, each in enumerate(parameters)}
    buckets = grouped(parameters, limits)
    return sorted(buckets, key=lambda bucket: min(places[id(each)] for each in bucket), reverse=True)
