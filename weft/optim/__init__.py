"""weft.optim: optimizers, schedules of learning rates, averages of weights."""

from ..compat.missing import module_getattr
from ..core.names import name_public
from . import lr_scheduler
from .adadelta import Adadelta
from .adafactor import Adafactor
from .adagrad import Adagrad
from .adam import Adam
from .adamax import Adamax
from .adamw import AdamW
from .asgd import ASGD
from .lbfgs import LBFGS
from .muon import Muon
from .nadam import NAdam
from .optimizer import Optimizer
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD
from .sparse_adam import SparseAdam
from .swapping import swap_in_optimizer_params_and_state

__all__ = [
    "ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon", "NAdam",
    "Optimizer", "RAdam", "RMSprop", "Rprop", "SGD", "SparseAdam", "lr_scheduler",
    "swap_in_optimizer_params_and_state", "swa_utils",
]  # fmt: skip

# This module is loaded when it is first used, because it needs weft.nn.
__getattr__ = module_getattr(__name__, ("swa_utils",))

name_public(__name__, "optim.adafactor", "optim.muon", "optim.swapping")
