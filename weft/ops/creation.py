"""New tensors from sizes, values and ranges."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import device as places
from ..core import dtype as dt
from ..core.device import as_device, device
from ..core.dtype import DType, bool_, default_complex, get_default_dtype, int64
from ..core.layout import Layout, MemoryFormat, preserve_format, strided
from ..core.op import PlanCache, public, resize_out
from ..core.spec import contiguous_spec
from ..core.tensor import Tensor, make
from ..core.tensor import empty as empty_of
from ..families.library import adopt, tensor_of
from ..families.map import FILL, NUMBERS
from .copying import formatted_spec


def size_arguments(sizes: tuple, name: str) -> tuple[int, ...]:
    """(2, 3), ((2, 3),), ([2, 3],) or (Size,) as a tuple of ints.

    Raises: TypeError for sizes that are no ints; RuntimeError for negative ones.
    """
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = tuple(sizes[0])
    try:
        result = tuple(map(operator.index, sizes))
    except TypeError:
        bad = next(s for s in sizes if not hasattr(s, "__index__"))
        raise TypeError(
            f"{name}(): argument 'size' (position 1) must be tuple of ints, but found element of type "
            f"{type(bad).__name__}: {bad!r}"
        ) from None
    if any(size < 0 for size in result):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(result)}: {list(result)}")
    return result


def new(sizes: Sequence[int], dtype: DType | None, where: Any, requires_grad: bool = False, layout: Any = None) -> Tensor:
    """An uninitialised contiguous tensor; what all constructors with sizes end in."""
    check_layout(layout)
    dtype = check_dtype(dtype) or get_default_dtype()
    result = empty_of(contiguous_spec(tuple(sizes), dtype, as_device(where)))
    return result.requires_grad_() if requires_grad else result


def check_dtype(dtype: Any) -> DType | None:
    if dtype is not None and not isinstance(dtype, DType):
        python = {float: get_default_dtype(), int: int64, bool: bool_, complex: default_complex()}
        if dtype in python:
            return python[dtype]
        raise TypeError(f"argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
    return dtype


def check_layout(layout: Layout | None) -> None:
    if layout is not None and layout is not strided:
        raise NotImplementedError(f"layout {layout!r} is not available in this version of weft")


def fill(target: Tensor, value: Any) -> Tensor:
    """Write a number everywhere."""
    return FILL.write(target, value) if target.spec.numel else target


def _sized(name: str, value: Any):
    """A constructor (*size, out, dtype, layout, device, requires_grad) that fills with `value`."""
    plans = PlanCache(lambda size, dtype, where: _sized_plan(name, value, size))

    def constructor(*size: Any, **options: Any) -> Tensor:
        if not options:  # the plain call, planned once for each size
            try:
                own, allocate, run = plans[size, dt._default, places._default]
            except TypeError:  # a list of sizes cannot be a key
                return _sized_in_full(name, value, size)
            storage = allocate()
            if run is not None:
                run.entry(storage.ptr, value, run.meta, run.count)
            return make(storage, 0, own)
        return _sized_in_full(name, value, size, **options)

    constructor.__name__ = constructor.__qualname__ = name
    constructor.__doc__ = f"""A tensor of the given size{_CONTENT[value]}.

    Sizes are ints or one tuple. dtype: the default float unless given. `out` is resized to fit.

    >>> import weft as torch
    >>> torch.{name}(2, 3).shape
    torch.Size([2, 3])
    """
    return public("function")(constructor)


def _sized_plan(name: str, value: Any, size: tuple):
    """The spec of a plain new tensor, how to allocate it, and the launch that fills it."""
    own = contiguous_spec(size_arguments(size, name), get_default_dtype(), as_device(None))
    launch = None if value is None or not own.numel else FILL.write_plans[own, type(value)]
    return own, own.device.backend.allocator(own.nbytes), launch


def _sized_in_full(
    name: str,
    value: Any,
    size: tuple,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: MemoryFormat | None = None,
    **others: Any,
) -> Tensor:
    if "size" in others:
        size = (others.pop("size"),)
    if others:
        raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(others))}'")
    sizes = size_arguments(size, name)
    if out is not None:
        if out.spec.shape != sizes:
            resize_out(out, sizes, name)
        result = out
    else:
        result = new(sizes, dtype, device, requires_grad, layout)
        if memory_format is not None and memory_format is not preserve_format:
            result = empty_of(formatted_spec(result.spec, memory_format, result.spec.dtype, result.spec.device))
    return result if value is None else fill(result, value)


_CONTENT = {None: " with uninitialised memory", 0.0: " filled with 0", 1.0: " filled with 1"}
empty = _sized("empty", None)
zeros = _sized("zeros", 0.0)
ones = _sized("ones", 1.0)


def _like(name: str, value: Any):
    def constructor(
        input: Tensor,
        *,
        dtype: DType | None = None,
        layout: Layout | None = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        memory_format: MemoryFormat = preserve_format,
    ) -> Tensor:
        result = empty_as(input, dtype, layout, device, requires_grad, memory_format)
        return result if value is None else fill(result, value)

    constructor.__name__ = constructor.__qualname__ = name
    constructor.__doc__ = f"A tensor of the size, dtype and device of `input`{_CONTENT[value]}."
    return public("function")(constructor)


def empty_as(input: Tensor, dtype=None, layout=None, where=None, requires_grad=False, memory_format=preserve_format):
    """An uninitialised tensor like `input`, dense, in its memory order."""
    check_layout(layout)
    own = input.spec
    wanted = formatted_spec(
        own, memory_format or preserve_format, check_dtype(dtype) or own.dtype, own.device if where is None else as_device(where)
    )
    result = empty_of(wanted)
    return result.requires_grad_() if requires_grad else result


empty_like = _like("empty_like", None)
zeros_like = _like("zeros_like", 0.0)
ones_like = _like("ones_like", 1.0)


# ---- From values ---------------------------------------------------------------------------------------------------


@public("function")
def tensor(
    data: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A new tensor that copies `data`: a number, nested sequences of numbers, an array or a tensor.

    dtype: by the values (float: the default float, int: int64) unless given.

    Raises: ValueError for ragged sequences, TypeError for elements that are no numbers.

    >>> import weft as torch
    >>> torch.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    result = from_data(data, check_dtype(dtype), None if device is None else as_device(device))
    return result.requires_grad_() if requires_grad else result


def from_data(data: Any, dtype: DType | None, where: device | None) -> Tensor:
    """A new tensor with a copy of `data`."""
    if isinstance(data, Tensor):
        own = data.spec
        return data.detach().to(where or own.device, dtype or own.dtype, copy=True)
    if type(data) in NUMBERS:
        return _from_number(data, dtype, as_device(where))
    values = data if isinstance(data, (np.ndarray, np.generic)) else _array_of(data, dtype)
    if values.dtype == object or values.dtype.kind in "USV":
        raise TypeError(f"can't convert np.ndarray of type {values.dtype} to a tensor: its elements are no numbers")
    result = tensor_of(np.array(values, order="C"), dtype)
    return result if where is None else result.to(where)


def _from_number(value: Any, dtype: DType | None, where: device) -> Tensor:
    kind = type(value)
    if dtype is None:
        dtype = {float: get_default_dtype(), int: int64, bool: bool_}.get(kind) or default_complex()
    elif kind is complex and not dtype.is_complex:
        raise RuntimeError(f"value cannot be converted to type {dtype} without overflow")
    if kind is int and not -(2**63) <= value < 2**64:
        raise RuntimeError("Overflow when unpacking long long")
    return fill(empty_of(contiguous_spec((), dtype, where)), value)


def _array_of(data: Any, dtype: DType | None) -> np.ndarray:
    """Nested sequences as an array in the dtype that PyTorch infers (or a wide one if `dtype` is given)."""
    if not isinstance(data, (Sequence, np.ndarray)) or isinstance(data, (str, bytes)):
        if hasattr(data, "__array__") or hasattr(data, "__array_interface__"):
            return np.asarray(data)
        if hasattr(data, "__len__") and hasattr(data, "__getitem__"):
            data = list(data)
        else:
            return _scalar_like(data)
    shape: list[int] = []
    flat: list[Any] = []
    _flatten(data, 0, shape, flat)
    inferred = _infer(flat)
    if any(isinstance(item, np.generic) or isinstance(item, Tensor) for item in flat):
        flat = [item.item() for item in map(_plain, flat)]
    try:
        values = np.array(flat, dtype=inferred.numpy if inferred.itemsize > 2 or inferred is bool_ else np.float32)
    except OverflowError:
        values = _large_integers(flat, dtype)
    return values.reshape(shape)


def _plain(item: Any) -> Any:
    return item if hasattr(item, "item") else np.asarray(item)


def _large_integers(flat: list, dtype: DType | None) -> np.ndarray:
    if dtype is not None and dtype.is_floating_point:
        return np.array(flat, dtype=np.float64)
    if all(0 <= value < 2**64 for value in flat):
        return np.array(flat, dtype=np.uint64)
    raise RuntimeError("Overflow when unpacking long long")


def _scalar_like(data: Any) -> np.ndarray:
    for method in ("__complex__", "__float__", "__index__"):
        if hasattr(data, method) and not isinstance(data, (str, bytes)):
            kind = {"__complex__": complex, "__float__": float, "__index__": int}[method]
            return np.asarray(kind(data))
    raise TypeError(f"could not infer dtype of {type(data).__name__}: {data!r}"[:200].replace("could", "Could", 1))


def _flatten(data: Any, depth: int, shape: list[int], flat: list) -> None:
    """Append the leaves of nested sequences to `flat` and find their shape.

    Raises: ValueError if sequences of one level differ in length, TypeError for leaves that are no numbers.
    """
    if len(shape) == depth:
        shape.append(len(data))
    elif shape[depth] != len(data):
        raise ValueError(
            f"expected sequence of length {shape[depth]} at dim {depth} (got {len(data)}): all sequences of one level "
            "must have the same length"
        )
    nested = [_is_sequence(item) for item in data]
    if not any(nested):
        if len(shape) > depth + 1:
            raise ValueError(f"expected sequence of length {shape[depth + 1]} at dim {depth + 1} (got 0)") if not len(
                data
            ) and shape[depth] else TypeError("not a sequence")
        flat.extend(data)
        return
    for item, is_nested in zip(data, nested, strict=True):
        if not is_nested:
            raise TypeError(f"not a sequence: {item!r} stands beside sequences at dim {depth + 1}")
        _flatten(item, depth + 1, shape, flat)


def _is_sequence(item: Any) -> bool:
    if isinstance(item, (list, tuple, range)):
        return True
    if isinstance(item, (Tensor, np.ndarray)):
        return item.ndim > 0
    return isinstance(item, Sequence) and not isinstance(item, (str, bytes))


def _infer(flat: list) -> DType:
    """The dtype of a list of numbers: the highest category among them."""
    if not flat:
        return get_default_dtype()
    found = bool_
    for kind in set(map(type, flat)):
        found = max(found, _kind_dtype(kind, flat), key=lambda dtype: (dtype.category, dtype.itemsize))
    return found


def _kind_dtype(kind: type, flat: list) -> DType:
    if issubclass(kind, bool):
        return bool_
    if issubclass(kind, np.generic):
        from ..core.dtype import from_numpy_dtype

        return from_numpy_dtype(np.dtype(kind))
    if issubclass(kind, int):
        return int64
    if issubclass(kind, float):
        return get_default_dtype()
    if issubclass(kind, complex):
        return default_complex()
    if issubclass(kind, Tensor):
        return next(item for item in flat if isinstance(item, kind)).dtype
    if issubclass(kind, str):
        raise TypeError("new(): invalid data type 'str'")
    if hasattr(kind, "__index__"):
        return int64
    if hasattr(kind, "__float__"):
        return get_default_dtype()
    raise RuntimeError(f"Could not infer dtype of {kind.__name__}")


@public("function")
def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor on the memory of an array: writes through either are seen by both.

    Raises: TypeError for other objects and dtypes, ValueError for negative strides.

    >>> import numpy as np, weft as torch
    >>> a = np.zeros(2); t = torch.from_numpy(a); a[0] = 1; t
    tensor([1., 0.], dtype=torch.float64)
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    if not ndarray.flags.writeable:
        _warn_read_only()
    if any(step < 0 for step in ndarray.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array with array.copy().)"
        )
    if any(step % ndarray.itemsize for step in ndarray.strides):
        raise ValueError(
            f"given numpy array strides not a multiple of the element byte size ({ndarray.strides}, {ndarray.itemsize}). "
            "Copy the numpy array to reallocate the memory."
        )
    return adopt(ndarray, exposed=True)


def _warn_read_only() -> None:
    import warnings

    warnings.warn(
        "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means writing "
        "to this tensor will result in undefined behavior. You may want to copy the array to protect its data or make "
        "it writable before converting it to a tensor.",
        UserWarning,
        stacklevel=3,
    )
