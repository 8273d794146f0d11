"""`torch.distributed.tensor.parallel`: plans that cut the layers of a model. Carrying a plan out is declared only."""

from ....compat.missing import module_getattr
from .style import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
)

__getattr__ = module_getattr(__name__)
