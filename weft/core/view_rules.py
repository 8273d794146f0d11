"""Views as functions on metadata: (spec, static arguments) -> (spec of the view, offset of its first element).

The offset is relative to the input, in elements of the view. The functions know nothing of storages, devices or autograd.
"""

from __future__ import annotations

import math

from .dtype import LEGACY_NAMES, DType, float16, float32, float64
from .size import shape as as_size
from .spec import Spec, contiguous_stride, make_spec
from .tensor import wrap_dim


def moved(spec: Spec, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Spec:
    """The spec of a view with these sizes and strides; the rest is that of `spec`."""
    return make_spec(as_size(sizes), strides, spec.dtype, spec.device, spec.conj, spec.neg)


# ---- Other sizes, same elements in the same order ------------------------------------------------------------------


def inferred_shape(sizes: tuple[int, ...], own: tuple[int, ...]) -> tuple[int, ...]:
    """`sizes`, with -1 replaced by the size that gives the number of elements of the shape `own`.

    Raises: RuntimeError if no size fits.
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


def view_stride(spec: Spec, sizes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The strides of a view with shape `sizes` of the same memory; None if such a view does not exist.

    The function divides the old dimensions into runs that are contiguous in memory. New dimensions must fill each run exactly.
    """
    if spec.numel == 0:
        return spec.stride if spec.shape == sizes else contiguous_stride(sizes)
    if not spec.shape:
        return (1,) * len(sizes)
    strides = [0] * len(sizes)
    new = len(sizes) - 1
    base, run, covered = spec.stride[-1], 1, 1
    for dim in range(len(spec.shape) - 1, -1, -1):
        run *= spec.shape[dim]
        if dim and (spec.shape[dim - 1] == 1 or spec.stride[dim - 1] == run * base):
            continue  # the next outer dimension belongs to the same run
        while new >= 0 and (covered < run or sizes[new] == 1):
            strides[new] = covered * base
            covered *= sizes[new]
            new -= 1
        if covered != run:
            return None
        if dim:
            base, run, covered = spec.stride[dim - 1], 1, 1
    return tuple(strides) if new == -1 else None


def view(spec: Spec, sizes: tuple[int, ...]) -> tuple[Spec, int]:
    sizes = inferred_shape(sizes, spec.shape)
    strides = view_stride(spec, sizes)
    if strides is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            f"contiguous subspaces). Use .reshape(...) instead.\nview: shape {list(spec.shape)}, strides "
            f"{spec.stride} as {list(sizes)}"
        )
    return moved(spec, sizes, strides), 0


def unsqueeze(spec: Spec, dim: int) -> tuple[Spec, int]:
    ndim = len(spec.shape)
    dim = wrap_dim(dim, ndim + 1)
    stride = spec.shape[dim] * spec.stride[dim] if dim < ndim else 1
    sizes = (*spec.shape[:dim], 1, *spec.shape[dim:])
    return moved(spec, sizes, (*spec.stride[:dim], stride, *spec.stride[dim:])), 0


def squeeze(spec: Spec, dims: tuple[int, ...] | None = None) -> tuple[Spec, int]:
    """Drop the dimensions of size 1 among `dims` (None: among all dimensions)."""
    ndim = len(spec.shape)
    chosen = range(ndim) if dims is None else distinct_dims(dims, ndim)
    kept = [dim for dim in range(ndim) if spec.shape[dim] != 1 or dim not in chosen]
    return moved(spec, tuple(spec.shape[d] for d in kept), tuple(spec.stride[d] for d in kept)), 0


def distinct_dims(dims: tuple[int, ...], ndim: int) -> list[int]:
    """The dimensions as nonnegative numbers.

    Raises: RuntimeError if a dimension appears twice.
    """
    wrapped: list[int] = []
    for each in dims:
        dim = wrap_dim(each, ndim)
        if dim in wrapped:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
        wrapped.append(dim)
    return wrapped


# ---- Another order of dimensions -----------------------------------------------------------------------------------


def permute(spec: Spec, dims: tuple[int, ...]) -> tuple[Spec, int]:
    ndim = len(spec.shape)
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
    return moved(spec, tuple(spec.shape[d] for d in order), tuple(spec.stride[d] for d in order)), 0


def transpose(spec: Spec, dim0: int, dim1: int) -> tuple[Spec, int]:
    ndim = len(spec.shape)
    dim0, dim1 = wrap_dim(dim0, ndim), wrap_dim(dim1, ndim)
    if dim0 == dim1:
        return spec, 0
    order = list(range(ndim))
    order[dim0], order[dim1] = dim1, dim0
    return permute(spec, tuple(order))


def t(spec: Spec) -> tuple[Spec, int]:
    ndim = len(spec.shape)
    if ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D")
    return permute(spec, tuple(reversed(range(ndim))))


# ---- Fewer or repeated elements ------------------------------------------------------------------------------------


def expand(spec: Spec, sizes: tuple[int, ...]) -> tuple[Spec, int]:
    """Broadcast dimensions of size 1 with stride 0, and add dimensions in front; -1 keeps a size."""
    leading = len(sizes) - len(spec.shape)
    if leading < 0:
        raise RuntimeError(
            f"expand(torch.{LEGACY_NAMES[spec.dtype]}Tensor{{{list(spec.shape)}}}, size={list(sizes)}): the number of "
            f"sizes provided ({len(sizes)}) must be greater or equal to the number of dimensions in the tensor "
            f"({len(spec.shape)})"
        )
    result_sizes, strides = list(sizes), [0] * len(sizes)
    for dim in range(len(sizes) - 1, -1, -1):
        wanted = sizes[dim]
        if dim >= leading:
            size, stride = spec.shape[dim - leading], spec.stride[dim - leading]
        else:
            size = 1
            stride = result_sizes[dim + 1] * strides[dim + 1] if spec.shape else 0
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
                    f"non-singleton dimension {dim}.  Target sizes: {list(sizes)}.  Tensor sizes: {list(spec.shape)}"
                )
            stride = 0
        result_sizes[dim], strides[dim] = wanted, stride
    return moved(spec, tuple(result_sizes), tuple(strides)), 0


def select(spec: Spec, dim: int, index: int) -> tuple[Spec, int]:
    """Drop `dim`, keeping its element `index`."""
    if not spec.shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(spec.shape))
    size = spec.shape[dim]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(spec.shape)} at dimension {dim}"
        )
    index = index + size if index < 0 else index
    sizes = spec.shape[:dim] + spec.shape[dim + 1 :]
    return moved(spec, sizes, spec.stride[:dim] + spec.stride[dim + 1 :]), index * spec.stride[dim]


def slice(spec: Spec, dim: int, start: int | None, end: int | None, step: int) -> tuple[Spec, int]:
    """Every `step`-th element of `dim` from `start` up to `end`, both clamped to the size as in Python's slices."""
    if not spec.shape:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(spec.shape))
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    size = spec.shape[dim]
    start = _cut(0 if start is None else start, size)
    length = max(_cut(size if end is None else end, size) - start, 0)
    sizes = (*spec.shape[:dim], -(-length // step), *spec.shape[dim + 1 :])
    strides = (*spec.stride[:dim], spec.stride[dim] * step, *spec.stride[dim + 1 :])
    return moved(spec, sizes, strides), start * spec.stride[dim]


def _cut(position: int, size: int) -> int:
    return min(max(position + size if position < 0 else position, 0), size)


def diagonal(spec: Spec, offset: int, dim1: int, dim2: int) -> tuple[Spec, int]:
    ndim = len(spec.shape)
    wrapped1, wrapped2 = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if wrapped1 == wrapped2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = spec.shape[wrapped1], spec.shape[wrapped2]
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    start = 0
    if length:
        start = offset * spec.stride[wrapped2] if offset >= 0 else -offset * spec.stride[wrapped1]
    kept = [dim for dim in range(ndim) if dim not in (wrapped1, wrapped2)]
    sizes = (*(spec.shape[d] for d in kept), length)
    strides = (*(spec.stride[d] for d in kept), spec.stride[wrapped1] + spec.stride[wrapped2])
    return moved(spec, sizes, strides), start


def unfold(spec: Spec, dimension: int, size: int, step: int) -> tuple[Spec, int]:
    """Windows of `size` elements every `step` elements of a dimension, along a new last dimension."""
    dim = wrap_dim(dimension, len(spec.shape))
    length = spec.shape[dim] if spec.shape else 1
    stride = spec.stride[dim] if spec.shape else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {dim} is {length} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not spec.shape:
        return moved(spec, (size,), (1,)), 0
    sizes = (*spec.shape[:dim], (length - size) // step + 1, *spec.shape[dim + 1 :], size)
    strides = (*spec.stride[:dim], stride * step, *spec.stride[dim + 1 :], stride)
    return moved(spec, sizes, strides), 0


def as_strided(spec: Spec, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> tuple[Spec, int]:
    """A view with these sizes and strides, `offset` elements further on. The caller checks the bounds of the storage."""
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
    return moved(spec, size, stride), offset


# ---- The same bytes as something else ------------------------------------------------------------------------------


def view_dtype(spec: Spec, dtype: DType) -> tuple[Spec, int]:
    """Reinterpret the bytes as another dtype; the size of the last dimension changes if the element sizes differ."""
    for pending, kind in ((spec.conj, "conjugate view tensors"), (spec.neg, "tensors with negative bit set")):
        if pending:
            raise RuntimeError(
                f"torch.Tensor.view is not supported for {kind} when converting to a different dtype."
            )
    old, new = spec.dtype.itemsize, dtype.itemsize
    if old == new:
        return spec.like(dtype=dtype), 0
    check_last_size(spec, dtype)
    what = described(spec, dtype)
    if spec.stride[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {what}, but got {spec.stride[-1]}")
    if old > new:
        ratio = old // new
        sizes = (*spec.shape[:-1], spec.shape[-1] * ratio)
        return make_spec(sizes, (*(step * ratio for step in spec.stride[:-1]), 1), dtype, spec.device), 0
    ratio = new // old
    for dim, step in enumerate(spec.stride[:-1]):
        if step % ratio:
            raise RuntimeError(f"self.stride({dim}) must be divisible by {ratio} {what}, but got {step}")
    sizes = (*spec.shape[:-1], spec.shape[-1] // ratio)
    return make_spec(sizes, (*(step // ratio for step in spec.stride[:-1]), 1), dtype, spec.device), 0


def check_last_size(spec: Spec, dtype: DType) -> None:
    """Raises: RuntimeError unless the size of the last dim fits elements of a dtype of another size."""
    what = described(spec, dtype)
    if not spec.shape:
        raise RuntimeError(f"self.dim() cannot be 0 {what}")
    ratio = dtype.itemsize // spec.dtype.itemsize
    if ratio > 1 and spec.shape[-1] % ratio:
        raise RuntimeError(f"self.size(-1) must be divisible by {ratio} {what}, but got {spec.shape[-1]}")


def described(spec: Spec, dtype: DType) -> str:
    """What a view of another dtype does, for error messages."""
    return f"to view {LEGACY_NAMES[spec.dtype]} as {LEGACY_NAMES[dtype]} (different element sizes)"


def view_as_real(spec: Spec) -> tuple[Spec, int]:
    if not spec.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    if spec.conj:
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can "
            "view it as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the "
            "original."
        )
    return _parts(spec), 0


def _parts(spec: Spec) -> Spec:
    strides = (*(step * 2 for step in spec.stride), 1)
    return make_spec((*spec.shape, 2), strides, spec.dtype.to_real(), spec.device, False, spec.neg)


def view_as_complex(spec: Spec) -> tuple[Spec, int]:
    if spec.dtype not in (float16, float32, float64):
        raise RuntimeError(
            f"view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{LEGACY_NAMES[spec.dtype]}"
        )
    if not spec.shape:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if spec.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if spec.stride[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(step % 2 for step in spec.stride[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    strides = tuple(step // 2 for step in spec.stride[:-1])
    return make_spec(spec.shape[:-1], strides, spec.dtype.to_complex(), spec.device, False, spec.neg), 0


def real(spec: Spec) -> tuple[Spec, int]:
    """The real parts of a complex tensor."""
    return select(_parts(spec), -1, 0)


def imag(spec: Spec) -> tuple[Spec, int]:
    """The imaginary parts of a complex tensor, with pending negation if conjugation is pending."""
    if not spec.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    part, start = select(_parts(spec), -1, 1)
    return make_spec(part.shape, part.stride, part.dtype, part.device, False, spec.neg != spec.conj), start


def conj(spec: Spec) -> tuple[Spec, int]:
    return make_spec(spec.shape, spec.stride, spec.dtype, spec.device, not spec.conj, spec.neg), 0


def neg_view(spec: Spec) -> tuple[Spec, int]:
    return make_spec(spec.shape, spec.stride, spec.dtype, spec.device, spec.conj, not spec.neg), 0


def alias(spec: Spec) -> tuple[Spec, int]:
    return spec, 0
