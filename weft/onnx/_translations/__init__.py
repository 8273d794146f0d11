"""The translations of functions to ONNX, in files by kind. `base.py` says what a translation is."""

from . import (
    activations,
    arithmetic,
    attention,
    comparison,
    convolution,
    creation,
    elementwise,
    images,
    indexing,
    joining,
    norms,
    ordering,
    pooling,
    products,
    recurrent,
    reductions,
    shapes,
    symbolic,
)
from .base import TRANSLATIONS

__all__ = [
    "TRANSLATIONS", "activations", "arithmetic", "attention", "comparison", "convolution", "creation", "elementwise", "images",
    "indexing", "joining", "norms", "ordering", "pooling", "products", "recurrent", "reductions", "shapes", "symbolic",
]  # fmt: skip
