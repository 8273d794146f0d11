"""Initial values of parameters: random numbers of a scale that suits a layer, and a few fixed patterns.

Under one seed every function draws PyTorch's numbers, so a model starts equal. All write into the tensor that they are
given, unrecorded, and return it.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

from ..core.entry import entry
from ..core.generator import Generator
from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..core.warn import user_level
from ..ops.creation.creation import empty_like
from ..ops.creation.creation import eye as identity
from ..ops.creation.random import randperm
from ..ops.elementwise.arithmetic import mul
from ..ops.indexing.masking import where
from ..ops.linalg.factorizations import qr
from ..ops.views.diagonal import diag

# ---- Scales --------------------------------------------------------------------------------------------------------

_GAINS = {
    "linear": 1,
    "conv1d": 1,
    "conv2d": 1,
    "conv3d": 1,
    "conv_transpose1d": 1,
    "conv_transpose2d": 1,
    "conv_transpose3d": 1,
    "sigmoid": 1,
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor that keeps the variance of values that pass through `nonlinearity`.

    `param` is the slope of "leaky_relu" for negative numbers, 0.01 unless given.

    >>> from weft import nn
    >>> round(nn.init.calculate_gain("leaky_relu", 0.2), 4)
    1.3868
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Return how many inputs an output of this weight depends on, and how many outputs an input reaches."""
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions, "
            f"and this one has shape {list(tensor.shape)}"
        )
    outputs, inputs, *window = tensor.shape
    return inputs * math.prod(window), outputs * math.prod(window)


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


# ---- Distributions -------------------------------------------------------------------------------------------------


@entry
@no_grad()
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with uniform numbers in [a, b)."""
    return tensor.uniform_(a, b, generator=generator)


@entry
@no_grad()
def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill with normal numbers of this mean and standard deviation."""
    return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with normal numbers, and draw numbers outside [a, b] again.

    >>> import weft as torch
    >>> bool((torch.nn.init.trunc_normal_(torch.empty(1000), std=3).abs() <= 2).all())
    True
    """
    if tensor.is_meta:
        return tensor
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.",
            stacklevel=user_level(),
        )
    with no_grad():
        inside = _normal_below((b - mean) / std) - _normal_below((a - mean) / std)
        # If few normal numbers would be inside [a, b], accept uniform ones with a probability given by the density.
        draw = _redraw_normal if inside > 0.3 else _reject_uniform
        draw(tensor, mean, std, a, b, generator)
    return tensor


def _normal_below(x: float) -> float:
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def _redraw_normal(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Generator | None
) -> None:
    low, high = (tensor.new_tensor(bound).item() for bound in (a, b))  # rounded to the dtype
    tensor.normal_(mean, std, generator=generator)
    while (outside := (tensor < low) | (tensor > high)).any():
        # Draw a whole tensor although few of its numbers are needed, because PyTorch draws as many.
        tensor.copy_(where(outside, empty_like(tensor).normal_(mean, std, generator=generator), tensor))


def _reject_uniform(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Generator | None
) -> None:
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    pending: Tensor | None = None
    candidates = tensor
    while True:
        candidates.uniform_(a, b, generator=generator)
        # This is the logarithm of the density, which is 0 at the maximum.
        density = candidates.sub(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
        refused = empty_like(tensor).uniform_(generator=generator).log_().gt(density)
        if pending is None:
            pending, candidates = refused, empty_like(tensor)
        else:
            tensor.copy_(where(pending, candidates, tensor))
            pending = pending & refused
        if not pending.any():
            return


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with uniform numbers of variance gain^2 * 2 / (fan_in + fan_out). Source: Glorot and Bengio 2010."""
    std = gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers of variance gain^2 * 2 / (fan_in + fan_out). Source: Glorot and Bengio 2010."""
    std = gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    return normal_(tensor, 0.0, std, generator)


@entry
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill with uniform numbers of variance gain^2 / fan; `a` is the slope of leaky_relu. Source: He et al. 2015."""
    if 0 in tensor.shape:
        return _nothing_to_do(tensor)
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill with normal numbers of variance gain^2 / fan; `a` is the slope of leaky_relu. Source: He et al. 2015.

    >>> import weft as torch
    >>> weight = torch.nn.init.kaiming_normal_(torch.empty(100, 50), mode="fan_out", nonlinearity="relu")
    """
    if 0 in tensor.shape:
        return _nothing_to_do(tensor)
    return normal_(tensor, 0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def _nothing_to_do(tensor: Tensor) -> Tensor:
    warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=user_level())
    return tensor


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


# ---- Patterns ------------------------------------------------------------------------------------------------------


@entry
@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with `val`."""
    return tensor.fill_(val)


@no_grad()
def ones_(tensor: Tensor) -> Tensor:
    """Fill with 1."""
    return tensor.fill_(1.0)


@no_grad()
def zeros_(tensor: Tensor) -> Tensor:
    """Fill with 0."""
    return tensor.zero_()


@no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """Write the identity matrix, with which a linear layer passes on as many inputs as it can."""
    _check_matrix(tensor)
    return tensor.copy_(identity(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


@no_grad()
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Write the weight of a convolution that passes on as many channels as it can, in each of `groups`.

    >>> import weft as torch
    >>> torch.nn.init.dirac_(torch.empty(2, 2, 3))
    tensor([[[0., 1., 0.],
             [0., 0., 0.]],
    <BLANKLINE>
            [[0., 0., 0.],
             [0., 1., 0.]]])
    """
    if tensor.dim() not in (3, 4, 5):
        raise ValueError(
            f"Only tensors with 3, 4, or 5 dimensions are supported, and this one has shape {list(tensor.shape)}"
        )
    outputs, inputs, *window = tensor.shape
    if outputs % groups:
        raise ValueError(f"dim 0 must be divisible by groups: {outputs} channels, {groups} groups")
    per_group = outputs // groups
    centres = tensor.zero_()[(..., *(size // 2 for size in window))]
    for group in centres.split(per_group) if per_group else ():
        group.diagonal().fill_(1)
    return tensor


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Write a random matrix with orthonormal rows or columns, times `gain`; further dims count as columns.

    Source: Saxe, McClelland, Ganguli 2013, "Exact solutions to the nonlinear dynamics of learning".
    """
    if tensor.dim() < 2:
        raise ValueError(
            f"Only tensors with 2 or more dimensions are supported, and this one has shape {list(tensor.shape)}"
        )
    if tensor.numel() == 0 or tensor.is_meta:
        return tensor
    with no_grad():
        rows = tensor.size(0)
        flat = tensor.new_empty((rows, tensor.numel() // rows)).normal_(0, 1, generator=generator)
        wide = rows < flat.size(1)
        q, r = qr(flat.t() if wide else flat)
        # The signs make the distribution uniform over all orthogonal matrices. Source: Mezzadri 2006, arXiv math-ph/0609050.
        q = mul(q, diag(r).sign())
        return tensor.copy_((q.t() if wide else q).reshape(tensor.shape)).mul_(gain)


@no_grad()
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers and set the share `sparsity` of each column to zero. Source: Martens 2010."""
    _check_matrix(tensor)
    if tensor.is_meta:
        return tensor
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    tensor.normal_(0, std, generator=generator)
    for column in range(columns):
        tensor[randperm(rows)[:zeros], column] = 0
    return tensor


def _check_matrix(tensor: Tensor) -> None:
    if tensor.dim() != 2:
        raise ValueError(
            f"Only tensors with 2 dimensions are supported, and this one has shape {list(tensor.shape)}"
        )


# ---- Older names ---------------------------------------------------------------------------------------------------


def _deprecated(function: Callable) -> Callable:
    new = function.__name__
    old = new.removesuffix("_")

    @functools.wraps(function)
    def alias(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.",
            FutureWarning,
            stacklevel=user_level(),
        )
        return function(*args, **kwargs)

    alias.__name__ = alias.__qualname__ = old
    return alias


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)


# ---- Names of PyTorch's parts, which libraries call as they are ------------------------------------------------------


def _no_grad_uniform_(tensor: Tensor, a: float, b: float, generator: Generator | None = None) -> Tensor:
    return uniform_(tensor, a, b, generator)


def _no_grad_normal_(tensor: Tensor, mean: float, std: float, generator: Generator | None = None) -> Tensor:
    return normal_(tensor, mean, std, generator)


def _no_grad_trunc_normal_(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Generator | None = None
) -> Tensor:
    return trunc_normal_(tensor, mean, std, a, b, generator)


def _no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    return constant_(tensor, val)


def _no_grad_zero_(tensor: Tensor) -> Tensor:
    return zeros_(tensor)
