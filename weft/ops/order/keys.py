"""Computes keys of elements: unsigned integers in the order of the elements, which sorting and selection compare."""

from __future__ import annotations

import functools

import numpy as np

from ...core.dtype import BITS, DType, bool_, compute_type, uint8
from ...core.size import shape as shape_of
from ...core.spec import contiguous_spec, make_spec
from ...core.tensor import Tensor, make
from ...engine import scalar as s
from ...engine.expr import Expr
from ...families.array_op import array
from ...families.map import Map, Types


def key_types(dtype: DType) -> Types:
    return Types(dtype, BITS[compute_type(dtype).itemsize])


def _key(value: Expr, descending: bool) -> Expr:
    dtype = value.dtype
    if dtype is bool_:
        key = s.cast(value, uint8)
    else:
        bits = BITS[dtype.itemsize]
        top = s.const(1 << (8 * dtype.itemsize - 1), bits)
        if dtype.kind == "f":
            pattern = s.bitcast(value + 0, bits)  # -0.0 + 0 is 0.0
            ordered = s.where(s.ne(pattern & top, 0), ~pattern, pattern | top)
            key = s.where(s.isnan(value), s.const(2 ** (8 * dtype.itemsize) - 1, bits), ordered)
        else:
            key = s.bitcast(value, bits)
            key = key ^ top if dtype.kind == "i" else key
    return ~key if descending else key


# Unsigned integers in the order of the values, or in the opposite one. -0.0 equals 0.0. All NaN are equal and the greatest.
KEYS = {
    descending: Map("order_key", key_types, functools.partial(_key, descending=descending))
    for descending in (False, True)
}


def order_keys(input: Tensor, dim: int, descending: bool = False) -> np.ndarray:
    """Return keys of the elements as an array, with `dim` as the last axis.

    The keys never share memory with the values, because NumPy's sorts write outside of their buffers if another thread
    changes the keys.
    """
    spec = input.spec
    dims = [*range(dim), *range(dim + 1, spec.ndim), *([dim] if spec.ndim else [])]
    dtype = key_types(spec.dtype).result
    moved = contiguous_spec(shape_of([spec.shape[d] for d in dims]), dtype, spec.device)
    keys = make(spec.device.backend.allocate(moved.nbytes), 0, moved)
    if spec.numel:
        stride = tuple(step for _, step in sorted(zip(dims, moved.stride, strict=True)))
        target = make(keys._storage, 0, make_spec(spec.shape, stride, dtype, spec.device))
        KEYS[descending].write(target, make(input._storage, input._byte_offset, spec))
    return array(keys).reshape(moved.shape or (1,))
