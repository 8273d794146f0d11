"""`torch.distributed.optim`: optimizers of several processes, and optimizers that update parameters within backward passes."""

from ._functional import (
    _FunctionalAdadelta,
    _FunctionalAdagrad,
    _FunctionalAdam,
    _FunctionalAdamax,
    _FunctionalAdamW,
    _FunctionalRMSprop,
    _FunctionalRprop,
    _FunctionalSGD,
)
from .apply_optimizer_in_backward import _apply_optimizer_in_backward, _get_in_backward_optimizers
from .post_localSGD_optimizer import PostLocalSGDOptimizer
from .utils import as_functional_optim
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer
