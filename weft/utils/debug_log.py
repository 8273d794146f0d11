"""Logs of gradients."""

from __future__ import annotations

import logging
from typing import Any

from ..core.tensor import Tensor

__all__ = ["debug_grad_log"]

_log = logging.getLogger(__name__)


def debug_grad_log(*tensors: Tensor) -> None:
    """Log the norm of the gradient of each tensor, when backward has computed it.

    >>> import weft as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> debug_grad_log(x)
    >>> x.sum().backward()
    """
    for number, tensor in enumerate(tensors):
        if tensor.requires_grad:
            tensor.register_hook(_logging(number))


def _logging(number: int) -> Any:
    def hook(gradient: Tensor) -> None:
        _log.info("gradient %d: shape %s, norm %s", number, list(gradient.shape), gradient.norm().item())

    return hook
