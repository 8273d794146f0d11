"""What views do to metadata: pure functions (spec, static arguments) -> (spec of the view, how far it starts).

The distance is in elements of the view. No storage, device or autograd in sight.
"""

from __future__ import annotations

import math

from .dtype import LEGACY_NAMES, DType, float16, float32, float64
from .size import shape as as_size
from .spec import Spec, contiguous_stride, spec
from .tensor import wrap_dim


def moved(own: Spec, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Spec:
    """The spec of a view with these sizes and strides, everything else kept."""
    return spec(as_size(sizes), strides, own.dtype, own.device, own.conj, own.neg)


# ---- Other sizes, same elements in the same order ------------------------------------------------------------------


def inferred_shape(sizes: tuple[int, ...], own: tuple[int, ...]) -> tuple[int, ...]:
    """`sizes` with -1 replaced by what makes as many elements as the shape `own` has.

    Raises: RuntimeError if nothing does.
    """
    numel = math.prod(own)
    if any(size < -1 for size in sizes):
        at = next(i for i, size in enumerate(sizes) if size < -1)
        raise RuntimeError(f"invalid shape dimension {sizes[at]} at index {at} of shape {list(sizes)}")
    known, unknown = 1, []
    for dim, size in enumerate(sizes):
        if size == -1:
            unknown.append(dim)
        else:
            known *= size
    if len(unknown) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if not unknown:
        if known != numel:
            raise _wrong_numel(sizes, own)
        return tuple(sizes)
    if known == 0:
        if numel:
            raise _wrong_numel(sizes, own)
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(sizes)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    if numel % known:
        raise _wrong_numel(sizes, own)
    dim = unknown[0]
    return (*sizes[:dim], numel // known, *sizes[dim + 1 :])


def _wrong_numel(sizes: tuple[int, ...], own: tuple[int, ...]) -> RuntimeError:
    return RuntimeError(
        f"shape '{list(sizes)}' is invalid for input of size {math.prod(own)}\nthe shape of the input is {list(own)}"
    )


def view_stride(own: Spec, sizes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The strides with which the same memory reads as `sizes` (as many elements), None if there are none.

    Works on runs of dimensions that lie in memory without gaps: each must be covered by whole new dimensions.
    """
    if own.numel == 0:
        return own.stride if own.shape == sizes else contiguous_stride(sizes)
    if not own.shape:
        return (1,) * len(sizes)
    strides = [0] * len(sizes)
    new = len(sizes) - 1
    base, run, covered = own.stride[-1], 1, 1
    for dim in range(len(own.shape) - 1, -1, -1):
        run *= own.shape[dim]
        if dim and (own.shape[dim - 1] == 1 or own.stride[dim - 1] == run * base):
            continue  # the next dimension outwards goes on where this one ends
        while new >= 0 and (covered < run or sizes[new] == 1):
            strides[new] = covered * base
            covered *= sizes[new]
            new -= 1
        if covered != run:
            return None
        if dim:
            base, run, covered = own.stride[dim - 1], 1, 1
    return tuple(strides) if new == -1 else None


def view(own: Spec, sizes: tuple[int, ...]) -> tuple[Spec, int]:
    sizes = inferred_shape(sizes, own.shape)
    strides = view_stride(own, sizes)
    if strides is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            f"contiguous subspaces). Use .reshape(...) instead.\nview: shape {list(own.shape)}, strides "
            f"{own.stride} as {list(sizes)}"
        )
    return moved(own, sizes, strides), 0


def unsqueeze(own: Spec, dim: int) -> tuple[Spec, int]:
    ndim = len(own.shape)
    dim = wrap_dim(dim, ndim + 1)
    stride = own.shape[dim] * own.stride[dim] if dim < ndim else 1
    sizes = (*own.shape[:dim], 1, *own.shape[dim:])
    return moved(own, sizes, (*own.stride[:dim], stride, *own.stride[dim:])), 0


def squeeze(own: Spec, dims: tuple[int, ...] | None = None) -> tuple[Spec, int]:
    """Drop those of `dims` (None: all) that have size 1."""
    ndim = len(own.shape)
    chosen = range(ndim) if dims is None else distinct_dims(dims, ndim)
    kept = [dim for dim in range(ndim) if own.shape[dim] != 1 or dim not in chosen]
    return moved(own, tuple(own.shape[d] for d in kept), tuple(own.stride[d] for d in kept)), 0


def distinct_dims(dims: tuple[int, ...], ndim: int) -> list[int]:
    """Each counted from the front.

    Raises: RuntimeError if one comes twice.
    """
    wrapped: list[int] = []
    for each in dims:
        dim = wrap_dim(each, ndim)
        if dim in wrapped:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
        wrapped.append(dim)
    return wrapped


# ---- Another order of dimensions -----------------------------------------------------------------------------------


def permute(own: Spec, dims: tuple[int, ...]) -> tuple[Spec, int]:
    ndim = len(own.shape)
    if len(dims) != ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(dims)}"
        )
    order: list[int] = []
    for each in dims:
        dim = wrap_dim(each, ndim)
        if dim in order:
            raise RuntimeError("permute(): duplicate dims are not allowed.")
        order.append(dim)
    return moved(own, tuple(own.shape[d] for d in order), tuple(own.stride[d] for d in order)), 0


def transpose(own: Spec, dim0: int, dim1: int) -> tuple[Spec, int]:
    ndim = len(own.shape)
    dim0, dim1 = wrap_dim(dim0, ndim), wrap_dim(dim1, ndim)
    if dim0 == dim1:
        return own, 0
    order = list(range(ndim))
    order[dim0], order[dim1] = dim1, dim0
    return permute(own, tuple(order))


def t(own: Spec) -> tuple[Spec, int]:
    ndim = len(own.shape)
    if ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D")
    return permute(own, tuple(reversed(range(ndim))))


# ---- Fewer or repeated elements ------------------------------------------------------------------------------------


def expand(own: Spec, sizes: tuple[int, ...]) -> tuple[Spec, int]:
    """Repeat dimensions of size 1, with stride 0, and add dimensions in front; -1 keeps a size."""
    leading = len(sizes) - len(own.shape)
    if leading < 0:
        raise RuntimeError(
            f"expand(torch.{LEGACY_NAMES[own.dtype]}Tensor{{{list(own.shape)}}}, size={list(sizes)}): the number of "
            f"sizes provided ({len(sizes)}) must be greater or equal to the number of dimensions in the tensor "
            f"({len(own.shape)})"
        )
    result_sizes, strides = list(sizes), [0] * len(sizes)
    for dim in range(len(sizes) - 1, -1, -1):
        wanted = sizes[dim]
        if dim >= leading:
            size, stride = own.shape[dim - leading], own.stride[dim - leading]
        else:
            size = 1
            stride = result_sizes[dim + 1] * strides[dim + 1] if own.shape else 0
            if wanted < 0:
                raise RuntimeError(
                    f"The expanded size of the tensor ({wanted}) isn't allowed in a leading, non-existing "
                    f"dimension {dim}"
                )
        if wanted == -1:
            wanted = size
        if wanted != size:
            if size != 1 or wanted < 0:
                raise RuntimeError(
                    f"The expanded size of the tensor ({wanted}) must match the existing size ({size}) at "
                    f"non-singleton dimension {dim}.  Target sizes: {list(sizes)}.  Tensor sizes: {list(own.shape)}"
                )
            stride = 0
        result_sizes[dim], strides[dim] = wanted, stride
    return moved(own, tuple(result_sizes), tuple(strides)), 0


def select(own: Spec, dim: int, index: int) -> tuple[Spec, int]:
    """Drop `dim`, keeping its element `index`."""
    if not own.shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(own.shape))
    size = own.shape[dim]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(own.shape)} at dimension {dim}"
        )
    index = index + size if index < 0 else index
    sizes = own.shape[:dim] + own.shape[dim + 1 :]
    return moved(own, sizes, own.stride[:dim] + own.stride[dim + 1 :]), index * own.stride[dim]


def slice(own: Spec, dim: int, start: int | None, end: int | None, step: int) -> tuple[Spec, int]:
    """Every `step`-th element of `dim` from `start` to before `end`, cut to the size as in Python's slices."""
    if not own.shape:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(own.shape))
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    size = own.shape[dim]
    start = _cut(0 if start is None else start, size)
    length = max(_cut(size if end is None else end, size) - start, 0)
    sizes = (*own.shape[:dim], -(-length // step), *own.shape[dim + 1 :])
    strides = (*own.stride[:dim], own.stride[dim] * step, *own.stride[dim + 1 :])
    return moved(own, sizes, strides), start * own.stride[dim]


def _cut(position: int, size: int) -> int:
    return min(max(position + size if position < 0 else position, 0), size)


def diagonal(own: Spec, offset: int, dim1: int, dim2: int) -> tuple[Spec, int]:
    ndim = len(own.shape)
    wrapped1, wrapped2 = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if wrapped1 == wrapped2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = own.shape[wrapped1], own.shape[wrapped2]
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    start = 0
    if length:
        start = offset * own.stride[wrapped2] if offset >= 0 else -offset * own.stride[wrapped1]
    kept = [dim for dim in range(ndim) if dim not in (wrapped1, wrapped2)]
    sizes = (*(own.shape[d] for d in kept), length)
    strides = (*(own.stride[d] for d in kept), own.stride[wrapped1] + own.stride[wrapped2])
    return moved(own, sizes, strides), start


def unfold(own: Spec, dimension: int, size: int, step: int) -> tuple[Spec, int]:
    """Windows of `size` elements every `step` elements of a dimension, along a new last dimension."""
    dim = wrap_dim(dimension, len(own.shape))
    length = own.shape[dim] if own.shape else 1
    stride = own.stride[dim] if own.shape else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {dim} is {length} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not own.shape:
        return moved(own, (size,), (1,)), 0
    sizes = (*own.shape[:dim], (length - size) // step + 1, *own.shape[dim + 1 :], size)
    strides = (*own.stride[:dim], stride * step, *own.stride[dim + 1 :], stride)
    return moved(own, sizes, strides), 0


def as_strided(own: Spec, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> tuple[Spec, int]:
    """Any sizes and strides, `offset` elements further on. Whoever calls checks the bounds of the storage."""
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(step < 0 for step in stride):
        raise RuntimeError(
            f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}"
        )
    if any(each < 0 for each in size):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}"
        )
    return moved(own, size, stride), offset


# ---- The same bytes as something else ------------------------------------------------------------------------------


def view_dtype(own: Spec, dtype: DType) -> tuple[Spec, int]:
    """The bytes as another dtype; the last dimension grows or shrinks if the sizes of the elements differ."""
    for pending, kind in ((own.conj, "conjugate view tensors"), (own.neg, "tensors with negative bit set")):
        if pending:
            raise RuntimeError(
                f"torch.Tensor.view is not supported for {kind} when converting to a different dtype."
            )
    old, new = own.dtype.itemsize, dtype.itemsize
    if old == new:
        return own.like(dtype=dtype), 0
    what = f"to view {LEGACY_NAMES[own.dtype]} as {LEGACY_NAMES[dtype]} (different element sizes)"
    if not own.shape:
        raise RuntimeError(f"self.dim() cannot be 0 {what}")
    if own.stride[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {what}, but got {own.stride[-1]}")
    if old > new:
        ratio = old // new
        sizes = (*own.shape[:-1], own.shape[-1] * ratio)
        return spec(sizes, (*(step * ratio for step in own.stride[:-1]), 1), dtype, own.device), 0
    ratio = new // old
    if own.shape[-1] % ratio:
        raise RuntimeError(f"self.size(-1) must be divisible by {ratio} {what}, but got {own.shape[-1]}")
    for dim, step in enumerate(own.stride[:-1]):
        if step % ratio:
            raise RuntimeError(f"self.stride({dim}) must be divisible by {ratio} {what}, but got {step}")
    sizes = (*own.shape[:-1], own.shape[-1] // ratio)
    return spec(sizes, (*(step // ratio for step in own.stride[:-1]), 1), dtype, own.device), 0


def view_as_real(own: Spec) -> tuple[Spec, int]:
    if not own.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    if own.conj:
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can "
            "view it as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the "
            "original."
        )
    return _parts(own), 0


def _parts(own: Spec) -> Spec:
    strides = (*(step * 2 for step in own.stride), 1)
    return spec((*own.shape, 2), strides, own.dtype.to_real(), own.device, False, own.neg)


def view_as_complex(own: Spec) -> tuple[Spec, int]:
    if own.dtype not in (float16, float32, float64):
        raise RuntimeError(
            f"view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{LEGACY_NAMES[own.dtype]}"
        )
    if not own.shape:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if own.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if own.stride[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(step % 2 for step in own.stride[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    strides = tuple(step // 2 for step in own.stride[:-1])
    return spec(own.shape[:-1], strides, own.dtype.to_complex(), own.device, False, own.neg), 0


def real(own: Spec) -> tuple[Spec, int]:
    """The real parts of a complex tensor; conjugation does not change them."""
    return select(_parts(own), -1, 0)


def imag(own: Spec) -> tuple[Spec, int]:
    """The imaginary parts of a complex tensor, negated if it is conjugated."""
    if not own.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    part, start = select(_parts(own), -1, 1)
    return spec(part.shape, part.stride, part.dtype, part.device, False, own.neg != own.conj), start


def conj(own: Spec) -> tuple[Spec, int]:
    return spec(own.shape, own.stride, own.dtype, own.device, not own.conj, own.neg), 0


def neg_view(own: Spec) -> tuple[Spec, int]:
    return spec(own.shape, own.stride, own.dtype, own.device, own.conj, not own.neg), 0


def alias(own: Spec) -> tuple[Spec, int]:
    return own, 0
