"""Clipping limits the size of gradients."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable
from typing import Any

import weft

from ...core.grad_mode import no_grad
from ...core.layout_spec import is_strided
from ...core.tensor import Tensor
from ...core.warn import user_level

Tensors = Tensor | Iterable[Tensor]


@no_grad()
def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """Return the norm of all elements of all tensors.

    Raises: RuntimeError if it is infinite or NaN and `error_if_nonfinite`.

    >>> import weft as torch
    >>> torch.nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([4.0])])
    tensor(5.)
    """
    norm_type = float(norm_type)
    norms = [weft.linalg.vector_norm(_numbers(tensor), norm_type) for tensor in _listed(tensors)]
    if not norms:
        return weft.tensor(0.0)
    device = norms[0].device
    total = weft.linalg.vector_norm(weft.stack([norm.to(device) for norm in norms]), norm_type)
    if error_if_nonfinite and not total.isfinite():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients of the parameters, of norm `total_norm`, so that their norm is at most `max_norm`."""
    # Multiply even by 1, because a test of the factor would wait for its value.
    factor = weft.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
    for grad in _grads(parameters):
        grad.mul_(factor.to(grad.device))


@no_grad()
def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients of the parameters so that their total norm is at most `max_norm`; returns that norm.

    Raises: RuntimeError if that is infinite or NaN and `error_if_nonfinite`.

    >>> import weft as torch
    >>> x = torch.zeros(2, requires_grad=True)
    >>> x.grad = torch.tensor([3.0, 4.0])
    >>> torch.nn.utils.clip_grad_norm_(x, max_norm=1.0), x.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    listed = _listed(parameters)
    if not listed and inspect.isgenerator(parameters):
        warnings.warn(
            "`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=user_level()
        )
    total = get_total_norm(_grads(listed), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(listed, max_norm, total, foreach)
    return total


def clip_grad_norm(*args: Any, **kwargs: Any) -> Tensor:
    """Call `clip_grad_norm_`; this is its old name."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=user_level(),
    )
    return clip_grad_norm_(*args, **kwargs)


@no_grad()
def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp every gradient of the parameters to [-clip_value, clip_value]."""
    limit = float(clip_value)
    for grad in _grads(parameters):
        if is_strided(grad.spec):
            grad.clamp_(-limit, limit)
            continue
        summed = _summed(grad)
        summed.values().clamp_(-limit, limit)
        if summed is not grad:
            grad.copy_(summed)


def _numbers(grad: Tensor) -> Tensor:
    """The elements of a gradient; of a sparse one those that have entries."""
    return grad if is_strided(grad.spec) else _summed(grad).values()


def _summed(grad: Tensor) -> Tensor:
    """Return a sparse gradient with one entry for each element."""
    return grad.coalesce() if grad.layout is weft.sparse_coo else grad


def _listed(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _grads(parameters: Tensors) -> list[Tensor]:
    return [parameter.grad for parameter in _listed(parameters) if parameter.grad is not None]
