"""The functions of `torch` that PyTorch writes in Python: `torch.functional`."""

from __future__ import annotations

from weft.core.registry import FUNCTIONS
from weft.nn import functional as F  # noqa: F401 (programs write `from torch.functional import F`)

__all__ = [  # noqa: F822 (they come from the table of functions)
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_shapes",
    "broadcast_tensors",
    "cartesian_prod",
    "cdist",
    "chain_matmul",
    "einsum",
    "istft",
    "lu",
    "meshgrid",
    "norm",
    "pca_lowrank",
    "split",
    "stft",
    "svd_lowrank",
    "tensordot",
    "unique",
    "unique_consecutive",
    "unravel_index",
]

globals().update({name: FUNCTIONS[name] for name in __all__})
