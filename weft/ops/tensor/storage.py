"""Storages as users see them: `untyped_storage()`, the deprecated typed ones, and tensors put on another storage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from ...core import dtype as dt
from ...core.arguments import integers
from ...core.checking import check_tensor
from ...core.device import are_interchangeable, as_device, device
from ...core.dtype import DTYPES, LEGACY_NAMES, QUANTIZED, DType, get_default_dtype
from ...core.grad_mode import mode
from ...core.layout import MemoryFormat, contiguous_format, preserve_format, strides_for, suggested_format
from ...core.layout_spec import NotStrided
from ...core.names import ROOT, set_name
from ...core.outputs import grow, resize
from ...core.public import public
from ...core.recording import NO_RULE, needs_recording, tape
from ...core.registry import add_function, add_member
from ...core.size import shape
from ...core.spec import Spec, contiguous_spec, contiguous_stride, make_spec
from ...core.storage import Storage
from ...core.tensor import Tensor, make
from ...core.warn import warn_once
from ..creation.from_data import tensor as new_tensor
from ..creation.uninitialized import fill_rest
from ..views.reshaping import squeeze, unsqueeze
from ..views.slicing import as_strided
from ..views.transposing import swapaxes, swapdims, t, transpose


def _is_size(content: Any) -> bool:
    return isinstance(content, (int, np.integer))


def _stored(dtype: DType) -> DType:
    """The dtype of the elements of a storage: storages of quantized numbers have integers."""
    return QUANTIZED.get(dtype, dtype)


def _warn_deprecated() -> None:
    warn_once(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. "
        "This should only matter to you if you are using storages directly.  To access UntypedStorage directly, use "
        "tensor.untyped_storage() instead of tensor.storage()"
    )


# ---- Typed storages ------------------------------------------------------------------------------------------------


class TypedStorage:
    """Presents a storage as elements of one dtype; deprecated in favour of tensors.

    Forms: TypedStorage(size), TypedStorage(values), TypedStorage(wrap_storage=untyped), each with dtype and device.

    >>> import weft as torch
    >>> torch.FloatStorage([1, 2])
     1.0
     2.0
    [torch.storage.TypedStorage(dtype=torch.float32, device=cpu) of size 2]
    """

    is_sparse = False

    _untyped_storage: Storage
    dtype: DType

    def __init__(
        self,
        content: Any = 0,
        *,
        wrap_storage: Storage | None = None,
        dtype: DType | None = None,
        device: Any = None,
        _internal: bool = False,
    ):
        if not _internal:
            _warn_deprecated()
        self.dtype = dtype or get_default_dtype()
        if wrap_storage is not None:
            if not isinstance(wrap_storage, Storage):
                raise TypeError(f"wrap_storage must be an UntypedStorage, not {type(wrap_storage).__name__}")
            self._untyped_storage = wrap_storage
        elif _is_size(content):
            self._untyped_storage = Storage(int(content) * self.dtype.itemsize, device=as_device(device))
        elif isinstance(content, Sequence) and not isinstance(content, str):
            self._untyped_storage = new_tensor(content).to(_stored(self.dtype)).to(as_device(device))._storage
        else:
            raise TypeError(
                f"TypedStorage(): expected a size or a sequence of numbers, got {type(content).__name__}"
            )

    def _tensor(self) -> Tensor:
        """Return a tensor of all elements, on this memory."""
        untyped = self._untyped_storage
        return make(untyped, 0, contiguous_spec((self.size(),), _stored(self.dtype), untyped.device))

    def untyped(self) -> Storage:
        """Return the same memory without a type."""
        return self._untyped_storage

    @property
    def device(self) -> device:
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        return self._untyped_storage.is_cuda

    @property
    def is_hpu(self) -> bool:
        return self._untyped_storage.is_hpu

    @property
    def filename(self) -> str | None:
        return self._untyped_storage.filename

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def size(self) -> int:
        """Return the number of elements."""
        return self._untyped_storage.nbytes_ // self.dtype.itemsize

    __len__ = size

    def nbytes(self) -> int:
        return self._untyped_storage.nbytes_

    def element_size(self) -> int:
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        return self._untyped_storage.data_ptr()

    def get_device(self) -> int | None:
        return self._untyped_storage.get_device()

    def is_shared(self) -> bool:
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> TypedStorage:
        self._untyped_storage.share_memory_()
        return self

    def _share_fd_cpu_(self) -> tuple[int, int]:
        fd, nbytes = self._untyped_storage._share_fd_cpu_()
        return fd, nbytes // self.dtype.itemsize

    def _share_filename_cpu_(self) -> NoReturn:
        self._untyped_storage._share_filename_cpu_()

    def _new_shared(self, size: int, *, device: Any = None) -> TypedStorage:
        """A storage of this dtype that other processes can use, on this device unless another is given."""
        nbytes = size * self.dtype.itemsize
        storage = Storage._new_shared(nbytes, device=self.device if device is None else device)
        return TypedStorage(wrap_storage=storage, dtype=self.dtype, _internal=True)

    def _write_file(self, *args: Any) -> None:
        self._untyped_storage._write_file(*args)

    def is_pinned(self, device: Any = "cuda") -> bool:
        return False

    def resizable(self) -> bool:
        return self._untyped_storage.resizable()

    def pickle_storage_type(self) -> str:
        """Return the name of the legacy class, "FloatStorage"."""
        return f"{LEGACY_NAMES[self.dtype]}Storage"

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        self._check_values()
        if not -self.size() <= index < self.size():
            raise IndexError(f"index {index} out of range for storage of size {self.size()}")
        return self._tensor().select(0, index).item()

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, (int, slice)):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        self._tensor()[index] = value

    def __iter__(self) -> Iterator:
        return iter(self.tolist())

    def tolist(self) -> list:
        self._check_values()
        return self._tensor().tolist()

    def _check_values(self) -> None:
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")

    def fill_(self, value: Any) -> TypedStorage:
        """Write one number everywhere."""
        self[:] = value
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Write the bytes of a storage of equal size."""
        self._untyped_storage.copy_(source.untyped())
        return self

    def resize_(self, size: int) -> None:
        """Change the number of elements to `size`."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def _on(self, untyped: Storage) -> TypedStorage:
        return TypedStorage(wrap_storage=untyped, dtype=self.dtype, _internal=True)

    def clone(self) -> TypedStorage:
        return self._on(self._untyped_storage.clone())

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict) -> TypedStorage:
        untyped = memo.get(id(self._untyped_storage)) or self._untyped_storage.__deepcopy__(memo)
        return self._on(untyped)

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        return self._on(self._untyped_storage.to(device=device))

    def cpu(self) -> TypedStorage:
        return self._on(self._untyped_storage.cpu())

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """Return a copy on a GPU.

        Raises: an error without one.
        """
        return self._on(self._untyped_storage.cuda(device, non_blocking))

    def hpu(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """A copy on a Gaudi device, which weft does not have."""
        return self._on(self._untyped_storage.hpu(device, non_blocking))

    def pin_memory(self, device: Any = "cuda") -> TypedStorage:
        """A copy in memory that a GPU reads directly.

        Raises: RuntimeError, because weft has no GPU.
        """
        return self._on(self._untyped_storage.pin_memory(device))

    def _to(self, dtype: DType) -> TypedStorage:
        """Return a copy with every element converted."""
        return TypedStorage(
            wrap_storage=self._tensor().to(_stored(dtype), copy=True)._storage, dtype=dtype, _internal=True
        )

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the name of the legacy class; with a class or its name, the elements converted."""
        if dtype is None:
            return f"torch.{self.pickle_storage_type()}"
        name = dtype if isinstance(dtype, str) else f"torch.{dtype.__name__}"
        dtype_of_class = LEGACY[name.removeprefix("torch.")].dtype
        return self if dtype_of_class is self.dtype else self._to(dtype_of_class)

    @classmethod
    def from_buffer(cls, *args: Any, dtype: DType | None = None, **kwargs: Any) -> TypedStorage:
        """Return a copy of a buffer; arguments as in UntypedStorage.from_buffer."""
        dtype = dtype or getattr(cls, "dtype", None) or get_default_dtype()
        untyped = Storage.from_buffer(*args, dtype=dtype, **kwargs)
        return TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)

    @classmethod
    def from_file(cls, filename: str, shared: bool = False, size: int = 0) -> TypedStorage:
        """Return the memory of a file, of `size` elements."""
        dtype = getattr(cls, "dtype", None) or get_default_dtype()
        untyped = Storage.from_file(filename, shared, size * dtype.itemsize)
        return TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def __repr__(self) -> str:
        content = "..." if self.device.type == "meta" else " " + "\n ".join(map(str, self))
        return f"{content}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"


def _conversions(names: dict[str, DType]) -> None:
    """Define `storage.float()` and the like, on both kinds of storages."""

    def add(name: str, dtype: DType) -> None:
        def typed(self: TypedStorage) -> TypedStorage:
            return self._to(dtype)

        def untyped(self: Storage) -> TypedStorage:
            return TypedStorage(wrap_storage=self, dtype=dt.uint8, _internal=True)._to(dtype)

        for function, owner in ((typed, TypedStorage), (untyped, Storage)):
            function.__name__ = name
            function.__doc__ = f"A typed storage with every element converted to {dtype!r}."
            setattr(owner, name, function)

    for name, dtype in names.items():
        add(name, dtype)


# fmt: off
_conversions({
    "double": dt.float64, "float": dt.float32, "half": dt.float16, "bfloat16": dt.bfloat16,
    "long": dt.int64, "int": dt.int32, "short": dt.int16, "char": dt.int8, "byte": dt.uint8, "bool": dt.bool_,
    "complex_double": dt.complex128, "complex_float": dt.complex64,
    **{name: dtype for name, dtype in DTYPES.items() if dtype in dt.FLOAT8},
})
# fmt: on


def _storage_type(self: Storage, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Return the name of the class; with a legacy class or its name, the bytes converted to its elements."""
    if dtype is None:
        return "torch.storage.UntypedStorage"
    return TypedStorage(wrap_storage=self, dtype=dt.uint8, _internal=True).type(dtype)


Storage.type = _storage_type  # type: ignore[attr-defined]


set_name(TypedStorage, f"{ROOT}.storage", "TypedStorage")


class _LegacyType(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) is TypedStorage and instance.dtype is getattr(cls, "dtype", instance.dtype)


class _LegacyStorage(TypedStorage, metaclass=_LegacyType):
    """`torch.FloatStorage` and the like construct typed storages of one dtype."""

    def __new__(
        cls, *content: Any, wrap_storage: Storage | None = None, dtype: Any = None, device: Any = None
    ) -> Any:
        for name, value in (("dtype", dtype), ("device", device)):
            if value is not None:
                raise RuntimeError(f"{cls}.__new__: keyword argument '{name}' cannot be specified")
        if len(content) > 1 or (content and wrap_storage is not None):
            raise RuntimeError(
                f"{cls}.__new__ received an invalid combination of arguments: give a size or a sequence"
            )
        return TypedStorage(*content, wrap_storage=wrap_storage, dtype=cls.dtype)


# The classes by name.
LEGACY: dict[str, Any] = {
    f"{name}Storage": _LegacyType(f"{name}Storage", (_LegacyStorage,), {"dtype": dtype, "__module__": ROOT})
    for dtype, name in LEGACY_NAMES.items()
    if dtype not in dt.FLOAT8 | dt.UNSIGNED_WIDE and dtype is not dt.complex32
}
for _name, _class in LEGACY.items():
    add_function(_name, _class)
add_function("Storage", LEGACY["FloatStorage"])
add_function("TypedStorage", TypedStorage)
add_function("UntypedStorage", Storage)


@public("function")
def is_storage(obj: Any) -> bool:
    """Whether the object is a storage, typed or not."""
    return isinstance(obj, (Storage, TypedStorage))


# ---- The storage of a tensor ---------------------------------------------------------------------------------------


@public("method")
def untyped_storage(self: Tensor) -> Storage:
    """The bytes of this tensor and of all tensors that share memory with it."""
    return self._storage


@public("method")
def storage(self: Tensor) -> TypedStorage:
    """Return the storage as elements of the tensor's dtype; deprecated in favour of `untyped_storage`."""
    _warn_deprecated()
    return TypedStorage(wrap_storage=self._storage, dtype=self.spec.dtype, _internal=True)


@public("method")
def storage_type(self: Tensor) -> Any:
    """Return the legacy class of the tensor's storage."""
    _warn_deprecated()
    return LEGACY[f"{LEGACY_NAMES[self.spec.dtype]}Storage"]


@public("method")
def is_shared(self: Tensor) -> bool:
    """Whether other processes see this memory."""
    return self._storage.is_shared()


@public("method")
def share_memory_(self: Tensor) -> Tensor:
    """Move the storage to memory that processes share, so that each of them reads the writes of the others.

    >>> import weft as torch
    >>> torch.ones(2).share_memory_().is_shared()
    True
    """
    self._storage.share_memory_()
    return self


@public("method")
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both are the same elements: one storage, offset, shape and stride."""
    mine, theirs = self.spec, tensor.spec
    return (
        self._storage is tensor._storage
        and self._byte_offset == tensor._byte_offset
        and mine.shape == theirs.shape
        and mine.stride == theirs.stride
    )


@public("function method")
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape.

    Raises: RuntimeError if one of them is a nested tensor and the other is not.
    """
    check_tensor(other, "is_same_size", "other", 2)
    if input.is_nested is not other.is_nested:
        mine, others = ["nested" if each.is_nested else "not nested" for each in (input, other)]
        raise RuntimeError(
            f"Expected both self and other to be nested tensors. Self is {mine}. While Other is {others}."
        )
    return input.spec.shape == other.spec.shape


# ---- Metadata in place ---------------------------------------------------------------------------------------------


def _in_place(name: str, view: Any) -> None:
    # PyTorch numbers the overloads of a view from 0, and the in-place overloads after them.
    overloads = 3 if view is squeeze else 1

    @public(
        "function method" if name == "as_strided_" else "method", name=name, words={"view": view.__name__}
    )
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Compute `{view}`, changing the metadata of this tensor."""
        before = self.detach()
        recorded = needs_recording((self,))
        if recorded:
            tape.check_write(self)
            tape.take_grad_fn_of(before, self)
        result = view(before, *args, **kwargs)
        self._storage.version += 1
        self._byte_offset, self.spec = result._byte_offset, result.spec
        if recorded:
            tape.rename(result, lambda node: f"{node[:-1]}{int(node[-1]) + overloads}")
            tape.take_grad_fn_of(self, result)
        return self


for _view in (as_strided, squeeze, swapaxes, swapdims, t, transpose, unsqueeze):
    _in_place(f"{_view.__name__}_", _view)


@public("function", name="detach")
def _detach(input: Tensor) -> Tensor:
    """Return a tensor on the same memory, outside of autograd."""
    return input.detach()


def _set_data(self: Tensor, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    if not are_interchangeable(self.spec.device, value.spec.device) or value.layout is not self.layout:
        raise RuntimeError(
            "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type."
        )
    if self.requires_grad and not value.spec.dtype.is_floating_point and not value.spec.dtype.is_complex:
        raise RuntimeError(
            "data set to a tensor that requires gradients must be floating point or complex dtype"
        )
    if value.spec.dtype is not self.spec.dtype or value.spec.device is not self.spec.device:
        tape.renew_leaf(self)
    self._storage, self._byte_offset, self.spec = value._storage, value._byte_offset, value.spec


def _data(self: Tensor) -> Tensor:
    """The same memory, outside of autograd."""
    if mode.forward is not None:
        mode.forward.note_data(self._storage)
    return self.detach()


def _delete_data(self: Tensor) -> None:
    raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")


add_member("data", property(_data, _set_data, _delete_data))


@public("method", name="resize_")
def resize_(self: Tensor, *size: Any, memory_format: MemoryFormat = contiguous_format) -> Tensor:
    """Another shape on the same storage, which grows if it is too small; new elements are uninitialised."""
    sizes = integers(size, "resize_", "size")
    if any(each < 0 for each in sizes):
        raise RuntimeError(f"Trying to resize tensor to a negative dimension {min(sizes)}: {list(sizes)}")
    return _resized(self, sizes, memory_format)


def _resized(self: Tensor, sizes: tuple[int, ...], memory_format: MemoryFormat) -> Tensor:
    spec = self.spec
    if needs_recording((self,)):
        raise RuntimeError("cannot resize variables that require grad")
    if memory_format is preserve_format:
        raise RuntimeError(f"Unsupported memory format {memory_format}")
    if spec.shape != sizes or memory_format is not contiguous_format:
        size = self._storage.nbytes()
        resize(self, _with_strides(spec, sizes, strides_for(sizes, memory_format)))
        fill_rest(self._storage, size, spec.dtype)
        self._storage.version += 1
    return self


def _with_strides(spec: Spec, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Spec:
    return make_spec(shape(sizes), strides, spec.dtype, spec.device, spec.conj, spec.neg)


@public("function method", name="resize_as_")
def resize_as_(
    input: Tensor, the_template: Tensor, *, memory_format: MemoryFormat = contiguous_format
) -> Tensor:
    """Resize to the shape of another tensor."""
    sizes = tuple(the_template.spec.shape)
    if memory_format is not preserve_format:
        return _resized(input, sizes, memory_format)
    _resized(input, sizes, contiguous_format)
    return _resized(input, sizes, suggested_format(the_template.spec))


@public("method", name="set_")
def set_(
    self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None
) -> Tensor:
    """Put this tensor on another storage: that of a tensor, a typed or an untyped one; without `source`, an empty one.

    Without `size`, the tensor is like `source`, or takes all of it as one dimension.

    Raises: RuntimeError if dtypes or devices differ.
    """
    if needs_recording((self,)):
        tape.check_write(self)
        raise NotImplementedError(NO_RULE.format("set_"))
    tape.renew_leaf(self)
    if isinstance(source, Tensor):
        _check_type(self, source.spec.dtype, source.spec.device)
        if getattr(source.spec, "rules", None) is not getattr(self.spec, "rules", None):  # of another layout
            raise NotStrided(source.spec if type(self.spec) is Spec else self.spec)  # type: ignore[arg-type]
        if size is None:
            self._storage, self._byte_offset, self.spec = source._storage, source._byte_offset, source.spec
            return self
        if not source.spec.is_contiguous:
            raise RuntimeError("passed in tensor to be used as storage must be contiguous")
        untyped = source._storage
    elif source is None:
        untyped = self.spec.device.backend.allocate(0)
    elif not isinstance(source, (Storage, TypedStorage)):
        raise TypeError(
            f"set_() received an invalid combination of arguments - got ({type(source).__name__}), expected a Tensor or "
            "a Storage"
        )
    else:
        untyped = source.untyped()
        dtype = getattr(source, "dtype", self.spec.dtype)
        if dtype is not self.spec.dtype:
            raise RuntimeError(
                f"Expected a Storage of type {LEGACY_NAMES[self.spec.dtype]} or an UntypedStorage, but got type "
                f"{LEGACY_NAMES[dtype]} for argument 1 'storage'"
            )
        _check_type(self, dtype, untyped.device)
    return _set_storage(self, untyped, storage_offset, size, stride)


def _check_type(self: Tensor, dtype: DType, where: device) -> None:
    if dtype is not self.spec.dtype:
        raise RuntimeError(f"Could not set tensor of type {dtype} to a tensor of type {self.spec.dtype}")
    if where is not self.spec.device:
        raise RuntimeError(
            f"Attempted to set the storage of a tensor on device {self.spec.device} to a storage on different device "
            f"{where}.  This is no longer allowed; the devices must match."
        )


def _set_storage(self: Tensor, untyped: Storage, offset: int, size: Any, stride: Any) -> Tensor:
    itemsize = self.spec.dtype.itemsize
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    sizes = (untyped.nbytes_ // itemsize,) if size is None else integers((size,), "set_", "size")
    strides = integers((stride,), "set_", "stride") if stride else contiguous_stride(sizes)
    if len(strides) != len(sizes):
        raise RuntimeError(f"unequal size length ({len(sizes)}) and stride length ({len(strides)})")
    if min((*sizes, *strides), default=0) < 0:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(sizes)} and strides={list(strides)}"
        )
    own = _with_strides(self.spec, sizes, strides)
    grow(untyped, offset * itemsize, own)
    self._storage, self._byte_offset, self.spec = untyped, offset * itemsize, own
    return self
