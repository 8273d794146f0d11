"""Small functions that programs take from `torch.distributions.utils`."""

from __future__ import annotations

import weft
import weft.nn.functional

from ..core.tensor import Tensor
from .distribution import broadcast_parameters as broadcast_all
from .logits import clamped as clamp_probs
from .triangles import tril_matrix_to_vec, vec_to_tril_matrix

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of log-odds (`is_binary`), or of scores along the last dim."""
    return weft.sigmoid(logits) if is_binary else weft.softmax(logits, -1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The inverse of `logits_to_probs`, finite for probabilities of 0 and 1."""
    probs = clamp_probs(probs)
    return probs.log() - (-probs).log1p() if is_binary else probs.log()
