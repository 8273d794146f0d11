"""Making MaskedTensors."""

from __future__ import annotations

from typing import Any

from .core import MaskedTensor, _Constructor

__all__ = ["as_masked_tensor", "masked_tensor"]


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
    """A new leaf with the elements of `data` where `mask` is True.

    >>> import warnings
    >>> import weft as torch
    >>> warnings.simplefilter("ignore")
    >>> torch.masked.masked_tensor(torch.tensor([1, 2, 3]), torch.tensor([True, False, True]))
    MaskedTensor(
      [1,       --, 3]
    )
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Any, mask: Any) -> MaskedTensor:
    """The elements of `data` where `mask` is True, differentiable in `data`; masked-out elements have no gradient.

    >>> import warnings
    >>> import weft as torch
    >>> warnings.simplefilter("ignore")
    >>> x, divisor = torch.tensor([1.0, 1.0], requires_grad=True), torch.tensor([0.0, 1.0])
    >>> torch.masked.as_masked_tensor(x / divisor, divisor != 0).sum().backward()
    >>> x.grad
    MaskedTensor(
      [      --,   1.0000]
    )
    """
    return _Constructor.apply(data, mask)
