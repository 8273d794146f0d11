"""`torch.distributed.nn`: collectives with gradients."""

from ...compat.missing import module_getattr
from .functional import (
    all_gather,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
)

__getattr__ = module_getattr(__name__)
