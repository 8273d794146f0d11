"""Schedules change learning rates (and momenta) from epoch to epoch, or from batch to batch."""

from ...core.names import name_public
from .base import EPOCH_DEPRECATION_WARNING, LRScheduler, _LRScheduler
from .combined import ChainedScheduler, SequentialLR
from .cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from .decays import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from .plateau import ReduceLROnPlateau

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR",
    "EPOCH_DEPRECATION_WARNING", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR",
    "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
    "_LRScheduler",
]  # fmt: skip

name_public(
    __name__,
    "optim.lr_scheduler.base",
    "optim.lr_scheduler.combined",
    "optim.lr_scheduler.cycles",
    "optim.lr_scheduler.decays",
    "optim.lr_scheduler.plateau",
)
