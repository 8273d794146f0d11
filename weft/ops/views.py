"""Views: other sizes, strides and offsets on the same memory."""

from __future__ import annotations

import functools
from typing import Any

from ..core import view_rules as rules
from ..core.arguments import integer, integers
from ..core.derivative import Derivative, nondifferentiable
from ..core.dtype import DType
from ..core.iteration import broadcast_shapes as common_shape
from ..core.layout import contiguous_format
from ..core.op import FUNCTIONS, PlanCache, needs_recording, public, record
from ..core.size import Size
from ..core.spec import Spec, contiguous_spec
from ..core.tensor import Tensor, empty, make, wrap_dim
from ..core.warn import warn_once
from ..families.map import FILL
from ..families.step import step
from ..families.view import View
from .arithmetic import ADD
from .copying import clone, contiguous


def _reshaped(ct, out, a, *static, specs):
    return reshape(ct, specs[0].shape)


def _permuted_back(ct, out, a, dims, *, specs):
    order = rules.distinct_dims(dims, len(dims))
    return PERMUTE(ct, tuple([order.index(dim) for dim in range(len(order))]))


def _windows_back(ct, out, a, dim, size, step, *, specs):
    return UNFOLD_BACKWARD(ct, specs[0].shape, dim, size, step)


def _as_strided_back(ct, out, a, size, stride, offset, *, specs):
    own, start, place = specs[0], max(-offset, 0), max(offset, 0)
    view = rules.moved(own, size, stride)
    memory = _to_memory(ct, view, place, max(start + own.span, place + view.span))
    if _overlaps(own):
        ones = FUNCTIONS["ones"](own.shape, dtype=ct.dtype)
        memory = memory / _to_memory(ones, own, start, memory.numel()).clamp(min=1)
    return AS_STRIDED(memory, own.shape, own.stride, start)


def _to_memory(ct: Tensor, view: Spec, start: int, length: int) -> Tensor:
    """The elements of memory that a view shows, of `length` in all: sums where it shows an element several times."""
    memory = contiguous_spec((length,), ct.spec.dtype, ct.spec.device)
    if not _overlaps(view):
        return AS_STRIDED.adjoint(ct, memory, view.shape, view.stride, start)
    positions = AS_STRIDED(FUNCTIONS["arange"](length), view.shape, view.stride, start)
    return ct.new_zeros((length,)).index_add(0, positions.reshape(-1), ct.reshape(-1))


def _overlaps(own: Spec) -> bool:
    """Whether an element of memory may appear more than once."""
    reach = 1
    for stride, size in sorted((stride, size) for stride, size in zip(own.stride, own.shape) if size > 1):
        if stride < reach:
            return own.numel > 0
        reach += (size - 1) * stride
    return False


def _windows_of(ct, out, a, sizes, dim, size, step):
    return UNFOLD(ct, dim, size, step)


class _UnfoldBackward:
    """The adjoint of `unfold`: every element is added to where its window has it."""

    name = "unfold_backward"
    derivative = Derivative(_windows_of)

    def __call__(self, input: Tensor, sizes: Size, dim: int, size: int, step: int) -> Tensor:
        if not sizes:
            return input.sum()
        result = FILL.write(empty(contiguous_spec(sizes, input.spec.dtype, input.spec.device)), 0)
        values, places = make(input._storage, input._start, input.spec), UNFOLD(result, dim, size, step)
        apart = -(-size // step)  # windows so far apart do not overlap
        for first in range(min(apart, places.spec.shape[dim])):
            place = SLICE(places, dim, first, None, apart)
            ADD.write(place, place, SLICE(values, dim, first, None, apart))
        return (
            record(self, result, (input,), (sizes, dim, size, step)) if needs_recording((input,)) else result
        )


UNFOLD_BACKWARD = _UnfoldBackward()


# fmt: off
VIEW       = View(rules.view, _reshaped)
VIEW_DTYPE = View(rules.view_dtype, nondifferentiable)
UNSQUEEZE  = View(rules.unsqueeze, _reshaped)
SQUEEZE    = View(rules.squeeze, _reshaped)
SQUEEZE_DIM  = View(rules.squeeze, _reshaped, name="squeeze.dim", node_name="SqueezeBackward1")
SQUEEZE_DIMS = View(rules.squeeze, _reshaped, name="squeeze.dims", node_name="SqueezeBackward2")
PERMUTE    = View(rules.permute, _permuted_back)
TRANSPOSE: View = View(rules.transpose, lambda ct, out, a, dim0, dim1: TRANSPOSE(ct, dim0, dim1))
T: View = View(rules.t, lambda ct, out, a: T(ct))
EXPAND     = View(rules.expand, lambda ct, out, a, sizes: ct)
SELECT     = View(rules.select)
SLICE      = View(rules.slice)
DIAGONAL   = View(rules.diagonal)
UNFOLD     = View(rules.unfold, _windows_back)
AS_STRIDED = View(rules.as_strided, _as_strided_back)
VIEW_AS_REAL: View = View(rules.view_as_real, lambda ct, out, a: VIEW_AS_COMPLEX(contiguous(ct)))
VIEW_AS_COMPLEX: View = View(rules.view_as_complex, lambda ct, out, a: VIEW_AS_REAL(ct.resolve_conj()))
REAL       = View(rules.real, node_name="SelectBackward0")
IMAG       = View(rules.imag, node_name="SelectBackward0")
CONJ       = View(rules.conj, lambda ct, out, a: conj(ct))
NEG_VIEW   = View(rules.neg_view, lambda ct, out, a: -ct)
ALIAS      = View(rules.alias, lambda ct, out, a: ct)
# fmt: on


# ---- Other sizes, same elements in the same order ------------------------------------------------------------------


@public("method")
def view(self: Tensor, *shape: Any, size: Any = None, dtype: DType | None = None) -> Tensor:
    """The same memory with another shape, or read as another dtype.

    Forms: view(*sizes), view(sizes), view(dtype); one size may be -1.

    Raises: RuntimeError if the strides do not allow it; `reshape` copies then.

    >>> import weft as torch
    >>> torch.arange(6).view(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    if len(shape) == 1 and isinstance(shape[0], DType):
        dtype = shape[0]
    if dtype is not None:
        return _view_dtype(self, dtype)
    if size is not None:
        shape = (size,)
    elif not shape:
        raise TypeError("view() received an invalid combination of arguments: it takes sizes or a dtype")
    return VIEW(self, integers(shape, "view", "size"))


def _view_dtype(self: Tensor, dtype: DType) -> Tensor:
    result = VIEW_DTYPE(self.detach(), dtype)
    result._base = None  # for autograd, as in PyTorch, it has nothing to do with the tensor
    if dtype.itemsize > self.spec.dtype.itemsize:
        _check_offset(self, dtype.itemsize // self.spec.dtype.itemsize, dtype)
    return result


def _check_offset(self: Tensor, ratio: int, dtype: DType) -> None:
    if self.storage_offset() % ratio:
        names = rules.LEGACY_NAMES
        raise RuntimeError(
            f"self.storage_offset() must be divisible by {ratio} to view {names[self.spec.dtype]} as {names[dtype]} "
            f"(different element sizes), but got {self.storage_offset()}"
        )


@public("method")
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """The same memory with the shape of `other`."""
    return VIEW(self, other.spec.shape)


@public("function method")
def reshape(input: Tensor, *sizes: Any, shape: Any = None) -> Tensor:
    """The same elements with another shape: a view where the strides allow it, else a copy.

    >>> import weft as torch
    >>> torch.arange(6).reshape(2, 3).t().reshape(6)
    tensor([0, 3, 1, 4, 2, 5])
    """
    sizes = integers(sizes if shape is None else (shape,), "reshape", "shape")
    if input.spec.is_contiguous or _is_viewable[input.spec, sizes]:
        return VIEW(input, sizes)
    return UNSAFE_VIEW(clone(input, memory_format=contiguous_format), sizes)


class _UnsafeView:
    """Another shape for a copy that nobody else has: no view, as far as users can tell."""

    name = "unsafe_view"
    derivative = Derivative(_reshaped)

    def __call__(self, input: Tensor, sizes: tuple[int, ...]) -> Tensor:
        result = make(input._storage, input._start, VIEW.plans[input.spec, sizes][0])
        return record(self, result, (input,), (sizes,)) if needs_recording((input,)) else result


UNSAFE_VIEW = _UnsafeView()


@PlanCache
def _is_viewable(own: Spec, sizes: tuple[int, ...]) -> bool:
    return rules.view_stride(own, rules.inferred_shape(sizes, own.shape)) is not None


@public("method")
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """The same elements with the shape of `other`."""
    return reshape(self, other.spec.shape)


@public("function method")
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from `start_dim` to `end_dim` merged into one.

    >>> import weft as torch
    >>> torch.zeros(2, 3, 4).flatten(1).shape
    torch.Size([2, 12])
    """
    sizes = _flat_shape[
        input.spec, integer(start_dim, "flatten", "start_dim"), integer(end_dim, "flatten", "end_dim")
    ]
    if sizes is None:
        return input
    return VIEW(input, sizes) if input.spec.is_contiguous else reshape(input, sizes)


@PlanCache
def _flat_shape(own: Spec, start_dim: int, end_dim: int) -> tuple[int, ...] | None:
    sizes = own.shape
    start, end = wrap_dim(start_dim, len(sizes)), wrap_dim(end_dim, len(sizes))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not sizes:
        return (1,)
    return None if start == end else (*sizes[:start], sizes[start : end + 1].numel(), *sizes[end + 1 :])


@public("function method")
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """One dimension split into several, of the given sizes; one of them may be -1.

    >>> import weft as torch
    >>> torch.zeros(2, 12).unflatten(1, (3, -1)).shape
    torch.Size([2, 3, 4])
    """
    own = input.spec.shape
    parts = integers((sizes,), "unflatten", "sizes")
    if not parts:
        raise RuntimeError("unflatten: sizes must be non-empty")
    dim = wrap_dim(integer(dim, "unflatten", "dim"), len(own))
    if not own:
        raise RuntimeError(
            f"unflatten got an unexpected error:\nDimension specified as {dim} but tensor has no dimensions"
        )
    size = own[dim]
    try:
        inferred = rules.inferred_shape(parts, (size,))
    except RuntimeError as error:
        if list(parts).count(-1) > 1 or min(parts) < -1:
            raise RuntimeError(f"unflatten got an unexpected error:\n{error}") from None
        raise RuntimeError(
            f"unflatten: Provided sizes {list(parts)} don't multiply up to the size of dim {dim} ({size}) in the input "
            "tensor"
        ) from None
    return VIEW(input, (*own[:dim], *inferred, *own[dim + 1 :]))


@public("function method")
def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension: a view if the tensor is contiguous, else a copy."""
    return VIEW(contiguous(input), (-1,))


@public("function method")
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """A new dimension of size 1 before position `dim`.

    >>> import weft as torch
    >>> torch.zeros(2, 3).unsqueeze(-1).shape
    torch.Size([2, 3, 1])
    """
    return UNSQUEEZE(input, integer(dim, "unsqueeze", "dim"))


@public("function method")
def squeeze(input: Tensor, *dims: Any, dim: Any = None) -> Tensor:
    """Without the dimensions of size 1: all, or those of `dim` (an int or a tuple).

    >>> import weft as torch
    >>> torch.zeros(1, 2, 1).squeeze().shape, torch.zeros(1, 2, 1).squeeze(0).shape
    (torch.Size([2]), torch.Size([2, 1]))
    """
    if dim is not None:
        dims = (dim,)
    elif not dims or dims == (None,):
        return SQUEEZE(input)
    chosen = integers(dims, "squeeze", "dim")
    return (SQUEEZE_DIM if type(dims[0]) is int and len(dims) == 1 else SQUEEZE_DIMS)(input, chosen)


# ---- Another order of dimensions -----------------------------------------------------------------------------------


@public("function method")
def permute(input: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """The dimensions in another order.

    >>> import weft as torch
    >>> torch.zeros(2, 3, 4).permute(2, 0, 1).shape
    torch.Size([4, 2, 3])
    """
    return PERMUTE(input, integers(order if dims is None else (dims,), "permute", "dims"))


@public("function method")
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions exchanged.

    >>> import weft as torch
    >>> torch.zeros(2, 3).transpose(0, 1).shape
    torch.Size([3, 2])
    """
    return TRANSPOSE(input, integer(dim0, "transpose", "dim0"), integer(dim1, "transpose", "dim1"))


@public("function method")
def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions exchanged: another name of `transpose`."""
    return transpose(input, dim0, dim1)


@public("function method")
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Two dimensions exchanged: another name of `transpose`."""
    return transpose(input, axis0, axis1)


@public("function method")
def t(input: Tensor) -> Tensor:
    """A matrix transposed; tensors of fewer dimensions as they are."""
    return T(input)


@public("function method", "moveaxis")
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """The dimensions `source` moved to the positions `destination`, the others in their order.

    >>> import weft as torch
    >>> torch.zeros(2, 3, 4).movedim(0, -1).shape
    torch.Size([3, 4, 2])
    """
    sources = integers((source,), "movedim", "source")
    targets = integers((destination,), "movedim", "destination")
    if len(sources) != len(targets):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(sources)} dims) should contain the same "
            f"number of dims as destination ({list(targets)} dims)"
        )
    ndim = input.spec.ndim
    wrapped_sources = [wrap_dim(dim, ndim) for dim in sources]
    wrapped_targets = [wrap_dim(dim, ndim) for dim in targets]
    for name, wrapped, given in (
        ("source", wrapped_sources, sources),
        ("destination", wrapped_targets, targets),
    ):
        if len(set(wrapped)) != len(wrapped):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(given)})")
    if ndim == 0:
        return ALIAS(input)
    moves = dict(zip(wrapped_targets, wrapped_sources, strict=True))
    others = iter([dim for dim in range(ndim) if dim not in wrapped_sources])
    return PERMUTE(input, tuple(moves[dim] if dim in moves else next(others) for dim in range(ndim)))


def _numpy_transpose(self: Tensor) -> Tensor:
    """All dimensions in reverse order."""
    ndim = len(self.spec.shape)
    if ndim == 0:
        warn_once("Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.")
    elif ndim != 2:
        warn_once(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will "
            "throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
        )
    return PERMUTE(self, tuple(range(ndim - 1, -1, -1)))


def _matrices(self: Tensor, name: str) -> bool:
    """Whether there are matrices to transpose; a 0-dim tensor has none, which is deprecated.

    Raises: RuntimeError for one dimension.
    """
    ndim = len(self.spec.shape)
    if ndim == 1:
        raise RuntimeError(
            f"tensor.{name} is only supported on matrices or batches of matrices. Got {ndim}-D tensor."
        )
    return ndim > 0


def _matrix_transpose(self: Tensor) -> Tensor:
    """The last two dimensions exchanged."""
    if _matrices(self, "mT"):
        return TRANSPOSE(self, -2, -1)
    warn_once("Tensor.mT is deprecated on 0-D tensors. This function is the identity in these cases.")
    return self


def _adjoint(self: Tensor, name: str) -> Tensor:
    if _matrices(self, name):
        return conj(TRANSPOSE(self, -2, -1))
    warn_once(f"{name} is deprecated on 0-D tensors. Consider using x.conj().")
    return conj(self)


@public("function method")
def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions exchanged, and conjugated.

    >>> import weft as torch
    >>> torch.zeros(5, 2, 3).adjoint().shape
    torch.Size([5, 3, 2])
    """
    return _adjoint(input, "adjoint()")


def _hermitian(self: Tensor) -> Tensor:
    """A matrix transposed and conjugated."""
    ndim = len(self.spec.shape)
    if ndim not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {ndim}-D tensor."
            + (" For batches of matrices, consider using tensor.mH" if ndim > 2 else "")
        )
    return _adjoint(self, "Tensor.H")


Tensor.T = property(_numpy_transpose)
Tensor.mT = property(_matrix_transpose)
Tensor.H = property(_hermitian)
Tensor.mH = property(lambda self: _adjoint(self, "mH"), doc=adjoint.__doc__)


# ---- Repeated elements ---------------------------------------------------------------------------------------------


@public("method")
def expand(self: Tensor, *sizes: Any, size: Any = None, implicit: bool = False) -> Tensor:
    """Dimensions of size 1 repeated without copying; -1 keeps a size, more sizes add dimensions in front.

    >>> import weft as torch
    >>> torch.tensor([[1], [2]]).expand(-1, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    return EXPAND(self, integers(sizes if size is None else (size,), "expand", "size"))


@public("method")
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Expanded to the shape of `other`."""
    return EXPAND(self, other.spec.shape)


@public("function method")
def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """Expanded to `size`."""
    return EXPAND(input, integers((size,), "broadcast_to", "size"))


@public("function")
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All expanded to their common shape.

    Raises: RuntimeError if they have none.
    """
    for position, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"expected Tensor as element {position} in argument 0, but got {type(tensor).__name__}"
            )
    sizes = common_shape("broadcast_tensors", *(tensor.spec.shape for tensor in tensors))
    return tuple(tensor if tensor.spec.shape == sizes else EXPAND(tensor, sizes) for tensor in tensors)


@public("function")
def broadcast_shapes(*shapes: Any) -> Size:
    """The common shape of tensors of these shapes.

    >>> import weft as torch
    >>> torch.broadcast_shapes((2,), (3, 1), (1, 1, 1))
    torch.Size([1, 3, 2])
    """
    tuples = [integers((each,), "broadcast_shapes", "shapes") for each in shapes]
    if any(size < 0 for sizes in tuples for size in sizes):
        raise ValueError("Attempting to broadcast a dimension with negative length!")
    return common_shape("broadcast_shapes", *tuples)


# ---- Fewer elements ------------------------------------------------------------------------------------------------


@public("function method")
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Element `index` of a dimension, which goes away.

    >>> import weft as torch
    >>> torch.tensor([[1, 2], [3, 4]]).select(1, 0)
    tensor([1, 3])
    """
    return SELECT(input, integer(dim, "select", "dim"), integer(index, "select", "index"))


@public("function method")
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`length` elements of a dimension from `start`, an int or an integer tensor without dimensions.

    >>> import weft as torch
    >>> torch.arange(5).narrow(0, 1, 3)
    tensor([1, 2, 3])
    """
    own = input.spec.shape
    if not own:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if isinstance(start, Tensor) and (start.spec.shape or not start.spec.dtype.is_integral):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    length = integer(length, "narrow", "length")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    dim = wrap_dim(integer(dim, "narrow", "dim"), len(own))
    start = integer(start, "narrow", "start")
    size = own[dim]
    if not -size <= start <= size:
        raise IndexError(
            f"start out of range (expected to be in range of [{-size}, {size}], but got {start})"
        )
    start = start + size if start < 0 else start
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return SLICE(input, dim, start, start + length, 1)


@public("function method")
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonals of the matrices in dimensions `dim1` and `dim2`, as the last dimension.

    >>> import weft as torch
    >>> torch.tensor([[1, 2], [3, 4]]).diagonal()
    tensor([1, 4])
    """
    return DIAGONAL(
        input,
        integer(offset, "diagonal", "offset"),
        integer(dim1, "diagonal", "dim1"),
        integer(dim2, "diagonal", "dim2"),
    )


@public("function", name="linalg.diagonal")
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of the matrices in dimensions `dim1` and `dim2`, as the last dimension."""
    return diagonal(A, offset, dim1, dim2)


@public("method")
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Windows of `size` elements, every `step` elements along a dimension, as a new last dimension.

    >>> import weft as torch
    >>> torch.arange(5).unfold(0, 3, 1)
    tensor([[0, 1, 2],
            [1, 2, 3],
            [2, 3, 4]])
    """
    return UNFOLD(
        self,
        integer(dimension, "unfold", "dimension"),
        integer(size, "unfold", "size"),
        integer(step, "unfold", "step"),
    )


@public("function method")
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Any sizes, strides and offset (in elements) on the storage of `input`.

    Raises: RuntimeError if an element would lie outside of the storage.

    >>> import weft as torch
    >>> torch.arange(4).as_strided((3, 2), (1, 1))
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    own = input.storage_offset()
    offset = own if storage_offset is None else integer(storage_offset, "as_strided", "storage_offset")
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    result = AS_STRIDED(
        input,
        integers((size,), "as_strided", "size"),
        integers((stride,), "as_strided", "stride"),
        offset - own,
    )
    check_bounds(result)
    return result


def check_bounds(tensor: Tensor) -> None:
    """Raises: RuntimeError if an element of the tensor lies outside of its storage."""
    own = tensor.spec
    if _span_bytes[own,] + tensor._start > tensor._storage.nbytes_ and own.numel:
        needed = tensor._start + _span_bytes[own,]
        raise RuntimeError(
            f"setStorage: sizes {list(own.shape)}, strides {list(own.stride)}, storage offset "
            f"{tensor.storage_offset()}, and itemsize {own.dtype.itemsize} requiring a storage size of {needed} are out of bounds for storage of "
            f"size {tensor._storage.nbytes_}"
        )


@PlanCache
def _span_bytes(own: Spec) -> int:
    return own.span * own.dtype.itemsize


# ---- At least so many dimensions -----------------------------------------------------------------------------------


def _each(function):
    """Also for several tensors, or one sequence of them: a tuple of results."""

    @functools.wraps(function)
    def complete(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return function(tensors[0])
        if len(tensors) == 1:
            tensors = tuple(tensors[0])
        return tuple(function(tensor) for tensor in tensors)

    FUNCTIONS[function.__name__] = complete
    return complete


@_each
def atleast_1d(input: Tensor) -> Tensor:
    """With one dimension added if there is none; several tensors give a tuple."""
    return input if input.spec.shape else VIEW(input, (1,))


@_each
def atleast_2d(input: Tensor) -> Tensor:
    """With dimensions added in front until there are two; several tensors give a tuple."""
    ndim = input.spec.ndim
    if ndim >= 2:
        return input
    return UNSQUEEZE(input, 0) if ndim else VIEW(input, (1, 1))


@_each
def atleast_3d(input: Tensor) -> Tensor:
    """With dimensions added until there are three, one in front first; several tensors give a tuple."""
    ndim = input.spec.ndim
    if ndim >= 3:
        return input
    if ndim == 2:
        return UNSQUEEZE(input, -1)
    return UNSQUEEZE(UNSQUEEZE(input, 0), -1) if ndim else VIEW(input, (1, 1, 1))


# ---- Complex numbers and their parts -------------------------------------------------------------------------------


@public("function")
def view_as_real(input: Tensor) -> Tensor:
    """A complex tensor's memory as pairs of real numbers, along a new last dimension of size 2."""
    return VIEW_AS_REAL(input)


@public("function")
def view_as_complex(input: Tensor) -> Tensor:
    """Pairs of real numbers, the last dimension, read as complex numbers."""
    result = VIEW_AS_COMPLEX(input)
    if input.storage_offset() % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return result


@public("function")
def real(input: Tensor) -> Tensor:
    """The real parts, a view; a real tensor is itself."""
    return REAL(input) if input.spec.dtype.is_complex else input


@public("function")
def imag(input: Tensor) -> Tensor:
    """The imaginary parts, a view.

    Raises: RuntimeError for real tensors.
    """
    return IMAG(input)


def _set_real(self: Tensor, value: Any) -> None:
    real(self).copy_(value)


def _set_imag(self: Tensor, value: Any) -> None:
    imag(self).copy_(value)


Tensor.real = property(real, _set_real, doc=real.__doc__)
Tensor.imag = property(imag, _set_imag, doc=imag.__doc__)


@public("function method")
def conj(input: Tensor) -> Tensor:
    """The complex conjugate: a view that conjugates when read; a real tensor is itself.

    >>> import weft as torch
    >>> torch.tensor([1 + 2j]).conj()
    tensor([1.-2.j])
    """
    return CONJ(input) if input.spec.dtype.is_complex else input


@public("function method inplace", out=True)
def conj_physical(input: Tensor) -> Tensor:
    """The complex conjugate, computed; a real tensor is itself."""
    return _conj_physical(input) if input.spec.dtype.is_complex else input


def _conjugated(ct, out, a):
    return _conj_physical(ct)


@step(_conjugated)
def _conj_physical(input: Tensor) -> Tensor:
    return clone(CONJ(input))


@public("function method", name="_neg_view")
def neg_view(input: Tensor) -> Tensor:
    """The negative: a view that negates when read."""
    return NEG_VIEW(input)


FUNCTIONS["_conj"] = conj
FUNCTIONS["conj_physical_"] = vars(Tensor)["conj_physical_"]
FUNCTIONS["is_conj"] = Tensor.is_conj
FUNCTIONS["is_neg"] = Tensor.is_neg
