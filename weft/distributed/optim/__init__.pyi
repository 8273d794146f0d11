# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from .post_localSGD_optimizer import PostLocalSGDOptimizer as PostLocalSGDOptimizer
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer as ZeroRedundancyOptimizer
from . import apply_optimizer_in_backward as apply_optimizer_in_backward
from .utils import as_functional_optim as as_functional_optim
from . import post_localSGD_optimizer as post_localSGD_optimizer
from . import utils as utils
from . import zero_redundancy_optimizer as zero_redundancy_optimizer
