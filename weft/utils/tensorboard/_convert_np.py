"""Anything that programs log as numbers, as a NumPy array."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtype import bfloat16, float16
from ...core.tensor import Tensor


def make_np(x: Any) -> np.ndarray:
    """Return a tensor, array or number as an array; a number gives an array of one element.

    >>> make_np(2.5)
    array([2.5])
    """
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    if isinstance(x, Tensor):
        return _prepare_pytorch(x)
    raise NotImplementedError(
        f"expected a tensor, a numpy array or a number, and got a value of type {type(x)}: pass np.array(value)"
    )


def _prepare_pytorch(x: Tensor) -> np.ndarray:
    """Return the values of a tensor. bfloat16 becomes float16, because plain NumPy has no bfloat16."""
    return (x.to(float16) if x.dtype == bfloat16 else x).detach().cpu().numpy()
