"""Reductions leave masked-out elements aside; a result has a value if one of its elements has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from .core import _GetData, _Reduced

__all__: list[str] = []

REDUCE_NAMES = "sum mean amin amax argmin argmax prod all norm var std".split()


def _masked_all(
    data: Tensor, dim: Any = None, *, keepdim: bool = False, mask: Tensor | None = None
) -> Tensor:
    if mask is not None:
        data = data.masked_fill(~mask, True)
    return data.all() if dim is None else data.all(dim, keepdim)


def _multidim_any(mask: Tensor, dim: Any, keepdim: bool) -> Tensor:
    if dim is None:
        return mask.any()
    return mask.any(tuple(dim) if isinstance(dim, (list, tuple)) else dim, keepdim)


def _get_masked_fn(fn: str) -> Callable:
    return _masked_all if fn == "all" else FUNCTIONS[f"masked.{fn}"]


def _reduce_dim_args(input: Any, dim: Any, keepdim: bool = False, dtype: Any = None) -> tuple:
    return input, dim, keepdim, dtype


def _reduction(name: str) -> Callable:
    """The handler of a reduction."""
    if name == "norm":
        return _norm
    takes_dtype = name in ("sum", "mean", "prod", "var", "std")

    def reduce(fn: Callable, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs:
            input, dim, keepdim, dtype = args[0], None, False, None
        else:
            input, dim, keepdim, dtype = _reduce_dim_args(*args, **kwargs)
        options = {"dtype": dtype} if dtype is not None and takes_dtype else {}
        mask = input._masked_mask.to_dense()
        data = _GetData.apply(input).to_dense()
        result = _get_masked_fn(name)(data, dim, keepdim=bool(keepdim), mask=mask, **options)
        return _Reduced.apply(result, _multidim_any(mask, dim, bool(keepdim)))

    return reduce


def _norm(fn: Callable, *args: Any, **kwargs: Any) -> Any:
    raise TypeError(
        "norm() of a MaskedTensor is not supported, as in PyTorch: use torch.masked.norm(input, ord, dim)"
    )
