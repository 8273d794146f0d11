"""What the functions of `torch.masked` are made of in PyTorch: values that reductions ignore, and masks of results."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..core.dtype import bool_, float32
from ..core.layout import sparse_coo, sparse_csr, strided
from ..core.tensor import Tensor
from ..families.reduce import dims_of
from ..layouts.sparse.creation import sparse_coo_tensor
from ..ops.creation.creation import full
from ..ops.indexing.masking import where
from ..ops.reductions.extrema import highest, lowest
from ..ops.reductions.masked_reductions import full_mask
from .maskedtensor import MaskedTensor

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


def _canonical_dim(dim: Any, ndim: int) -> tuple[int, ...]:
    """The dims as rising numbers from 0. None and an empty tuple stand for all dims.

    Raises: IndexError for a dim out of range; RuntimeError for a dim that is named twice.
    """
    return tuple(sorted(dims_of(dim, ndim, "masked")))


def _where(mask: Tensor, input: Tensor, fill_value: Tensor) -> Tensor:
    """`torch.where`, also of a sparse mask and input.

    The result has the layout of the mask. If that is COO or CSR, the entries of the result are the entries of the mask
    that are True (in hybrid tensors: that have an element that is True). An entry that the input does not have is 0.

    Raises: ValueError for other layouts.
    """
    if mask.layout is strided:
        return where(mask, input, fill_value)
    if mask.layout is sparse_csr:
        return _where(mask.to_sparse_coo(), input.to_sparse_coo(), fill_value).to_sparse_csr()
    if mask.layout is not sparse_coo:
        raise ValueError(f"_where expects strided or sparse COO or sparse CSR tensor but got {mask.layout}")
    mask = mask.coalesce()
    values = mask.values()
    true = values.reshape(values.shape[0], -1).any(1)
    kept = sparse_coo_tensor(mask.indices()[:, true], values[true], mask.shape).coalesce()
    result = input.coalesce().sparse_mask(kept)
    if not mask.dense_dim():
        return result
    values = where(kept.values(), result.values(), fill_value)
    return sparse_coo_tensor(kept.indices(), values, input.shape).coalesce()


def _combine_input_and_mask(op: Callable, input: Tensor, mask: Tensor | None, *args: Any) -> Tensor:
    """The input with the value that `op` ignores (`_reduction_identity`) in place of masked-out elements.

    The gradient of a MaskedTensor is masked.
    """
    if isinstance(input, MaskedTensor):
        mask = input.get_mask()
        input = input.get_data()
    if mask is None:
        return input
    ignored = _reduction_identity(op.__name__, input, *args)
    if ignored is None:
        raise ValueError(f"_combine_input_and_mask: {op.__name__} ignores no value")
    return _where(_input_mask(input, mask=mask), input, ignored)
