"""`torch.distributed.tensor.parallel`: plans that cut the layers of a model."""

from ....compat.missing import module_getattr
from .api import parallelize_module
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
