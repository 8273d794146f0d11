# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from .style import ColwiseParallel as ColwiseParallel
from .style import ParallelStyle as ParallelStyle
from .style import PrepareModuleInput as PrepareModuleInput
from .style import PrepareModuleInputOutput as PrepareModuleInputOutput
from .style import PrepareModuleOutput as PrepareModuleOutput
from .style import RowwiseParallel as RowwiseParallel
from .style import SequenceParallel as SequenceParallel
from . import api as api
from . import loss as loss
from weft.distributed.tensor._regions import loss_parallel as loss_parallel
from .api import parallelize_module as parallelize_module
from . import style as style
