# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from .scheduler.base_scheduler import BaseScheduler as BaseScheduler
from .sparsifier.base_sparsifier import BaseSparsifier as BaseSparsifier
from .scheduler.cubic_scheduler import CubicSL as CubicSL
from .sparsifier.utils import FakeSparsity as FakeSparsity
from .scheduler.lambda_scheduler import LambdaSL as LambdaSL
from .sparsifier.nearly_diagonal_sparsifier import NearlyDiagonalSparsifier as NearlyDiagonalSparsifier
from .sparsifier.weight_norm_sparsifier import WeightNormSparsifier as WeightNormSparsifier
from .sparsifier.utils import fqn_to_module as fqn_to_module
from .sparsifier.utils import get_arg_info_from_tensor_fqn as get_arg_info_from_tensor_fqn
from .sparsifier.utils import module_to_fqn as module_to_fqn
