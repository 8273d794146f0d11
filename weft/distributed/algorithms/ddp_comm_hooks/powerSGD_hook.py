"""`torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook`: gradients that are sent as products of narrow matrices.

For the matrix M of a gradient all ranks have the same random Q. They add their P = M Q up, orthogonalize its columns, and average Q = M^T P: the
gradient becomes P Q^T. What that leaves of the gradient of a rank is added to its next one.

Source: Vogels, Karimireddy, Jaggi 2019, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization".
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.dtype import DTYPES
from ....core.futures import Future
from ....core.generator import Generator
from ....core.tensor import Tensor
from ....ops.assembly.joining import cat, stack
from ....ops.creation.random import randn
from ....ops.linalg.factorizations import linalg_qr
from ..._collectives import all_reduce
from ..._grad_bucket import GradBucket
from ..._group import ProcessGroup
from ..._world import _get_default_group, _group_or_default_group
from .default_hooks import _allreduce_fut

__all__ = ["PowerSGDState", "powerSGD_hook", "batched_powerSGD_hook"]

logger = logging.getLogger(__name__)


class PowerSGDState:
    """The settings of PowerSGD, and what it remembers from one iteration to the next.

    Args:
        process_group: the ranks that average; the default group if it is None.
        matrix_approximation_rank: how many columns P and Q have. More of them send more and lose less.
        start_powerSGD_iter: the iterations before this one average whole gradients, because the first ones matter most.
        min_compression_rate: a matrix is sent whole unless its elements are more than this times those of P and Q.
        use_error_feedback: whether a rank adds what was lost of its gradient to the next one.
        warm_start: whether P and Q of an iteration are those that the next one begins with.
        orthogonalization_epsilon: added to the norms of columns, so that gradients of zeros can be divided by them.
        random_seed: of the first Q, and of each Q without `warm_start`.
        compression_stats_logging_frequency: how many iterations lie between two log messages with `compression_stats`.
        batch_tensors_with_same_shape: whether matrices of one shape are multiplied at once.

    Raises: ValueError if `start_powerSGD_iter` is below 2 with `use_error_feedback` or `warm_start`: buckets change after the first iteration.

    >>> import weft as torch
    >>> from weft.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
    >>> state = PowerSGDState(None, start_powerSGD_iter=2)
    >>> model.register_comm_hook(state, powerSGD_hook)
    >>> for _ in range(3):
    ...     model(torch.ones(1, 8)).sum().backward()
    >>> state.compression_stats()
    (3.0, 72, 24)
    >>> dist.destroy_process_group()
    """

    __slots__ = [
        "process_group",
        "matrix_approximation_rank",
        "start_powerSGD_iter",
        "min_compression_rate",
        "orthogonalization_epsilon",
        "use_error_feedback",
        "warm_start",
        "batch_tensors_with_same_shape",
        "rng",
        "error_dict",
        "p_memory_dict",
        "q_memory_dict",
        "iter",
        "total_numel_before_compression",
        "total_numel_after_compression",
        "compression_stats_logging_frequency",
        "next_stats_report",
    ]

    def __init__(
        self,
        process_group: ProcessGroup | None,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1_000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, "
                "because the buckets of gradients change after the first iteration."
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.use_error_feedback = use_error_feedback
        self.warm_start = warm_start
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape
        self.rng = np.random.RandomState(random_seed)
        # By the number of a bucket: what was lost of its gradients, and the elements of all its P and Q.
        self.error_dict: dict[int, Tensor] = {}
        self.p_memory_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, Tensor] = {}
        self.iter = 0
        self.total_numel_before_compression = 0
        self.total_numel_after_compression = 0
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.next_stats_report = 0

    def __getstate__(self) -> dict[str, Any]:
        """All but the process group."""
        logger.warning("the process group of a PowerSGDState is not saved")
        return {name: getattr(self, name) for name in self.__slots__ if name != "process_group"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Become a copy in the default group."""
        logger.warning(
            "a PowerSGDState is loaded into the default group; set its `process_group` for another one"
        )
        self.process_group = _get_default_group()
        for name, value in state.items():
            setattr(self, name, value)

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count an iteration with its last bucket."""
        if bucket.is_last():
            self.iter += 1
        if self.iter == self.start_powerSGD_iter:
            logger.info("PowerSGD compresses from iteration %s on", self.iter)

    def compression_stats(self) -> tuple[float, int, int]:
        """How many times fewer elements were sent, how many the gradients have, and how many were sent."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return before / after if after > 0 else 0, before, after

    def _count_elements(self, before: int, after: int) -> None:
        self.total_numel_before_compression += before
        self.total_numel_after_compression += after

    def _log_stats(self, bucket: GradBucket) -> None:
        if bucket.is_last() and self.iter >= self.next_stats_report:
            rate, before, after = self.compression_stats()
            logger.info(
                "PowerSGD, iteration %s: %s elements were sent as %s, rate %s", self.iter, before, after, rate
            )
            self.next_stats_report = self.iter + self.compression_stats_logging_frequency

    def _add_error(self, index: int, row: Tensor) -> Tensor | None:
        """Add what was lost in the iteration before; a copy of the sum, if what is lost in this one is to be kept."""
        if not self.use_error_feedback:
            return None
        if index in self.error_dict:
            row.add_(self.error_dict[index])
        return row.clone()


class _Factors:
    """Matrices of a bucket, each [batch, n, m], with P [batch, n, rank] and Q [batch, m, rank], which lie one after the other in two rows.

    `ranks`: of P and Q of each matrix. `epsilons`: for the orthogonalization of Q, of P.
    """

    def __init__(
        self,
        state: PowerSGDState,
        index: int,
        matrices: Sequence[Tensor],
        ranks: Sequence[int],
        epsilon: float,
    ) -> None:
        self.state, self.index, self.matrices, self.epsilon = state, index, matrices, epsilon
        shapes = [tuple(each.shape) for each in matrices]
        of_p = [(batch, n, rank) for (batch, n, _), rank in zip(shapes, ranks)]
        of_q = [(batch, m, rank) for (batch, _, m), rank in zip(shapes, ranks)]
        self.is_new = not state.warm_start or index not in state.p_memory_dict
        if self.is_new:
            like = matrices[0]
            state.p_memory_dict[index] = like.new_empty(sum(map(math.prod, of_p)))
            state.q_memory_dict[index] = like.new_empty(sum(map(math.prod, of_q)))
        self.ps, self.qs = _parts(self.p_row, of_p), _parts(self.q_row, of_q)

    @property
    def p_row(self) -> Tensor:
        return self.state.p_memory_dict[self.index]

    @property
    def q_row(self) -> Tensor:
        return self.state.q_memory_dict[self.index]

    def begin(self) -> None:
        """Compute P = M Q, from the Q of the iteration before or from random ones, which are the same on all ranks."""
        if self.is_new:
            generator = Generator().manual_seed(int(self.state.rng.randint(1_000_000_000)))
            for q in self.qs:
                q.copy_(randn(q.shape, generator=generator, dtype=q.dtype))
        for matrix, p, q in zip(self.matrices, self.ps, self.qs):
            _orthogonalize(q, self.epsilon)
            p.copy_(matrix.bmm(q))

    def finish(self, group: ProcessGroup) -> None:
        """From the sum of all P, let the matrices be P Q^T with the average Q."""
        for matrix, p, q in zip(self.matrices, self.ps, self.qs):
            _orthogonalize(p, self.epsilon)
            q.copy_(matrix.transpose(1, 2).bmm(p))
        all_reduce(self.q_row, group=group)
        self.q_row.div_(group.size())
        for matrix, p, q in zip(self.matrices, self.ps, self.qs):
            matrix.copy_(p.bmm(q.transpose(1, 2)))


def _parts(row: Tensor, shapes: Sequence[tuple[int, ...]]) -> list[Tensor]:
    return [part.view(shape) for part, shape in zip(row.split([*map(math.prod, shapes)]), shapes)]


def _orthogonalize(matrices: Tensor, epsilon: float = 0) -> None:
    """Let the columns of each matrix be orthonormal, in place.

    QR needs fewer passes, but not for two columns, and does not exist for 16 bits.
    """
    if matrices.shape[2] > 2 and matrices.dtype not in (DTYPES["float16"], DTYPES["bfloat16"]):
        matrices.copy_(linalg_qr(matrices)[0])
        return
    for place in range(matrices.shape[2]):
        column, rest = matrices[:, :, place : place + 1], matrices[:, :, place + 1 :]
        column /= column.norm(dim=1, keepdim=True) + epsilon
        rest -= (column * rest).sum(1, keepdim=True) * column


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:  # noqa: N802 (PyTorch's name)
    """Average the gradients of a bucket, and send those that are matrices as products of narrow ones.

    A gradient of more than two dims is a matrix with as many rows as its first size. Those that would shrink too little are averaged as they are.
    """
    group = _group_or_default_group(state.process_group)
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return _allreduce_fut(group, bucket.buffer())
    row, index = bucket.buffer(), bucket.index()
    corrected = state._add_error(index, row)
    matrices, others = _sorted_out(state, bucket.gradients())
    state._log_stats(bucket)
    stacked = [stack(alike) for alike in matrices]
    factors = None
    if matrices:
        ranks = [min(*each.shape[1:], state.matrix_approximation_rank) for each in stacked]
        factors = _Factors(state, index, stacked, ranks, state.orthogonalization_epsilon)
        factors.begin()
    # One message has all P and the gradients that are sent whole.
    sent = cat([*([factors.p_row] if factors else []), *[each.reshape(-1) for each in others]])

    def finish(done: Future[Any]) -> Tensor:
        whole = done.value()[0]
        if factors is not None:
            factors.p_row.copy_(whole[: factors.p_row.numel()])
            factors.finish(group)
            for alike, batch in zip(matrices, stacked):
                for matrix, found in zip(alike, batch):
                    matrix.copy_(found)
        start = sent.numel() - sum(each.numel() for each in others)
        averages = (whole[start:] / group.size()).split([each.numel() for each in others])
        for each, average in zip(others, averages):
            each.copy_(average.view(each.shape))
        return _finished(state, bucket, row, corrected)

    return group.allreduce([sent]).get_future().then(finish)  # type: ignore[attr-defined]


def _sorted_out(state: PowerSGDState, gradients: Sequence[Tensor]) -> tuple[list[list[Tensor]], list[Tensor]]:
    """Matrices that are to be compressed, by batch, and the gradients that are not."""
    by_shape: dict[tuple[int, ...], list[Tensor]] = {}
    others = []
    for gradient in gradients:
        matrix = gradient.view(gradient.shape[0] if gradient.ndim else 1, -1)
        n, m = matrix.shape
        compressed = (n + m) * min(n, m, state.matrix_approximation_rank)
        if compressed * state.min_compression_rate < n * m:
            by_shape.setdefault((n, m), []).append(matrix)
            state._count_elements(n * m, compressed)
        else:
            others.append(gradient)
            state._count_elements(n * m, n * m)
    if state.batch_tensors_with_same_shape:
        return list(by_shape.values()), others
    return [[each] for alike in by_shape.values() for each in alike], others


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:  # noqa: N802 (PyTorch's name)
    """Average the gradients of a bucket, which as a whole is one square matrix that is sent as a product of narrow ones.

    Faster than `powerSGD_hook`, and less accurate. PyTorch 2.13 raises AssertionError here, from iteration `start_powerSGD_iter` on.
    """
    group = _group_or_default_group(state.process_group)
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return _allreduce_fut(group, bucket.buffer())
    given, index = bucket.buffer(), bucket.index()
    side = math.isqrt(max(given.numel() - 1, 0)) + 1
    state._count_elements(given.numel(), 2 * side * state.matrix_approximation_rank)
    state._log_stats(bucket)
    row = cat([given, given.new_zeros(side * side - given.numel())])
    corrected = state._add_error(index, row)
    factors = _Factors(state, index, [row.view(1, side, side)], [state.matrix_approximation_rank], 0)
    factors.begin()

    def finish(done: Future[Any]) -> Tensor:
        factors.finish(group)
        return _finished(state, bucket, row, corrected)[: given.numel()]

    return group.allreduce([factors.p_row]).get_future().then(finish)  # type: ignore[attr-defined]


def _finished(state: PowerSGDState, bucket: GradBucket, row: Tensor, corrected: Tensor | None) -> Tensor:
    """The averages, after what was lost is kept for the next iteration."""
    if corrected is not None:
        state.error_dict[bucket.index()] = corrected - row
    if not state.warm_start:
        state.p_memory_dict.clear()
        state.q_memory_dict.clear()
    state.maybe_increase_iter(bucket)
    return row
