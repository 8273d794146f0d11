"""Tensor: a Storage, a byte offset and a Spec. `weft/ops` adds the operations."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from .arguments import integer
from .device import device
from .dtype import DType
from .layout import Layout, strided
from .native_property import native_property
from .size import Size
from .spec import Spec
from .storage import Storage

if TYPE_CHECKING:
    from .tensor_methods import TensorMethods  # a stub: `weft/ops` adds the methods when it is imported
else:
    TensorMethods = object

tuple_item = tuple.__getitem__  # of a Size it is faster than `size[dim]`, which may be a slice


class Tensor(TensorMethods):
    """`torch.Tensor`: an array of one dtype in the memory of a Storage.

    >>> import weft as torch
    >>> t = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> t.shape, t.stride(), t.storage_offset(), t.t().stride()
    (torch.Size([2, 3]), (3, 1), 0, (1, 3))
    """

    __slots__ = ("_storage", "_byte_offset", "spec", "_autograd", "_base", "__dict__", "__weakref__")

    _storage: Storage
    _byte_offset: int  # byte offset of the first element in the storage
    spec: Spec

    # The edge along which backward sends the cotangent of this tensor: a Node of the graph, an Output of a Node, or a Leaf.
    # None for tensors that do not require grad, and DUAL for tensors that have tangents only.
    _autograd: Any
    # The base, if this tensor is a view. A base is never a view itself.
    _base: Tensor | None
    # The sum of the gradients that `backward` has computed for this tensor.
    _grad: Tensor | None = None
    # The dtype of `_grad`: None for any, `...` for that of the tensor.
    _grad_dtype: Any = ...
    # Weak references to the recorded views of a base, see `autograd/inplace.py`.
    _views: list | None = None
    # The constructor `torch.Tensor(...)`. `ops/creation/legacy.py` sets it.
    _legacy_new: Any = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        return cls._legacy_new(*args, **kwargs)

    @native_property
    def shape(self) -> Size:
        return self.spec.shape

    def size(self, dim: int | None = None) -> Any:
        """All sizes, or the size of dimension `dim`."""
        if dim is None:
            return self.spec.shape
        sizes = self.spec.shape
        if type(dim) is int and -len(sizes) <= dim < len(sizes):
            return tuple_item(sizes, dim)
        if type(dim) is str and dim in self.names:
            return sizes[self.names.index(dim)]
        return sizes[own_dim(dim, len(sizes), "size")]

    def stride(self, dim: int | None = None) -> Any:
        """All strides, or the stride of dimension `dim`, in elements."""
        if dim is None:
            return self.spec.stride
        steps = self.spec.stride
        try:
            return steps[wrap_dim(dim, len(steps))]
        except (IndexError, TypeError):
            return steps[own_dim(dim, len(steps), "stride")]

    def storage_offset(self) -> int:
        """The offset of the first element in the storage, in elements."""
        return self._byte_offset // self.spec.dtype.itemsize

    @native_property
    def dtype(self) -> DType:
        return self.spec.dtype

    @native_property
    def device(self) -> device:
        return self.spec.device

    @native_property
    def layout(self) -> Layout:
        spec = self.spec
        return strided if type(spec) is Spec else spec.layout  # type: ignore[attr-defined]

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self.spec.shape)

    ndimension = dim

    @native_property
    def ndim(self) -> int:  # a function of its own, because modes are told of the property
        """The number of dimensions."""
        return len(self.spec.shape)

    def numel(self) -> int:
        """The number of elements."""
        return self.spec.numel

    nelement = numel

    def element_size(self) -> int:
        """The size of one element in bytes."""
        return self.spec.dtype.itemsize

    itemsize = property(element_size)

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.spec.nbytes

    def data_ptr(self) -> int:
        """The address of the first element, 0 for an empty tensor. The memory counts as exposed from now on."""
        self._storage.exposed = True
        return self._storage.ptr + self._byte_offset if self.spec.numel else 0

    def is_conj(self) -> bool:
        """Whether conjugation is pending: memory holds the conjugates of the elements."""
        return self.spec.conj

    def is_neg(self) -> bool:
        """Whether negation is pending: memory holds the negatives of the elements."""
        return self.spec.neg

    def is_floating_point(self) -> bool:
        return self.spec.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self.spec.dtype.is_complex

    def is_signed(self) -> bool:
        return self.spec.dtype.is_signed

    @property
    def is_meta(self) -> bool:
        return self.spec.device.type == "meta"

    @property
    def is_cpu(self) -> bool:
        return self.spec.device.type == "cpu"

    @property
    def is_cuda(self) -> bool:
        return self.spec.device.type == "cuda"

    def __hash__(self) -> int:
        return id(self)


# Classes whose objects ops treat as plain tensors: they override no function, and results of ops are of the class Tensor.
plain_types: set[type] = {Tensor}
# Each is called with a class that becomes one of `plain_types`.
plain_type_hooks: list[Callable[[type], None]] = []


def add_plain_type(cls: type) -> None:
    plain_types.add(cls)
    for hook in plain_type_hooks:
        hook(cls)


_new = object.__new__
Storage.new_tensor = staticmethod(functools.partial(_new, Tensor))  # no slower than a call of `_new` here

# Attributes that autograd sets on views: the error for in-place operations, and a mark for views without a grad_fn.
VIEW_NOTES = ("_unwritable", "_unconnected")


def make(storage: Storage, start: int, spec: Spec) -> Tensor:
    """A tensor of these parts, without checks. The storage determines its class."""
    tensor = storage.new_tensor()
    tensor._storage = storage
    tensor._byte_offset = start
    tensor.spec = spec
    tensor._autograd = tensor._base = None
    return tensor


def end_view(tensor: Tensor) -> None:
    """Make a view an independent tensor for autograd. For views whose base no other code holds."""
    if tensor._base is not None:
        tensor._base = None
        for note in VIEW_NOTES:
            tensor.__dict__.pop(note, None)


def view_of(base: Tensor, start: int, spec: Spec) -> Tensor:
    """A view of `base` with its first element at byte `start` of the storage, without checks."""
    tensor = base._storage.new_tensor()
    tensor._storage = base._storage
    tensor._byte_offset = start
    tensor.spec = spec
    tensor._autograd = None
    root = base._base
    tensor._base = base if root is None else root
    return tensor


def of_class(cls: type, tensor: Tensor) -> Any:
    """The same tensor as a new object of a subclass of Tensor."""
    result: Any = _new(cls)
    result._storage, result._byte_offset, result.spec = tensor._storage, tensor._byte_offset, tensor.spec
    result._autograd, result._base = tensor._autograd, tensor._base
    return result


# What becomes of new tensors within a function that `vmap` maps: at most one function. Empty outside.
new_hooks: list[Callable[[Tensor], Tensor]] = []


def empty(spec: Spec) -> Tensor:
    """A Tensor with new, uninitialized memory for a dense spec."""
    tensor = make(spec.device.backend.allocate(spec.nbytes), 0, spec)
    return new_hooks[0](tensor) if new_hooks else tensor


def as_new(tensor: Tensor) -> Tensor:
    """Reset the version of a new tensor, because the writes that initialized it are not in-place operations."""
    storage = tensor._storage
    if type(storage.version) is int:  # memory that was allocated in inference mode has no version
        storage.version = 0
    return tensor


def address(tensor: Tensor) -> int:
    """The address of the first element."""
    return tensor._storage.ptr + tensor._byte_offset


def is_whole(tensor: Tensor) -> bool:
    """Whether the elements are in memory at the tensor's address: it is no sample of `vmap`, and not distributed."""
    return type(tensor._storage).new_tensor is Storage.new_tensor


def own_dim(dim: Any, ndim: int, function: str) -> int:
    """As `wrap_dim`, but a 0-dim tensor has no valid dimension, and the TypeError names the function."""
    dim = integer(dim, function, "dim")
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, ndim)


def wrap_dim(dim: int, ndim: int) -> int:
    """`dim` as a nonnegative number; a 0-dim tensor accepts 0 and -1.

    Raises: IndexError if the tensor has no such dimension, TypeError if `dim` is not an int.
    """
    if type(dim) is not int:
        if isinstance(dim, bool) or not hasattr(dim, "__index__"):
            raise TypeError(f"argument 'dim' must be int, not {type(dim).__name__}")
        dim = dim.__index__()
    limit = max(ndim, 1)
    if not -limit <= dim < limit:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})"
        )
    return dim + limit if dim < 0 else dim
