"""Defines functions and decorators for the implementation of distributions, also used by libraries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Number as _Number
from typing import Any

import weft
import weft.nn.functional

from ..core.grad_mode import enable_grad
from ..core.tensor import Tensor

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits",
    "tril_matrix_to_vec", "vec_to_tril_matrix",
]  # fmt: skip

euler_constant = 0.57721566490153286060  # the Euler-Mascheroni constant: minus digamma(1)


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Broadcast numbers and tensors to one shape. Numbers get the dtype and the device of the first tensor.

    Raises: ValueError for anything else.

    >>> import weft as torch
    >>> broadcast_all(torch.zeros(2), 1.0)
    (tensor([0., 0.]), tensor([1., 1.]))
    """
    if not all(isinstance(value, _Number) or _is_tensor_like(value) for value in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    like = next((value for value in values if isinstance(value, Tensor)), None)
    options: dict[str, Any] = (
        {"dtype": weft.get_default_dtype()} if like is None else {"dtype": like.dtype, "device": like.device}
    )
    tensors = [value if _is_tensor_like(value) else weft.tensor(value, **options) for value in values]
    return tuple(weft.broadcast_tensors(*tensors))


def _is_tensor_like(value: Any) -> bool:
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Tensor:
    return weft.normal(
        weft.zeros(shape, dtype=dtype, device=device), weft.ones(shape, dtype=dtype, device=device)
    )


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum of `value` over its last `dim` dims, or over all dims if it has fewer."""
    return value.sum(tuple(range(-min(dim, value.dim()), 0))) if dim else value


def clamp_probs(probs: Tensor) -> Tensor:
    """Clamp probabilities away from 0 and 1, so that their logarithms are finite."""
    eps = weft.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of log-odds (`is_binary`), or of scores along the last dim."""
    return weft.sigmoid(logits) if is_binary else weft.softmax(logits, -1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return the inverse of `logits_to_probs`, finite for probabilities of 0 and 1."""
    probs = clamp_probs(probs)
    return probs.log() - (-probs).log1p() if is_binary else probs.log()


class lazy_property:
    """Decorator for an attribute that the function computes on first access and stores in the instance.

    The computation is always recorded for backward, because later code uses the stored value as well.

    >>> class Circle:
    ...     radius = 2.0
    ...
    ...     @lazy_property
    ...     def area(self):
    ...         return 3.0 * self.radius**2
    >>> circle = Circle()
    >>> circle.area, vars(circle)
    (12.0, {'area': 12.0})
    """

    def __init__(self, wrapped: Callable[[Any], Any]):
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__
        self.__name__ = wrapped.__name__
        self.__module__ = wrapped.__module__

    def __get__(self, instance: Any, obj_type: type | None = None) -> Any:
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):
    """The value of a lazy property on the class. It is a `property`, because documentation tools expect one."""

    def __init__(self, wrapped: Callable[[Any], Any]):
        property.__init__(self, wrapped)


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Map [..., count] -> [..., n, n]: numbers in the lower triangle up to diagonal `diag`, row by row; zeros elsewhere.

    >>> import weft as torch
    >>> vec_to_tril_matrix(torch.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    count, shift = vec.shape[-1], 1 + 2 * diag
    n = round((math.sqrt(shift**2 + 8 * count + 4 * abs(diag) * (diag + 1)) - shift) / 2)
    rows, columns = weft.tril_indices(n, n, diag, device=vec.device)
    if rows.numel() != count:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as the lower triangular part"
        )
    matrix = vec.new_zeros((*vec.shape[:-1], n, n))
    matrix[..., rows, columns] = vec
    return matrix


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Map [..., n, n] -> [..., count]: the lower triangle up to diagonal `diag`, row by row."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = weft.tril_indices(n, n, diag, device=mat.device)
    return mat[..., rows, columns]
