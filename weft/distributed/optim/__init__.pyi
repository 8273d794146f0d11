# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer as ZeroRedundancyOptimizer
from . import zero_redundancy_optimizer as zero_redundancy_optimizer
