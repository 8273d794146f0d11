"""`torch.distributed.algorithms.ddp_comm_hooks.debugging_hooks`: a hook that does nothing."""

from typing import Any

from ....core.futures import Future
from ....core.tensor import Tensor
from ..._grad_bucket import GradBucket

__all__ = ["noop_hook"]


def noop_hook(_: Any, bucket: GradBucket) -> Future[Tensor]:
    """Leave the gradients of each rank as they are, to see what averaging costs."""
    future: Future[Tensor] = Future()
    future.set_result(bucket.buffer())
    return future
