"""Tensors with a mask, `torch.masked.maskedtensor`."""

from . import _backward, _ops_refs  # noqa: F401 (what the backward pass does with masks; what functions do)
from .core import MaskedTensor, is_masked_tensor
from .creation import as_masked_tensor, masked_tensor

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]
