"""New tensors from values: numbers, nested sequences, arrays, and objects that NumPy or DLPack can read as arrays."""

from __future__ import annotations

import functools
import math
import operator
import os
import warnings
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from ...core import device as places
from ...core import dtype as dt
from ...core.arguments import boolean
from ...core.device import as_device, device
from ...core.dtype import (
    COMPLEX,
    FLOAT,
    INTEGER,
    LEGACY_NAMES,
    DType,
    bool_,
    from_numpy_dtype,
    get_default_dtype,
    int64,
)
from ...core.limits import LIMITS, overflow
from ...core.nearest import unknown_keyword
from ...core.plans import PlanCache
from ...core.promotion import promote_types
from ...core.public import public
from ...core.spec import contiguous_spec
from ...core.storage import Storage
from ...core.subclasses import as_base_tensor
from ...core.tensor import Tensor, as_new, make
from ...core.tensor import empty as empty_of
from ...core.warn import user_level, warn_once
from ...families.array_op import tensor_of
from ...families.map import COPY
from ...interop.cuda_array import from_interface
from ...interop.dlpack import from_dlpack
from ...interop.numpy import from_numpy, frombuffer, has_buffer, tensor_on
from ..assembly.filling import fill_
from .creation import check_dtype, dtype_of_number, number_argument, with_grad

SHORT = 64  # elements: ctypes writes lists up to here, 64 floats in 3.7 us instead of NumPy's 13.9 (AMD EPYC)
MAX_NESTING = 128  # of sequences within sequences; PyTorch's own limit


@public("function", checks=False)
def tensor(
    data: Any,
    *,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    names: Any = None,
    **others: Any,
) -> Tensor:
    """Return a new tensor that copies `data`: a number, nested sequences of numbers, an array or a tensor.

    dtype: by the values (float: the default float, int: int64) unless given. names: of the dims.

    Raises: ValueError for ragged sequences, TypeError for elements that are not numbers.

    >>> import weft as torch
    >>> torch.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    if others:
        raise unknown_keyword("tensor", next(iter(others)), _OPTIONS)
    if pin_memory is not False:
        boolean(pin_memory, "tensor", "pin_memory")
    if names is not None:
        unnamed = tensor(data, dtype=dtype, device=device, pin_memory=pin_memory)
        return with_grad(unnamed, requires_grad, names)
    if device is None and (dtype is None or type(dtype) is DType):
        result = _short(data, dtype)
        if result is not None:
            return with_grad(result, requires_grad)
    if isinstance(data, Tensor):
        _warn_about_copy(requires_grad)
        data = as_base_tensor(data)
    result = from_data(data, check_dtype(dtype, "tensor"), None if device is None else as_device(device))
    return with_grad(result, requires_grad)


_OPTIONS = ("dtype", "device", "requires_grad", "pin_memory", "names")


def _warn_about_copy(requires_grad: bool) -> None:
    suffix = ".requires_grad_(True)" if requires_grad else ""
    warnings.warn(
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
        f"sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor){suffix}.",
        UserWarning,
        stacklevel=user_level(),
    )


# ---- The quick way: one number or a short list of one kind of them ------------------------------------------------------


def _short(data: Any, dtype: DType | None) -> Tensor | None:
    """Return a new tensor of a number or a short sequence of floats, ints or bools; None for anything else."""
    kind = type(data)
    sizes: tuple[int, ...] = ()
    items: Any = (data,)
    while kind is list or kind is tuple:
        lengths = set(map(len, items))
        size = lengths.pop()
        if lengths or not 0 < size * len(items) <= SHORT or len(sizes) == MAX_NESTING:
            return None
        items = items[0] if len(items) == 1 else list(chain.from_iterable(items))
        kinds = set(map(type, items))
        if len(kinds) > 1 and kinds != {int, float}:
            return None
        kind = float if len(kinds) > 1 else kinds.pop()
        sizes += (size,)
    if kind is int:
        if min(items) < -(2**63) or max(items) >= 2**63:
            return None
    elif kind is not float and kind is not bool:
        return None
    own, allocate, memory = _short_plans[sizes, kind, dtype or dt._default, dtype is None, places._default]
    if memory is None:
        return None
    storage = allocate()
    if sizes:
        memory(storage.ptr)[:] = items
    else:
        memory(storage.ptr).value = data
    return make(storage, 0, own)


def _short_plan(sizes: tuple[int, ...], kind: type, dtype: DType, inferred: bool, where: device):
    """The spec, how to allocate it, and the address as an object that ctypes writes to."""
    if inferred and kind is not float:
        dtype = int64 if kind is int else bool_
    spec = contiguous_spec(sizes, dtype, where)
    writer: Any = where.backend.c_types.get(dtype.name) if kind in _WRITES.get(dtype, ()) else None
    memory = writer and (writer * spec.numel if sizes else writer).from_address
    return spec, where.backend.allocator(spec.nbytes), memory


# What ctypes converts as a tensor of this dtype does.
_WRITES = {dt.float32: (float, int), dt.float64: (float, int), int64: (int,), bool_: (bool,)}
_short_plans = PlanCache(_short_plan)


# ---- The general way ------------------------------------------------------------------------------------------------------


def from_data(data: Any, dtype: DType | None, where: device | None) -> Tensor:
    """Return a new tensor with a copy of `data`."""
    if isinstance(data, Tensor):
        spec = data.spec
        return data.detach().to(where or spec.device, dtype or spec.dtype, copy=True)
    if isinstance(data, np.ndarray):
        result = tensor_on(data)
        return result.to(where or as_device(None), dtype or result.spec.dtype, copy=True)
    if isinstance(data, Storage) or hasattr(data, "_untyped_storage"):
        return _on_storage(data, dtype)
    if hasattr(data, "__cuda_array_interface__"):
        shared = from_interface(data)
        return shared.to(where or as_device(None), dtype or shared.spec.dtype, copy=True)
    result = _from_sequence(data, dtype)
    where = where or as_device(None)
    return result if result.spec.device is where else result.to(where)


def _on_storage(data: Any, dtype: DType | None) -> Tensor:
    """A tensor on all memory of a typed or untyped storage, which PyTorch does not copy either."""
    own = None if isinstance(data, Storage) else data.dtype
    dtype = dtype or own or dt.int64
    if own is not None and own is not dtype:
        raise RuntimeError(
            f"Expected a Storage of type {LEGACY_NAMES[dtype]} or an UntypedStorage, but got {LEGACY_NAMES[own]}"
        )
    untyped = data.untyped()
    return make(untyped, 0, contiguous_spec((untyped.nbytes() // dtype.itemsize,), dtype, untyped.device))


def _from_sequence(data: Any, dtype: DType | None) -> Tensor:
    if not isinstance(data, np.generic) and (
        hasattr(data, "__array__") or hasattr(data, "__array_interface__")
    ):
        values = np.asarray(data)
        if values.dtype != object:  # whose elements may be numbers, or tell best what is wrong with them
            if hasattr(data, "columns"):
                raise ValueError(
                    f"could not determine the shape of object type '{type(data).__name__}': its columns may be of several "
                    "dtypes; use its to_numpy()"
                )
            return from_data(values, dtype, places.CPU)
    sizes, leaves = _flatten(data)
    kinds = set(map(type, leaves))
    target = dtype or _infer(kinds, leaves)
    if not leaves:
        return empty_of(contiguous_spec(sizes, target))
    if any(issubclass(kind, (np.generic, Tensor, np.ndarray)) for kind in kinds):
        leaves = [_number(leaf, target) for leaf in leaves]
    return _in_own_memory(tensor_of(_as_array(leaves, target).reshape(sizes), target))


def _in_own_memory(tensor: Tensor) -> Tensor:
    """The tensor in memory of weft, which can be resized and shared with lazy copies, unlike that of an array."""
    return tensor if tensor._storage.owner is None else as_new(COPY.write(empty_of(tensor.spec), tensor))


def _number(leaf: Any, target: DType) -> Any:
    """The Python number that a tensor, an array or a number of NumPy holds."""
    if not isinstance(leaf, (np.generic, Tensor, np.ndarray)):
        return leaf
    if leaf.ndim and math.prod(leaf.shape) != 1:
        if target.category < FLOAT:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        raise ValueError("only one element tensors can be converted to Python scalars")
    return leaf.item()


def is_sequence(value: Any) -> bool:
    """Whether the elements of `value` are to be visited: a list, a tuple, anything of a length that takes an index."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    if isinstance(value, (list, tuple)):
        return True
    if isinstance(value, (str, bytes, dict, set, frozenset, np.generic, Tensor)):
        return False  # a tensor within a sequence has to be one number
    return isinstance(value, Sequence) or hasattr(value, "__len__") and hasattr(value, "__getitem__")


_SLOW = (
    "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to a single "
    "numpy.ndarray with numpy.array() before converting to a tensor."
)


def _flatten(data: Any) -> tuple[tuple[int, ...], list]:
    """The sizes of nested sequences, which their first elements tell, and all leaves.

    Raises: ValueError if sequences of one level differ in length; TypeError if there are leaves beside them.
    """
    sizes = _sizes(data)
    level = [data]
    for dim, size in enumerate(sizes):
        if 0 in sizes[dim:]:
            return sizes, []
        kinds = set(map(type, level))
        if not kinds <= {list, tuple}:
            if np.ndarray in kinds:
                warn_once(_SLOW)
            for item in level:
                if not is_sequence(item):
                    raise TypeError(f"not a sequence: {item!r} stands beside sequences at dim {dim}")
        lengths = set(map(len, level))
        if lengths != {size}:
            wrong = next(len(item) for item in level if len(item) != size)
            raise ValueError(
                f"expected sequence of length {size} at dim {dim} (got {wrong}): all sequences of one level must have "
                "the same length"
            )
        level = list(chain.from_iterable(level))
    return sizes, level


def _sizes(data: Any) -> tuple[int, ...]:
    sizes = []
    while is_sequence(data):
        sizes.append(len(data))
        if len(sizes) > MAX_NESTING:
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        if not sizes[-1]:
            break
        data = data[0] if not hasattr(data, "iloc") else data.iloc[0]
    if isinstance(data, str) and sizes:
        raise ValueError("too many dimensions 'str'")
    return tuple(sizes)


def _infer(kinds: set[type], leaves: list) -> DType:
    """The dtype that numbers of these types have in common."""
    if not kinds:
        return get_default_dtype()
    found = {_dtype_of(kind, leaf) for kind in kinds for leaf in _examples(kind, leaves)}
    return functools.reduce(promote_types, found)


def _examples(kind: type, leaves: list) -> list:
    """Leaves whose dtypes stand for all of this type: one, except for tensors and arrays, which vary."""
    of_kind = (leaf for leaf in leaves if type(leaf) is kind)
    return list(of_kind) if issubclass(kind, (Tensor, np.ndarray)) else [next(of_kind)]


def _dtype_of(kind: type, leaf: Any) -> DType:
    if issubclass(kind, Tensor):
        return leaf.dtype
    if issubclass(kind, (np.generic, np.ndarray)):
        return from_numpy_dtype(leaf.dtype)
    if issubclass(kind, (bool, int, float, complex)):
        return dtype_of_number(leaf)
    if issubclass(kind, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{kind.__name__}'")
    if is_sequence(leaf):
        raise TypeError(f"'{kind.__name__}' object cannot be interpreted as an integer")
    raise RuntimeError(f"Could not infer dtype of {kind.__name__}")


def _as_array(leaves: list, target: DType) -> np.ndarray:
    """Python's numbers in an array from which `target` is at most one conversion away.

    Raises: TypeError for values that are not numbers, RuntimeError for numbers that an integer dtype cannot hold.
    """
    kinds = set(map(type, leaves))
    for kind in kinds:
        if issubclass(kind, (str, bytes)) or kind is complex and target.category in (INTEGER, FLOAT):
            raise TypeError(f"must be real number, not {kind.__name__}")
    if target.category == COMPLEX:
        return np.array(list(map(complex, leaves)), np.complex128)
    if target.category == FLOAT:
        # An int may be too large for a float64, which then raises OverflowError, as Python does.
        return np.fromiter(leaves, np.float32 if target is dt.float32 else np.float64, len(leaves))
    if target is bool_:
        return np.fromiter(map(bool, leaves), np.bool_, len(leaves))
    return _integers(leaves, kinds, target)


def _integers(leaves: list, kinds: set[type], target: DType) -> np.ndarray:
    low, high = LIMITS[target]
    if any(issubclass(kind, float) for kind in kinds):
        lowest = {kind: 0 if issubclass(kind, float) and not target.is_signed else low for kind in kinds}
        # Ints wrap around; nan is not in range.
        if not all(lowest[type(leaf)] <= leaf <= high for leaf in leaves):
            raise overflow(target)
        leaves = list(map(int, leaves))
    elif not kinds <= {int, bool}:
        leaves = list(map(operator.index, leaves))
    try:
        values = np.array(leaves, np.uint64 if target is dt.uint64 else np.int64)
    except OverflowError:
        if target is dt.uint64:
            raise
        raise ValueError("Overflow when unpacking long long") from None
    if target.itemsize < 8 and leaves and not low <= values.min() <= values.max() <= high:
        raise overflow(target)
    return values


# ---- Sharing memory where possible ------------------------------------------------------------------------------------------


@public("function")
def scalar_tensor(
    s: Any,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
) -> Tensor:
    """A 0-dim tensor that holds a number; dtype: the default float unless given."""
    value = number_argument(s, "scalar_tensor", "s", 1)
    spec = contiguous_spec((), check_dtype(dtype) or get_default_dtype(), as_device(device))
    return with_grad(as_new(fill_(empty_of(spec), value)), requires_grad)


@public("function")
def as_tensor(data: Any, dtype: DType | None = None, device: Any = None) -> Tensor:
    """`data` as a tensor, on the same memory if it is a tensor or an array that needs no conversion.

    >>> import weft as torch
    >>> t = torch.zeros(2)
    >>> torch.as_tensor(t) is t
    True
    """
    dtype = check_dtype(dtype, "as_tensor")
    if isinstance(data, np.ndarray):
        data = from_numpy(data)
        device = as_device(device)
    elif not isinstance(data, Tensor) and hasattr(data, "__cuda_array_interface__"):
        data = from_interface(data)
        device = as_device(device)
    if isinstance(data, Tensor):
        return data.to(data.spec.device if device is None else as_device(device), dtype or data.spec.dtype)
    return from_data(data, dtype, None if device is None else as_device(device))


@public("function")
def asarray(
    obj: Any,
    *,
    dtype: DType | None = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """`obj` as a tensor: shares the memory of tensors, arrays, DLPack and buffers where it can.

    copy: True always copies, False never does. The elements of a buffer are of `dtype`, by default the default float.

    Raises: ValueError if copy=False and sharing is not possible.
    """
    dtype = check_dtype(dtype, "asarray")
    if copy is False and isinstance(obj, np.generic):
        raise RuntimeError(
            "can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. "
        )
    shared = _shared(obj, dtype)
    if shared is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        result = from_data(obj, dtype, None if device is None else as_device(device))
        return with_grad(result, bool(requires_grad))
    spec = shared.spec
    where = spec.device if device is None else as_device(device)
    if copy is False and dtype not in (None, spec.dtype):
        raise ValueError(
            f"can't alias tensor with dtype '{LEGACY_NAMES[spec.dtype]}' into dtype '{LEGACY_NAMES[dtype]}'."
        )
    if copy is False and where is not spec.device:
        raise ValueError(f"can't alias tensor from device '{spec.device}' to '{where}'.")
    result = shared.to(where, dtype or spec.dtype, copy=bool(copy))
    asks_gradient = shared.requires_grad if requires_grad is None else requires_grad
    if result is shared and isinstance(obj, Tensor) and shared.requires_grad == asks_gradient:
        return result
    return with_grad(result.detach(), asks_gradient)


def _shared(obj: Any, dtype: DType | None) -> Tensor | None:
    """A tensor on the memory of `obj`; None if that has none to share."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, np.ndarray):
        return from_numpy(obj)
    if isinstance(obj, np.generic):
        return None
    if hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule":
        return from_dlpack(obj)
    if hasattr(obj, "__cuda_array_interface__"):
        return from_interface(obj)
    if has_buffer(obj):
        return frombuffer(obj, dtype=dtype or get_default_dtype())
    # The array of an image is read-only, because its bytes are made for this call.
    if hasattr(obj, "__array_interface__"):
        values = np.asarray(obj)
        return from_numpy(values) if values.flags.writeable else None
    return None


@public("function")
def from_file(
    filename: str,
    shared: bool | None = None,
    size: int = 0,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """A 1-d tensor of `size` elements on the memory of a file; with `shared`, writes go to the file, which grows to fit.

    Raises: RuntimeError if the file is too short and not shared.
    """
    spec = contiguous_spec((size,), check_dtype(dtype, "from_file") or get_default_dtype())
    if not shared and os.path.getsize(filename) < spec.nbytes:
        raise RuntimeError(
            f"file {filename!r} has {os.path.getsize(filename)} bytes, {spec.nbytes} are asked for"
        )
    return make(Storage.from_file(str(filename), bool(shared), spec.nbytes), 0, spec)


@public("method")
def new_tensor(
    self: Tensor,
    data: Any,
    *,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A new tensor that copies `data`; dtype and device are this tensor's unless given."""
    spec = self.spec
    where = spec.device if device is None else as_device(device)
    return with_grad(from_data(data, check_dtype(dtype) or spec.dtype, where), requires_grad)
