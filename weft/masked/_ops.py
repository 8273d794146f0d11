"""What the functions of `torch.masked` are made of in PyTorch: values that reductions ignore, and masks of results."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..compat.missing import module_getattr
from ..core.dtype import bool_, float32
from ..core.tensor import Tensor
from ..families.reduce import dims_of
from ..ops.creation.creation import full
from ..ops.reductions.extrema import highest, lowest
from ..ops.reductions.masked_reductions import full_mask

_SUMS = ("sum", "cumsum")
_PRODUCTS = ("prod", "cumprod")
_LARGEST = ("amax", "argmax", "logaddexp", "logsumexp")
_SMALLEST = ("amin", "argmin")
_REDUCTIONS = ("sum prod amax amin argmax argmin mean median norm var std logsumexp").split()
_ALONG_ONE_DIM = ("softmax log_softmax softmin normalize cumsum cumprod").split()


def _reduction_identity(op_name: str, input: Tensor, *args: Any) -> Tensor | None:
    """The value, as a 0-dim tensor, that leaves a reduction of `input` as it is; None if no value does so for all inputs.

    `args` may have the order of a norm.

    >>> import weft as torch
    >>> torch.masked._reduction_identity("amin", torch.ones(2, dtype=torch.int8))
    tensor(127, dtype=torch.int8)

    Raises: NotImplementedError for other operations.
    """
    name, dtype = op_name.rpartition(".")[2], input.dtype
    if name in ("mean", "var", "std"):
        return None
    is_ordered = not dtype.is_complex and dtype is not bool_
    value: Any
    if name in _SUMS:
        value = 0
    elif name in _PRODUCTS:
        value = 1
    elif name in _LARGEST and is_ordered:
        value = lowest(dtype)
    elif name == "logsumexp" and dtype.is_complex:
        value = -math.inf
    elif name in _SMALLEST and is_ordered:
        value = highest(dtype)
    elif name == "norm":
        value = math.inf if args and args[0] == -math.inf else 0
    elif name == "median":  # of a median, which ignores NaN
        value, dtype = math.nan, dtype if dtype.is_floating_point else float32
    else:
        raise NotImplementedError(f"identity of {name} on {dtype} input")
    return full((), value, dtype=dtype, device=input.device)


def _input_mask(input: Tensor, *args: Any, mask: Tensor | None = None, **kwargs: Any) -> Tensor:
    """The mask as bools, in the shape of the input.

    Raises: ValueError without a mask.
    """
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    return full_mask(input, mask)


def _output_mask(op: Callable, input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Which elements of `op(input, *args, **kwargs)` have a value: those with an element that counts.

    Raises: ValueError if `op` is not a function of `torch.masked` that reduces, scans or normalizes.
    """
    name = getattr(op, "__name__", None)
    if name in _ALONG_ONE_DIM:
        return _input_mask(input, **kwargs)
    if name not in _REDUCTIONS:
        raise ValueError(f"_output_mask expected masked operation (got {op!r})")
    rest = args[1:] if name == "norm" else args  # the first argument of a norm is its order
    dim = rest[0] if rest else kwargs.get("dim")
    dims = dims_of(dim, input.dim(), name)
    return _input_mask(input, **kwargs).any(dims, bool(kwargs.get("keepdim", False)))


__getattr__ = module_getattr(__name__)
