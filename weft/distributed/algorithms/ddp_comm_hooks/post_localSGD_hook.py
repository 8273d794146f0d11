"""`torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook`: gradients are averaged by all ranks at first, then by groups of them.

The optimizer, or an averager of `torch.distributed.algorithms.model_averaging`, then averages the parameters of all ranks from time to time.
"""

from __future__ import annotations

import logging

from ....core.futures import Future
from ....core.tensor import Tensor
from ..._grad_bucket import GradBucket
from ..._group import ProcessGroup
from ..._groups import new_subgroups
from .debugging_hooks import noop_hook
from .default_hooks import _allreduce_fut

logger = logging.getLogger(__name__)


class PostLocalSGDState:
    """The settings of post-local SGD.

    Args:
        process_group: the ranks that average at first; the default group if it is None.
        subgroup: the ranks that average later; if it is None, those with an accelerator in one machine.
        start_localSGD_iter: the first iteration whose gradients the subgroup averages.
        post_local_gradient_allreduce: whether the subgroup averages them; else each rank has its own.
    """

    __slots__ = ["process_group", "subgroup", "start_localSGD_iter", "post_local_gradient_allreduce", "iter"]

    def __init__(
        self,
        process_group: ProcessGroup | None,
        subgroup: ProcessGroup | None,
        start_localSGD_iter: int,
        post_local_gradient_allreduce: bool = True,
    ) -> None:
        self.process_group = process_group
        self.subgroup = subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count an iteration with its last bucket."""
        if bucket.is_last():
            self.iter += 1
        if self.iter == self.start_localSGD_iter:
            logger.info("subgroups average gradients from iteration %s on", self.iter)


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> Future[Tensor]:  # noqa: N802 (PyTorch's name)
    """Average the gradients of all ranks, or from an iteration on of a subgroup.

    Raises: ValueError without a subgroup where there is no accelerator.
    """
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return _allreduce_fut(state.process_group, bucket.buffer())
    if not state.post_local_gradient_allreduce:
        return noop_hook(state, bucket)
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups()
    return _allreduce_fut(state.subgroup, bucket.buffer())
