"""PyTorch's rebuild functions, which files call to create objects. Their arguments are untrusted.

Each function checks its arguments first, so that a malicious file can only create tensors within their storages. The functions
raise TypeError and ValueError for wrong arguments, and RuntimeError for a tensor that exceeds its storage.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

from ..core import layout as layouts
from ..core.device import device
from ..core.dtype import QUANTIZED, DType
from ..core.layout import Layout
from ..core.size import Size, shape
from ..core.spec import Spec, make_spec
from ..core.tensor import Tensor, empty
from ..ops.tensor.pickling import OF_AUTOGRAD, rebuilt
from ..ops.tensor.storage import TypedStorage
from .nested import rebuild_jagged_tensor
from .passes import needs_numbers

MOST_DIMS = 1000  # dims of a tensor; computing the product of a million sizes takes minutes
COLLISIONS = 100  # keys with the same hash in one dict or set, because each is compared with all the others

# ---- Tensors ---------------------------------------------------------------------------------------------------------


def rebuild_tensor_v2(
    storage: TypedStorage,
    storage_offset: int,
    size: tuple,
    stride: tuple,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: dict | None = None,
) -> Tensor:
    """A tensor of the storage's dtype. `metadata` says whether a conjugation or negation is pending, and which names the dims have."""
    return _tensor(storage, storage_offset, size, stride, storage.dtype, requires_grad, metadata)


def rebuild_tensor_v3(
    storage: TypedStorage,
    storage_offset: int,
    size: tuple,
    stride: tuple,
    requires_grad: bool,
    backward_hooks: Any,
    dtype: DType,
    metadata: dict | None = None,
) -> Tensor:
    """Return a tensor of a dtype without a class of typed storages."""
    return _tensor(storage, storage_offset, size, stride, dtype, requires_grad, metadata)


def rebuild_tensor(storage: TypedStorage, storage_offset: int, size: tuple, stride: tuple) -> Tensor:
    """Return a tensor, in the form of the oldest files."""
    return _tensor(storage, storage_offset, size, stride, storage.dtype, False, None)


def rebuild_meta_tensor(dtype: DType, size: tuple, stride: tuple, requires_grad: bool) -> Tensor:
    """Return a tensor without memory."""
    own = _spec(size, stride, dtype, device("meta"), {})
    return rebuilt(Tensor, empty(own)._storage, 0, own, _boolean(requires_grad, "requires_grad"))


@needs_numbers
def rebuild_qtensor(
    storage: TypedStorage,
    storage_offset: int,
    size: tuple,
    stride: tuple,
    quantizer: tuple,
    requires_grad: bool,
    backward_hooks: Any,
) -> Tensor:
    """A quantized tensor. `quantizer` is (scheme, scale, zero point) or (scheme, scales, zero points, axis)."""
    from ..layouts.quantized.files import bytes_of, rebuilt_tensor  # most files have no quantized tensor

    dtype = _check(storage, TypedStorage, "storage").dtype
    if dtype not in QUANTIZED:
        raise TypeError(f"the storage of a quantized tensor has the dtype {dtype}")
    sizes, strides = _integers(size, "size"), _integers(stride, "stride")
    count = bytes_of(sizes, strides, dtype)  # None: an element has a byte or several of its own
    own = (sizes, strides) if count is None else ((count,), (1,))
    integers = _tensor(storage, storage_offset, *own, QUANTIZED[dtype], False, None)
    return rebuilt_tensor(integers, dtype, sizes, _check(quantizer, tuple, "quantizer"))


@needs_numbers
def rebuild_sparse_tensor(layout: Layout, state: tuple) -> Tensor:
    """A sparse tensor. `state` has its parts and its size, and whether a tensor in COO is coalesced."""
    from ..layouts.sparse.files import rebuilt_tensor  # most files have no sparse tensor

    return rebuilt_tensor(_check(layout, Layout, "layout"), _check(state, tuple, "state"))


def rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Any:
    """Return a Parameter on the memory of a tensor."""
    from ..autograd.parameter import Parameter

    _check(data, Tensor, "data")
    return Parameter(data, _boolean(requires_grad, "requires_grad"))


def rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: Any, state: dict) -> Any:
    """A Parameter with attributes that users have set."""
    return with_state(rebuild_parameter(data, requires_grad, backward_hooks), state)


def rebuild_from_type(function: Any, cls: type, arguments: tuple, state: Any) -> Tensor:
    """A tensor of a subclass, or with attributes that users have set."""
    if not any(function is each for each in _WITHIN_TYPE):
        raise TypeError(f"expected a function that rebuilds a tensor, got an object of {type(function)}")
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"expected a class of tensors, got an object of {type(cls)}")
    result = function(*_check(arguments, tuple, "arguments"))
    if function is rebuild_jagged_tensor:  # its arguments say all that its state says
        return result
    if not isinstance(result, cls):
        result = result.as_subclass(cls)
    own: Any = getattr(cls, "__setstate__", None)
    if own is not getattr(Tensor, "__setstate__", None):
        own(result, state)
        return result
    return with_state(result, state)


def rebuild_wrapper_subclass(
    cls: Any,
    dtype: DType,
    size: tuple,
    stride: tuple,
    storage_offset: int,
    layout: Layout,
    where: device,
    requires_grad: bool,
) -> Tensor:
    """A tensor of a class whose objects have other tensors instead of memory (DTensor). Its state will say which.

    Such a class has a method `_from_file(spec, requires_grad)`.
    """
    make = getattr(cls, "_from_file", None) if isinstance(cls, type) and issubclass(cls, Tensor) else None
    if make is None:
        raise TypeError(
            f"expected a class of tensors that wraps others, got {cls if isinstance(cls, type) else type(cls)}"
        )
    spec = _spec(size, stride, dtype, _check(where, device, "device"), {})
    return make(spec, _boolean(requires_grad, "requires_grad"))


_WITHIN_TYPE = (
    rebuild_wrapper_subclass,
    rebuild_tensor,
    rebuild_tensor_v2,
    rebuild_tensor_v3,
    rebuild_meta_tensor,
    rebuild_jagged_tensor,
)


def set_tensor(tensor: Tensor, state: Any) -> None:
    """Set the state of an empty tensor, for files that create the tensor before its state."""
    storage, storage_offset, size, stride = _check(state, tuple, "state")
    tensor.set_(rebuild_tensor(storage, storage_offset, size, stride))


def _tensor(
    storage: TypedStorage,
    offset: int,
    size: tuple,
    stride: tuple,
    dtype: DType,
    requires_grad: bool,
    metadata: Any,
) -> Tensor:
    untyped = _check(storage, TypedStorage, "storage").untyped()
    (offset,) = _integers((offset,), "storage_offset")
    flags = dict(_check(metadata or {}, dict, "metadata"))
    names = [name for name in flags if isinstance(name, str) and name.startswith(_NAMES)]
    for name in names:
        _boolean(flags.pop(name), name)
    own = _spec(size, stride, dtype, untyped.device, flags)
    result = rebuilt(
        Tensor, untyped, offset * own.dtype.itemsize, own, _boolean(requires_grad, "requires_grad")
    )
    return _with_names(result, names[0]) if names else result


# PyTorch's files have flags of a tensor, by their names, and PyTorch ignores flags that it does not know. So weft's names of dims are
# the name of a flag, and PyTorch reads the tensor without them.
_NAMES = "names="


def flag_of_names(names: Sequence[str | None]) -> str:
    """Return the flag of a tensor with these names of dims: "names=N,*" for ("N", None)."""
    return _NAMES + ",".join("*" if name is None else name for name in names)


def _with_names(tensor: Tensor, flag: str) -> Tensor:
    from ..layouts.named.methods import with_names  # most files have no named tensor

    names = [None if name == "*" else name for name in flag.removeprefix(_NAMES).split(",")]
    return with_names(tensor, names)


def _spec(size: Any, stride: Any, dtype: Any, where: device, flags: dict) -> Spec:
    sizes, strides = _integers(size, "size"), _integers(stride, "stride")
    if len(sizes) != len(strides):
        raise ValueError(f"a tensor of {len(sizes)} dims has {len(strides)} strides")
    pending = {name: _boolean(value, name) for name, value in flags.items()}
    if pending.keys() - {"conj", "neg"}:
        raise ValueError("unknown metadata of a tensor, besides conj and neg")
    if pending.get("conj") and not _check(dtype, DType, "dtype").is_complex:
        raise ValueError(f"a tensor of {dtype} has no conjugate")
    return make_spec(shape(sizes), strides, _check(dtype, DType, "dtype"), where, **pending)


def with_state(result: Any, state: Any) -> Any:
    """Set the attributes of an object from a dict, or from a pair (dict, dict of slots)."""
    parts = state if isinstance(state, tuple) else (state,)
    if len(parts) > 2:
        raise ValueError(f"invalid state of a {type(result).__name__}: {len(parts)} parts")
    for part in parts:
        for name, value in _check(part or {}, dict, "state").items():
            if not isinstance(name, str) or name.startswith("__") or _is_ours(name):
                raise ValueError("the state of a tensor sets what is no attribute for users")
            setattr(result, name, value)
    return result


def _is_ours(name: str) -> bool:
    """Whether this is the name of an attribute that weft defines, which a file must not set."""
    return name in OF_AUTOGRAD or hasattr(getattr(Tensor, name, None), "__set__")


# ---- Other objects ---------------------------------------------------------------------------------------------------


def rebuild_size(sizes: Any = ()) -> Size:
    return shape(_integers(sizes, "sizes"))


def rebuild_device(kind: str, index: int | None = None) -> device:
    return device(_check(kind, str, "type"), index if index is None else _integers((index,), "index")[0])


def rebuild_layout(name: str) -> Layout:
    """Return a layout by its name, "torch.strided"."""
    found = getattr(layouts, _check(name, str, "name").removeprefix("torch."), None)
    return _check(found, Layout, "the layout")


def rebuild_dict(pairs: Any = ()) -> OrderedDict:
    _check(pairs, (list, tuple), "items")
    items = [(key, value) for key, value in (_check(pair, (list, tuple), "item") for pair in pairs)]
    count_hashes((key for key, _ in items), Counter())
    return OrderedDict(items)


def rebuild_counter(counts: Any = None) -> Counter:
    return Counter(_check(counts or {}, dict, "counts"))


def rebuild_set(members: Any = ()) -> set:
    count_hashes(_check(members, (list, tuple), "members"), Counter())
    return set(members)


def count_hashes(keys: Iterable[Any], counts: Counter[int]) -> None:
    """Add the hashes of keys to `hashes`, those of the keys that the container already has.

    Raises: ValueError if more keys have the same hash than can happen by accident. Such keys can only be numbers, because
    Python randomizes the hashes of strings and bytes.
    """
    for key in keys:
        if isinstance(key, (int, float, complex, tuple)) and (value := hash(key)) != key:
            counts[value] += 1
            if counts[value] > COLLISIONS:
                raise ValueError(f"more than {COLLISIONS} keys of a dict or set have the same hash")


def rebuild_complex(real: Any, imag: Any = 0.0) -> complex:
    return complex(_check(real, (float, int), "real"), _check(imag, (float, int), "imag"))


def rebuild_bytes(text: str, encoding: str) -> bytes:
    """Bytes from a string with one character per byte, as pickles of protocol 2 store them."""
    if _check(encoding, str, "encoding") != "latin1":
        raise ValueError(f"bytes are encoded as latin1, not as {encoding[:20]!r}")
    return _check(text, str, "text").encode(encoding)


def rebuild_bytearray(content: Any = b"", encoding: str = "") -> bytearray:
    return bytearray(rebuild_bytes(content, encoding) if encoding else _check(content, bytes, "content"))


# ---- Arguments -------------------------------------------------------------------------------------------------------


def _check(value: Any, kind: Any, what: str) -> Any:
    if not isinstance(value, kind):
        kinds = " or ".join(each.__name__ for each in (kind if isinstance(kind, tuple) else (kind,)))
        raise TypeError(f"{what} must be {kinds}, not {type(value).__name__}")
    return value


def _boolean(value: Any, what: str) -> bool:
    return _check(value, bool, what)


def _integers(values: Any, what: str) -> tuple[int, ...]:
    """A tuple of at most MOST_DIMS ints that are not negative and fit into 64 bits, such as sizes."""
    if len(_check(values, (tuple, list), what)) > MOST_DIMS:
        raise ValueError(f"{what}: more than {MOST_DIMS} dims")
    for value in values:
        if type(value) is not int or not 0 <= value < 2**63:
            found = value if type(value) is int else type(value)
            raise ValueError(f"{what} must be integers from 0 to 2**63 - 1, not {found}")
    return tuple(values)
