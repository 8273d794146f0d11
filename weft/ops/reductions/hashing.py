"""Computes `torch.hash_tensor`: one 64-bit number for the bytes of a tensor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.derivative import nondifferentiable
from ...core.dtype import LEGACY_NAMES, int64, uint64
from ...core.public import public
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor, empty
from ...families.array_op import array_op, tensor_of, wide_array
from ...families.indexed import bare
from ...families.map import COPY
from ...families.reduce import dims_of, reduced_sizes


@array_op(derivative=nondifferentiable)
def _hashed(input: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    values = wide_array(input)
    words = values.astype(
        np.float64 if values.dtype.kind == "f" else np.int64 if values.dtype.kind != "u" else np.uint64
    )
    hashes: Any = np.bitwise_xor
    return tensor_of(np.asarray(hashes.reduce(words.view(np.uint64), axis=dims, keepdims=keepdim)), uint64)


def _hashed_by_kernels(input: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """Halves are combined until one element is left of each."""
    own, sizes = bare(input), reduced_sizes(input.shape, dims, keepdim)
    wide = own.double() if own.is_floating_point() else own if own.dtype is uint64 else own.long()
    kept = [d for d in range(wide.dim()) if d not in dims]
    count = math.prod([wide.size(d) for d in dims])
    words = (
        wide.view(int64).permute(*kept, *dims).reshape(-1, count)
        if input.numel()
        else wide.new_zeros(math.prod(sizes), 1, dtype=int64)
    )
    while (count := words.size(1)) > 1:
        half = count // 2
        folded = words.narrow(1, 0, half) ^ words.narrow(1, half, half)
        if count % 2:
            folded.narrow(1, 0, 1).bitwise_xor_(words.narrow(1, count - 1, 1))
        words = folded
    result = empty(contiguous_spec(sizes, int64, input.spec.device))
    return COPY.write(result, words.reshape(sizes)).view(uint64)


_hashed.by_kernels = _hashed_by_kernels


@_hashed.spec_rule
def _hashed_spec(input: Spec, dims: tuple[int, ...], keepdim: bool) -> Spec:
    return contiguous_spec(reduced_sizes(input.shape, dims, keepdim), uint64)


@public("function method", out=True)
def hash_tensor(input: Tensor, dim: Any = (), *, keepdim: bool = False, mode: int = 0) -> Tensor:
    """Return the exclusive or of all elements, or of those along `dim`, each as a float64 or an int64; a uint64 tensor.

    Two equal tensors have equal hashes. mode: 0, the only one there is.

    >>> import weft as torch
    >>> torch.hash_tensor(torch.tensor([1, 2, 4])).item()
    7
    """
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if input.is_complex():
        raise NotImplementedError(f"\"xor_sum_cpu\" not implemented for '{LEGACY_NAMES[input.spec.dtype]}'")
    dims = dims_of(dim, input.dim(), "hash_tensor")
    if not input.numel():
        if not isinstance(dim, int) and not dim:
            raise RuntimeError(
                "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
                "the 'dim' argument."
            )
        lacking = next((each for each in dims if not input.size(each)), None)
        if lacking is not None:
            raise IndexError(f"hash_tensor: Expected reduction dim {lacking} to have non-zero size.")
    return _hashed(input, dims, keepdim)
