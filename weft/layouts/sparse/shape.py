"""Changes the shape of sparse tensors: dims in another order, more or fewer dims, and repeated entries.

In COO all of this changes indices. A dim of the values cannot become one of the indices, and the other way round.
"""

from __future__ import annotations

import math
from typing import Any

from ...core.arguments import integers
from ...core.dtype import int64
from ...core.layout import sparse_coo
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor, wrap_dim
from ...core.view_rules import inferred_shape
from ..parts import alias, values_of, with_values
from . import coordinates
from .compressed import TRANSPOSED, batch_dim_of, compressed, compressed_parts, format_of
from .compression import Compressed
from .conversion import as_coo
from .coo import coo, indices_of, is_coalesced, sparse_dim_of
from .rules import SPARSE
from .through_coo import in_layout_of, sparse_dims_of, through_coo

rule = SPARSE.rule
arange, cat, empty, stack, tensor, zeros = (
    FUNCTIONS[name] for name in ("arange", "cat", "empty", "stack", "tensor", "zeros")
)
mT = vars(Tensor)["mT"].fget


# ---- The order of dims -----------------------------------------------------------------------------------------------


def _reordering(name: str) -> None:
    """The rule of a function that only changes the order of dims. The function itself says which, on a tensor whose sizes tell its dims apart."""
    function = FUNCTIONS[name] if name in FUNCTIONS else vars(Tensor)[name].fget  # type: ignore[attr-defined]

    def rule(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        sizes = range(2, input.dim() + 2)
        order = function(empty(tuple(sizes), device="meta"), *args, **kwargs).shape
        return permuted(input, tuple(size - 2 for size in order))

    SPARSE.rule(name)(rule)


for _name in "permute transpose swapdims swapaxes movedim T mT".split():
    _reordering(_name)


@rule("H", "mH", "adjoint")
def adjoint(input: Tensor) -> Tensor:
    result = mT(input)
    return with_values(result, values_of(result).conj().resolve_conj()) if input.is_complex() else result


@rule("t")
def t(input: Tensor) -> Tensor:
    sparse_dim = sparse_dims_of(input)
    if input.layout is sparse_coo and (sparse_dim > 2 or input.dim() != sparse_dim):
        raise RuntimeError(
            f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {sparse_dim} sparse and "
            f"{input.dim() - sparse_dim} dense dimensions"
        )
    if input.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.dim()}D")
    return permuted(input, tuple(range(input.dim() - 1, -1, -1)))


def permuted(input: Tensor, order: tuple[int, ...]) -> Tensor:
    """Return the dims in another order."""
    if order == tuple(range(input.dim())):
        return alias(input)
    return _permuted_coo(input, order) if input.layout is sparse_coo else _permuted_compressed(input, order)


def _permuted_coo(input: Tensor, order: tuple[int, ...]) -> Tensor:
    sparse_dim = sparse_dim_of(input)
    if any(dim >= sparse_dim for dim in order[:sparse_dim]):
        raise RuntimeError(
            "permute(sparse_coo): transpositions between sparse and dense dimensions are not allowed. "
            f"The first {sparse_dim} dims are sparse, and the order is {list(order)}"
        )
    values = values_of(input).permute(0, *(dim - sparse_dim + 1 for dim in order[sparse_dim:]))
    indices, kept = indices_of(input), order[:sparse_dim] == tuple(range(sparse_dim))
    if not kept:
        indices = stack([indices[dim] for dim in order[:sparse_dim]])
    shape = tuple(input.shape[dim] for dim in order)
    coalesced = is_coalesced(input) if kept else not indices.shape[1]
    return coo(indices, values.contiguous(), shape, coalesced)


def _permuted_compressed(input: Tensor, order: tuple[int, ...]) -> Tensor:
    batch_dim, first_dense = batch_dim_of(input), sparse_dims_of(input)
    groups = (range(batch_dim), range(batch_dim, first_dense), range(first_dense, input.dim()))
    for group in groups:
        if any(order[dim] not in group for dim in group):
            kinds = "batch, sparse and dense"
            raise RuntimeError(
                f"permute(): can only transpose dimensions of the same type ({kinds}), got {list(order)}"
            )
    outer, inner, values = compressed_parts(input)
    batch, layout = order[:batch_dim], input.layout
    blocks = 2 if format_of(input).blocks else 0
    # How far the dims of the values lie behind those of the tensor.
    shift = batch_dim + 1 + blocks - first_dense
    within = list(range(batch_dim + 1, batch_dim + 1 + blocks))
    if order[batch_dim] != batch_dim:
        layout = TRANSPOSED[layout]
        within.reverse()
    values = values.permute(*batch, batch_dim, *within, *(dim + shift for dim in order[first_dense:]))
    outer, inner = (part.permute(*batch, batch_dim).contiguous() for part in (outer, inner))
    shape = tuple(input.shape[dim] for dim in order)
    return compressed(Compressed(outer, inner, values.contiguous()), shape, layout)


# ---- More dims, fewer dims --------------------------------------------------------------------------------------------


@rule("unsqueeze")
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    dim = wrap_dim(dim, input.dim() + 1)
    if input.layout is sparse_coo:
        return _unsqueeze_coo(input, dim)
    shape = (*input.shape[:dim], 1, *input.shape[dim:])
    outer, inner, values = compressed_parts(input)
    if dim <= batch_dim_of(input):
        parts = (part.unsqueeze(dim) for part in (outer, inner, values))
        return compressed(Compressed(*parts), shape, input.layout)
    if dim >= sparse_dims_of(input):
        values = values.unsqueeze(dim - input.dim() - 1)
        return compressed(Compressed(outer, inner, values), shape, input.layout)
    return in_layout_of(_unsqueeze_coo(as_coo(input), dim), input)


def _unsqueeze_coo(input: Tensor, dim: int) -> Tensor:
    shape = (*input.shape[:dim], 1, *input.shape[dim:])
    indices, sparse_dim = indices_of(input), sparse_dim_of(input)
    nnz = indices.shape[1]
    if dim > sparse_dim:
        return coo(indices, values_of(input).unsqueeze(dim - sparse_dim + 1), shape, nnz < 2)
    row = zeros((1, nnz), dtype=indices.dtype, device=indices.device)
    return coo(cat((indices[:dim], row, indices[dim:])), values_of(input), shape, nnz < 2)


@rule("squeeze")
@through_coo
def squeeze(input: Tensor, *dims: Any, dim: Any = None) -> Tensor:
    dims = dims if dim is None else (dim,)
    asked = {wrap_dim(each, input.dim()) for each in integers(dims, "squeeze", "dim")} if dims else None
    gone = [each for each, size in enumerate(input.shape) if size == 1 and (asked is None or each in asked)]
    sparse_dim = sparse_dim_of(input)
    indices, values = indices_of(input), values_of(input)
    kept = [each for each in range(sparse_dim) if each not in gone]
    for each in reversed(gone):
        if each >= sparse_dim:
            values = values.squeeze(each - sparse_dim + 1)
    shape = tuple(size for each, size in enumerate(input.shape) if each not in gone)
    return coo(indices.index_select(0, tensor(kept, dtype=int64)), values, shape, is_coalesced(input))


@rule("reshape")
@through_coo
def reshape(input: Tensor, *sizes: Any, shape: Any = None) -> Tensor:
    """The order of entries stays, because it is that of the elements."""
    wanted = inferred_shape(integers(sizes if shape is None else (shape,), "reshape", "shape"), input.shape)
    sparse_dim = sparse_dim_of(input)
    own = input.shape[:sparse_dim]
    dense_dim = _dense_dims_within(wanted, input.shape[sparse_dim:])
    split = len(wanted) - dense_dim
    keys = coordinates.keys_of(indices_of(input), own)
    values = values_of(input)
    values = values.reshape(len(keys), *wanted[split:])
    return coo(coordinates.indices_of(keys, wanted[:split]), values, wanted, is_coalesced(input))


def _dense_dims_within(shape: tuple[int, ...], dense: tuple[int, ...]) -> int:
    """How many of the last sizes of a new shape are those of the values, whose own sizes are `dense`.

    Raises: RuntimeError if no sizes fit.
    """
    if shape[len(shape) - len(dense) :] == tuple(dense):
        return len(dense)
    wanted = math.prod(dense)
    for count in range(len(shape) + 1):
        if math.prod(shape[len(shape) - count :]) == wanted:
            return count
    raise RuntimeError(
        f"reshape: elements of the sparse dims and of the values, of shape {list(dense)}, cannot be mixed in shape {list(shape)}: "
        "write x.to_dense().reshape(...)"
    )


def _reshaping(name: str) -> None:
    """The rule of a function that reshapes. The function itself says to which shape."""
    function = FUNCTIONS[name]

    def rule(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        shape = function(_empty_like(input), *args, **kwargs).shape
        return alias(input) if shape == input.shape else reshape(input, shape)

    SPARSE.rule(name)(rule)


for _name in ("flatten", "unflatten", "ravel"):
    _reshaping(_name)


# ---- Repeated and exchanged entries ---------------------------------------------------------------------------------------


@rule("expand")
@through_coo
def expand(self: Tensor, *sizes: Any, size: Any = None, implicit: bool = False) -> Tensor:
    shape = _empty_like(self).expand(integers(sizes if size is None else (size,), "expand", "size")).shape
    for _ in range(len(shape) - self.dim()):
        self = _unsqueeze_coo(self, 0)
    sparse_dim = sparse_dim_of(self)
    indices, values = indices_of(self), values_of(self)
    for dim in range(sparse_dim):
        if self.shape[dim] != shape[dim]:
            count, nnz = shape[dim], indices.shape[1]
            indices = indices.repeat(1, count)
            indices[dim] = arange(count, device=indices.device).repeat_interleave(nnz)
            values = values.repeat(count, *[1] * (values.dim() - 1))
    values = values.expand(len(values), *shape[sparse_dim:]).contiguous()
    keeps = shape[:sparse_dim] == self.shape[:sparse_dim] and is_coalesced(self)
    return coo(indices, values, shape, keeps or indices.shape[1] < 2)


def _empty_like(self: Tensor) -> Tensor:
    """A dense tensor of the same shape without memory, whose methods say which shape they give."""
    return empty(1, device="meta").expand(self.shape)


@rule("broadcast_to")
def broadcast_to(input: Tensor, *sizes: Any, size: Any = None) -> Tensor:
    return expand(input, *sizes, size=size)


@rule("expand_as")
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    return expand(self, other.shape)


@rule("flip")
@through_coo
def flip(input: Tensor, *order: Any, dims: Any = None) -> Tensor:
    wanted = integers(order if dims is None else (dims,), "flip", "dims")
    flipped = [wrap_dim(dim, input.dim()) for dim in wanted]
    if len(set(flipped)) != len(flipped):
        raise RuntimeError("dim appears multiple times in the list of dims")
    sparse_dim = sparse_dim_of(input)
    indices, values = indices_of(input).clone(), values_of(input)
    for dim in flipped:
        if dim < sparse_dim:
            indices[dim] = input.shape[dim] - 1 - indices[dim]
    dense = [dim - sparse_dim + 1 for dim in flipped if dim >= sparse_dim]
    return coo(indices, values.flip(dense) if dense else values, input.shape, indices.shape[1] < 2)
