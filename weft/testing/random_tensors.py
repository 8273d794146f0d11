"""Tensors of random numbers for tests, `torch.testing.make_tensor`."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ..core.dtype import DType, bool_
from ..core.limits import finfo, iinfo
from ..core.tensor import Tensor
from ..core.warn import user_level
from ..ops.creation.creation import empty
from ..ops.creation.random import randint
from ..ops.views.complex_views import view_as_real


def make_tensor(
    *shape: Any,
    dtype: DType,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of uniform random numbers from [low, high), by default [-9, 9), [-9, 10) for integers or [0, 2) for bool.

    Bounds that the dtype cannot hold are narrowed. With the same seed the numbers are PyTorch's.
    noncontiguous: every other element of a larger tensor. exclude_zero: zeros become the smallest positive number.
    Raises: ValueError if `low` is not less than `high`, or if the dtype has no number between them.

    >>> import weft as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.testing.make_tensor(3, dtype=torch.int64, device="cpu", low=0, high=5)
    tensor([4, 4, 3])
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    if noncontiguous and memory_format is not None:
        raise ValueError(
            f"The parameters `noncontiguous` and `memory_format` are mutually exclusive: {memory_format}"
        )
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype}"
        )
    first, last = _bounds(low, high, dtype)
    if noncontiguous and math.prod(sizes) > 1:
        result = _drawn((*sizes[:-1], 2 * sizes[-1]), dtype, device, first, last)[..., 1::2]
    else:
        result = _drawn(sizes, dtype, device, first, last)
        if memory_format is not None:
            result = result.clone(memory_format=memory_format)
    if exclude_zero:
        smallest: Any = 1 if dtype.is_integral or dtype is bool_ else finfo(dtype.to_real()).tiny
        result[result == 0] = complex(smallest, smallest) if dtype.is_complex else smallest
    return result.requires_grad_() if requires_grad else result


def _bounds(low: float | None, high: float | None, dtype: DType) -> tuple[Any, Any]:
    limits: tuple[Any, Any]
    if dtype is bool_:
        limits, default = (0, 2), (0, 2)
    elif dtype.is_integral:
        info = iinfo(dtype)
        # `high` is exclusive, and `randint` takes none beyond int64.
        limits, default = (info.min, info.max + (dtype.itemsize < 8)), (max(-9, info.min), 10)
    else:
        most = finfo(dtype.to_real())
        limits, default = (most.min, most.max), (-9, 9)
    first = default[0] if low is None else low
    last = default[1] if high is None else high
    if any(isinstance(each, float) and math.isnan(each) for each in (first, last)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low} and high={high}")
    if first == last and not (dtype.is_integral or dtype is bool_):
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 and will "
            "be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=user_level(),
        )
    elif first >= last:
        raise ValueError(f"`low` must be less than `high`, but got {first} >= {last}")
    elif last < limits[0] or first >= limits[1]:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{first}, {last}), but {dtype} only supports "
            f"[{limits[0]}, {limits[1]})"
        )
    first, last = max(first, limits[0]), min(last, limits[1])
    if dtype.is_integral or dtype is bool_:
        first, last = math.ceil(first), math.ceil(last)
        if first >= last:
            raise ValueError(f"there is no integer between low={low} and high={high}")
    return first, last


def _drawn(sizes: Any, dtype: DType, device: Any, low: Any, high: Any) -> Tensor:
    if dtype is bool_ or dtype.is_integral:
        return randint(low, high, sizes, dtype=dtype, device=device)
    result = empty(sizes, dtype=dtype, device=device)
    drawn = view_as_real(result) if dtype.is_complex else result
    if high - low >= finfo(drawn.dtype).max:  # more than `uniform_` takes
        drawn.uniform_(low / 2, high / 2).mul_(2)
    else:
        drawn.uniform_(low, high)
    return result
