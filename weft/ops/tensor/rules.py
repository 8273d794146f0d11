"""Helpers for the rules of derivatives. `core/derivative.py` says how rules are stated."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from ...core.spec import Spec
from ...core.tensor import Tensor
from ...families.map import NUMBERS
from ..creation.creation import zeros_like


def conj(factor: Any) -> Any:
    """Return the complex conjugate of a tensor or a number."""
    if type(factor) is Tensor and factor.spec.dtype.kind != "c":
        return factor
    return factor.conjugate() if isinstance(factor, NUMBERS) else factor.conj()


# ---- Rules that many ops share -----------------------------------------------------------------------------------------


def pass_through(ct: Tensor, out: None, *inputs: None) -> Tensor:
    """The rule of an input whose cotangent is that of the result."""
    return ct


def negative(ct: Tensor, out: None, *inputs: None) -> Tensor:
    """The rule of an input that is subtracted."""
    return -ct


def zero_grad(ct: Tensor, out: None, *inputs: None) -> Tensor:
    """The rule of functions that are constant almost everywhere, such as `floor`."""
    return zeros_like(ct)


def unknown(what: str) -> Callable:
    """A rule that raises NotImplementedError, because no formula for the derivative is known."""

    def rule(ct, out, *inputs):
        raise NotImplementedError(f"the derivative for '{what}' is not implemented.")

    return rule


# ---- Reductions ------------------------------------------------------------------------------------------------------


def with_reduced_dims(reduced: Tensor, dims: Sequence[int] | None, keepdim: bool) -> Tensor:
    """A reduced tensor with the reduced dims as dims of size 1. `dims` None means all; that result broadcasts without them."""
    if not keepdim and dims is not None:
        for dim in dims:
            reduced = reduced.unsqueeze(dim)
    return reduced


def broadcast_back(reduced: Tensor, whole: Spec, dims: Sequence[int] | None, keepdim: bool) -> Tensor:
    """Return a reduced tensor, expanded to the shape before the reduction."""
    return with_reduced_dims(reduced, dims, keepdim).expand(whole.shape)


def split_among_ties(ct: Tensor, chosen: Tensor, dims: Sequence[int] | None) -> Tensor:
    """Divide a cotangent evenly among the chosen elements of each reduction. `ct` has the reduced dims, of size 1.

    The other elements do not depend on the cotangent, because an infinite cotangent times zero would be NaN. They get zero,
    or NaN where no element is chosen, as in PyTorch.
    """
    count = chosen.sum(dims, keepdim=dims is not None)
    return (ct / count).where(chosen, 0 / count)


def sum_of(cotangents: Sequence[Tensor]) -> Tensor | None:
    """The sum of the cotangents that several results pass to one input; None if there are none."""
    return functools.reduce(operator.add, cotangents) if cotangents else None


def scatter_into_zeros(ct: Tensor, indices: Tensor, whole: Spec, dim: int) -> Tensor:
    """Return zeros of the shape of `whole`, with each cotangent at the index along `dim` that its element came from."""
    if not whole.shape:
        return ct.clone()
    return ct.new_zeros(whole.shape).scatter(dim, indices, ct)
