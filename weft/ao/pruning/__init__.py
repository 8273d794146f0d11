"""`torch.ao.pruning`: weights that are set to 0 while a model is trained, more of them with time."""

from ...compat.missing import module_getattr
from .scheduler.base_scheduler import BaseScheduler
from .scheduler.cubic_scheduler import CubicSL
from .scheduler.lambda_scheduler import LambdaSL
from .sparsifier.base_sparsifier import BaseSparsifier
from .sparsifier.nearly_diagonal_sparsifier import NearlyDiagonalSparsifier
from .sparsifier.utils import FakeSparsity, fqn_to_module, get_arg_info_from_tensor_fqn, module_to_fqn
from .sparsifier.weight_norm_sparsifier import WeightNormSparsifier

__all__ = [
    "BaseScheduler", "BaseSparsifier", "CubicSL", "FakeSparsity", "LambdaSL", "NearlyDiagonalSparsifier",
    "WeightNormSparsifier", "fqn_to_module", "get_arg_info_from_tensor_fqn", "module_to_fqn",
]  # fmt: skip
__getattr__ = module_getattr(__name__, ("scheduler", "sparsifier"))
