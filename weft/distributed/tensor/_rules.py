"""Placement rules: along one dimension of the mesh, how the operands of a function have to lie so that its parts compute those of the result.

A rule gets a Call and the placement of each operand along that dimension. It returns the placements that the operands shall have and
that of the result, or None: then every rank computes the whole result from whole operands, which is right for every function. There is a rule
for each family of functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...ops.elementwise.pointwise import OPS
from .placement_types import Partial, Placement, Replicate, Shard


class Call(NamedTuple):
    """A call of a function on DTensors."""

    name: str  # of the function, without underscores around or behind it
    shapes: Sequence[tuple[int, ...]]  # of the operands, over all ranks
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    in_place: bool

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        return self.args[position] if len(self.args) > position else self.kwargs.get(name, default)


Column = list[Placement]
Decision = tuple[Column, Placement] | None
Rule = Callable[[Call, Column], Decision]

R = Replicate()


def _is_sum(placement: Placement) -> bool:
    return isinstance(placement, Partial) and placement.reduce_op == "sum"


# ---- Elementwise: each element of the result depends on the elements at its place

# Sums of summands are summands of the sum.
_ADDING = {
    "add",
    "sub",
    "neg",
    "clone",
    "detach",
    "contiguous",
    "requires_grad",
    "zeros_like",
    "alias",
    "view_as",
}
_SCALING = {"mul", "div", "true_divide", "multiply", "truediv"}


def elementwise(call: Call, column: Column) -> Decision:
    """Any operand that is cut decides: the others are cut alike where they are not broadcast."""
    if any(isinstance(each, Partial) for each in column) and _stays_partial(call, column):
        return column, next(each for each in column if isinstance(each, Partial))
    ndim = max(map(len, call.shapes))
    out = [max(sizes) if 0 not in sizes else 0 for sizes in _aligned(call.shapes, ndim)]
    candidates = [
        (_count(shape), placement.dim + ndim - len(shape))
        for shape, placement in zip(call.shapes, column)
        if isinstance(placement, Shard) and shape[placement.dim] == out[placement.dim + ndim - len(shape)]
    ]
    if call.in_place:  # the first operand stays where it is
        own = column[0]
        if not isinstance(own, Shard):
            return ([R] * len(column), R) if own == R else None
        candidates = [(0, own.dim)]
    if not candidates:
        return None
    dim = max(candidates)[1]
    wanted: Column = []
    for shape in call.shapes:
        own_dim = dim - (ndim - len(shape))
        cut = own_dim >= 0 and shape[own_dim] == out[dim]
        wanted.append(Shard(own_dim) if cut else R)
    return wanted, Shard(dim)


def _stays_partial(call: Call, column: Column) -> bool:
    numbers = [
        each for each in (*call.args, *call.kwargs.values()) if isinstance(each, int | float | complex)
    ]
    if call.name in _ADDING:
        return all(map(_is_sum, column)) and (not numbers or call.name not in ("add", "sub"))
    if call.name in _SCALING and not call.in_place:
        return _is_sum(column[0]) and all(each == R for each in column[1:])
    return False


def _aligned(shapes: Sequence[tuple[int, ...]], ndim: int) -> list[tuple[int, ...]]:
    return list(zip(*[(1,) * (ndim - len(shape)) + tuple(shape) for shape in shapes]))


def _count(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


# ---- Functions along some dims: each slice of the other dims is computed on its own


def along(dims: Callable[[Call], Sequence[int]]) -> Rule:
    """The rule of functions whose first operand and result have one shape, and which mix the elements along `dims` only."""

    def rule(call: Call, column: Column) -> Decision:
        first, ndim = column[0], len(call.shapes[0])
        if not isinstance(first, Shard) or first.dim in [dim % ndim for dim in dims(call)]:
            return None
        return [first, *[R] * (len(column) - 1)], first

    return rule


def _dim(position: int, default: int = -1) -> Callable[[Call], Sequence[int]]:
    def dims(call: Call) -> Sequence[int]:
        found = call.argument(position, "dim")
        return [default if found is None else found]

    return dims


def _last_dims(call: Call) -> Sequence[int]:
    shape = call.argument(1, "normalized_shape")
    return [-1 - k for k in range(len(shape) if isinstance(shape, Sequence) else 1)]


# ---- Products


def matmul(call: Call, column: Column) -> Decision:
    """[..., m, k] @ [..., k, n]: rows and batches are cut with the first, columns with the second operand; cut along k gives summands."""
    a, b = call.shapes[:2]
    if len(a) < 2 or len(b) < 2:
        return None
    ndim = max(len(a), len(b))
    left, right = column[:2]
    if (left, right) == (Shard(len(a) - 1), Shard(len(b) - 2)):
        return [left, right], Partial()
    if isinstance(right, Shard) and right.dim == len(b) - 1 and not isinstance(left, Shard):
        return [R, right], Shard(ndim - 1)
    if isinstance(left, Shard) and left.dim == len(a) - 2:
        return [left, R], Shard(ndim - 2)
    batch = next((p.dim - (len(s) - ndim) for p, s in ((left, a), (right, b)) if isinstance(p, Shard)), ndim)
    if batch >= ndim - 2:
        return None
    wanted: Column = [Shard(batch - (ndim - len(s))) if _has(s, batch, ndim) else R for s in (a, b)]
    return wanted, Shard(batch)


def _has(shape: Sequence[int], dim: int, ndim: int) -> bool:
    own = dim - (ndim - len(shape))
    return own >= 0 and shape[own] > 1


def linear(call: Call, column: Column) -> Decision:
    """[..., in] with weight [out, in] and bias [out]: column-wise and row-wise parallel, or cut along the batch."""
    x, weight = column[:2]
    ndim = len(call.shapes[0])
    has_bias = len(column) > 2
    if (x, weight) == (Shard(ndim - 1), Shard(1)):
        return [x, weight, *[Partial()] * has_bias], Partial()  # the bias is a summand of one rank
    if weight == Shard(0) and not (isinstance(x, Shard) and x.dim < ndim - 1):
        return [R, weight, *[Shard(0)] * has_bias], Shard(ndim - 1)
    if weight == Shard(1) and not isinstance(x, Shard):
        return [Shard(ndim - 1), weight, *[Partial()] * has_bias], Partial()
    if isinstance(x, Shard) and x.dim < ndim - 1:
        return [x, *[R] * (len(column) - 1)], x
    return None


def embedding(call: Call, column: Column) -> Decision:
    ids, weight = column[:2]
    if weight == Shard(1):
        return [R, weight], Shard(len(call.shapes[0]))
    return ([ids, R], ids) if isinstance(ids, Shard) else None


def attention(call: Call, column: Column) -> Decision:
    """Batches and heads are computed on their own."""
    first, ndim = column[0], len(call.shapes[0])
    alike = all(len(shape) == ndim and shape[:-2] == call.shapes[0][:-2] for shape in call.shapes)
    if alike and len(column) == 3 and isinstance(first, Shard) and first.dim < ndim - 2:
        return [first] * 3, first
    return None


# ---- Reductions


def _reduced_dims(call: Call) -> tuple[list[int], bool]:
    ndim = len(call.shapes[0])
    dim, keepdim = call.argument(1, "dim"), call.argument(2, "keepdim", False)
    dims = range(ndim) if dim is None or dim == () else [dim] if isinstance(dim, int) else dim
    return [each % max(ndim, 1) for each in dims], bool(keepdim)


def total(call: Call, column: Column) -> Decision:
    """A sum along the cut dimension gives summands."""
    (own,) = column
    if _is_sum(own):
        return [own], own
    if not isinstance(own, Shard):
        return None
    dims, keepdim = _reduced_dims(call)
    if own.dim in dims:
        return [own], Partial()
    return [own], Shard(own.dim if keepdim else own.dim - sum(dim < own.dim for dim in dims))


def reduction(call: Call, column: Column) -> Decision:
    """Any other reduction: along dims that are not cut."""
    (own,) = column
    dims, keepdim = _reduced_dims(call)
    if not isinstance(own, Shard) or own.dim in dims:
        return None
    return [own], Shard(own.dim if keepdim else own.dim - sum(dim < own.dim for dim in dims))


# ---- Views


def transpose(call: Call, column: Column) -> Decision:
    ndim = len(call.shapes[0])
    a, b = (0, 1) if call.name in ("t", "T") else (call.argument(1, "dim0"), call.argument(2, "dim1"))
    moved = {a % ndim: b % ndim, b % ndim: a % ndim} if ndim > 1 else {}
    return _renamed(column, lambda dim: moved.get(dim, dim))


def permute(call: Call, column: Column) -> Decision:
    given = call.argument(1, "dims")
    dims = call.args[1:] if isinstance(given, int) else given
    ndim = len(call.shapes[0])
    return _renamed(column, [dim % ndim for dim in dims].index)


def unsqueeze(call: Call, column: Column) -> Decision:
    place = call.argument(1, "dim") % (len(call.shapes[0]) + 1)
    return _renamed(column, lambda dim: dim + (dim >= place))


def _renamed(column: Column, new: Callable[[int], int]) -> Decision:
    (own,) = column
    return [own], Shard(new(own.dim)) if isinstance(own, Shard) else own


# ---- The table

_ELEMENTWISE = {
    *OPS, *_ADDING, *_SCALING,
    *"rsub radd rmul rtruediv pow rpow square where lerp clamp addcmul addcdiv fmod remainder eq ne lt le gt ge isnan isfinite".split(),
    *"float double half bfloat16 to type bool int long ones_like full_like empty_like relu gelu silu elu leaky_relu tanh".split(),
    *"sigmoid softplus hardtanh mish logsigmoid relu6 hardswish hardsigmoid celu selu dropout copy zero fill masked_fill".split(),
    *"data nan_to_num logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_xor iadd isub imul".split(),
}  # fmt: skip

RULES: dict[str, Rule] = {
    **dict.fromkeys(_ELEMENTWISE, elementwise),
    **dict.fromkeys(
        ("softmax", "log_softmax", "softmin", "cumsum", "cumprod", "logcumsumexp", "flip"), along(_dim(1))
    ),
    "normalize": along(_dim(2, 1)),
    **dict.fromkeys(("layer_norm", "rms_norm"), along(_last_dims)),
    **dict.fromkeys(("matmul", "mm", "bmm", "__matmul__"), matmul),
    "linear": linear,
    "embedding": embedding,
    "scaled_dot_product_attention": attention,
    "sum": total,
    **dict.fromkeys("mean prod amax amin var std all any logsumexp argmax argmin".split(), reduction),
    **dict.fromkeys(("t", "T", "transpose", "swapaxes", "swapdims"), transpose),
    "permute": permute,
    "unsqueeze": unsqueeze,
}
