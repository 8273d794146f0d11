"""Defines what a dense tensor answers to questions about sparse, quantized and other layouts.

Programs call `to_dense()` on any tensor, and ask `is_sparse` before they touch `indices()`. A dense tensor gives
itself to the first. Methods that only sparse or quantized tensors have raise PyTorch's errors. A conversion into a
layout that weft lacks raises NotImplementedError.

>>> import weft as torch
>>> t = torch.ones(2)
>>> t.to_dense() is t, t.is_sparse
(True, False)
"""

from __future__ import annotations

from typing import Any

from ...core.dtype import DType, float32
from ...core.entry import entry
from ...core.names import named
from ...core.public import public
from ...core.registry import add_function, add_method
from ...core.tensor import Tensor
from ..linalg.matmul import mm


@public("method", "_to_dense")
def to_dense(self: Tensor, dtype: DType | None = None, *, masked_grad: bool | None = None) -> Tensor:
    """The tensor itself, which is dense; with `dtype`, converted to it."""
    return self if dtype is None else self.to(dtype)


@public("function method")
def dequantize(input: Any) -> Tensor:
    """The values in float32. Only weft's tensors, which are not quantized, can be given; a list cannot.

    Raises: NotImplementedError for a list, as PyTorch does if the list holds no quantized tensors.
    """
    if not isinstance(input, Tensor):
        raise _unknown("dequantize.tensors")
    return input if input.dtype is float32 else input.to(float32)


# ---- Methods that only other layouts have --------------------------------------------------------------------------------

# Method -> the layout that it expects. PyTorch raises RuntimeError.
_EXPECTED = {
    "coalesce": "sparse coordinate tensor",
    "indices": "sparse coordinate tensor",
    "values": "sparse tensor",
    "crow_indices": "sparse row compressed tensor",
    "col_indices": "sparse row compressed tensor",
    "ccol_indices": "sparse column compressed tensor",
    "row_indices": "sparse column compressed tensor",
}
# These raise NotImplementedError in PyTorch: no kernel of the CPU takes a dense tensor.
_UNKNOWN = (
    "_indices _values _nnz _dimI _dimV _coalesced_ sparse_resize_ sparse_resize_and_clear_ resize_as_sparse_ "
    "int_repr q_scale q_zero_point qscheme q_per_channel_scales q_per_channel_zero_points q_per_channel_axis "
    "to_padded_tensor _nested_tensor_size _nested_tensor_strides _nested_tensor_storage_offsets _sparse_mask_projection"
).split()
# What `torch` has as functions, too.
_FUNCTIONS = "int_repr q_scale q_zero_point q_per_channel_scales q_per_channel_zero_points q_per_channel_axis resize_as_sparse_"  # fmt: skip
_TO = "to_mkldnn _to_sparse _to_sparse_csr _to_sparse_csc _to_sparse_bsr _to_sparse_bsc"  # fmt: skip


def _unknown(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: the tensor is dense, and only tensors of "
        "another layout have this"
    )


def _refusing(name: str, expected: str | None) -> Any:
    @named(name)
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Raises: an error, because the tensor is dense and `{name}` is for tensors of another layout."""
        if expected is None:
            raise _unknown(name)
        raise RuntimeError(f"{name} expected {expected} layout but got Strided")

    return method


def _converting(name: str) -> Any:
    @named(name)
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Raises: NotImplementedError, because weft does not have the layout, or has it by another name."""
        raise NotImplementedError(
            f"Tensor.{name}: weft does not have the layout; of the sparse ones, write x.to_sparse(layout=...)"
        )

    return method


for _name in (*_EXPECTED, *_UNKNOWN):
    add_method(_name, _refusing(_name, _EXPECTED.get(_name)))
for _name in _FUNCTIONS.split():
    add_function(_name, entry(_refusing(_name, None)))
for _name in _TO.split():
    add_method(_name, _converting(_name))


# ---- Products with sparse matrices ---------------------------------------------------------------------------------------


@public("function", "dsmm")
def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """`mm`, by the name it has for a sparse first matrix."""
    return mm(input, mat2)


@public("function", "saddmm")
def sspaddmm(input: Tensor, *args: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Compute `addmm` of sparse matrices.

    Raises: RuntimeError for dense ones.
    """
    raise RuntimeError("tensor.sspaddmm(...) can only be called on sparse tensors")


@public("method", name="sspaddmm")
def _sspaddmm(self: Tensor, *args: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Compute `torch.sspaddmm`."""
    return sspaddmm(self, *args, beta=beta, alpha=alpha)


@public("function method")
def smm(input: Tensor, mat2: Tensor) -> Tensor:
    """Compute `mm` of sparse matrices.

    Raises: RuntimeError for dense ones.
    """
    return sspaddmm(input, mat2)


@public("function", "hsmm")
def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """Compute `mm` of a sparse and a dense matrix.

    Raises: NotImplementedError for dense ones.
    """
    raise _unknown("hspmm")
