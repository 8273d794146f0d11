"""Pickling in PyTorch's format: weft's objects get PyTorch's names, and storages become persistent ids."""

from __future__ import annotations

import copyreg
import functools
import io
import pickle
import warnings
from collections import OrderedDict
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..autograd.graph import Leaf
from ..core.device import device
from ..core.dtype import LEGACY_NAMES, DType
from ..core.layout import (
    Layout,
    MemoryFormat,
    jagged,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from ..core.overrides import public_function
from ..core.qscheme import qscheme
from ..core.registry import FUNCTIONS
from ..core.size import Size
from ..core.storage import Storage
from ..core.tensor import Tensor
from ..core.warn import user_level
from ..layouts.quantized.script_object import ScriptObject, rebuilt_object
from ..ops.tensor.pickling import attributes, pickled_state
from ..ops.tensor.storage import TypedStorage
from . import rebuild
from .locations import location_tag
from .names import find_torch, torch_name
from .nested import NestedTensor, rebuild_jagged_tensor, reduce_nested

# ---- Storages --------------------------------------------------------------------------------------------------------


class Storages:
    """The storages of one file, each once and with a key, in the order in which the pickler finds them."""

    def __init__(self, key_of: Callable[[Storage, int], str]):
        self._key_of = key_of
        self.entries: dict[int, tuple[str, Storage, DType | None]] = {}
        self._dtypes: dict[int, DType | None] = {}

    def identity(self, storage: Storage | TypedStorage) -> tuple:
        """Return the persistent id of a storage.

        Raises: RuntimeError if the same memory already has another dtype, because the format stores one dtype per storage.
        """
        untyped = storage.untyped()
        dtype = storage.dtype if isinstance(storage, TypedStorage) else None
        if untyped.device.backend.has_memory and untyped.nbytes_:
            if self._dtypes.setdefault(untyped.ptr, dtype) is not dtype:
                raise RuntimeError(
                    "Cannot save multiple tensors or storages that view the same data as different types"
                )
        key, _, _ = self.entries.setdefault(
            id(untyped), (self._key_of(untyped, len(self.entries)), untyped, dtype)
        )
        if dtype is None:
            return "storage", Storage, key, location_tag(untyped), untyped.nbytes_
        kind = FUNCTIONS[storage.pickle_storage_type()]  # type: ignore[union-attr]
        return "storage", kind, key, location_tag(untyped), len(storage)

    def __iter__(self):
        return iter(self.entries.values())


# ---- How to rebuild objects ----------------------------------------------------------------------------------------


# The layouts that PyTorch's files have.
_LAYOUTS = frozenset((strided, jagged, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc))


def reduce_tensor(tensor: Tensor) -> tuple:
    """The function and the arguments that rebuild a tensor, as in PyTorch's files if these have its layout."""
    if tensor.layout not in _LAYOUTS:
        return tensor.__reduce_ex__(pickle.DEFAULT_PROTOCOL)  # type: ignore[return-value]
    if tensor.is_nested:
        function, arguments = reduce_nested(tensor)
        if function is rebuild_jagged_tensor:
            return rebuild.rebuild_from_type, (function, NestedTensor, arguments, {})
        return function, arguments
    function, arguments = _reduce_plain(tensor)
    state = pickled_state(tensor)
    if type(tensor) is Tensor and not state:
        return function, arguments
    return rebuild.rebuild_from_type, (function, type(tensor), arguments, state or None)


def _reduce_plain(tensor: Tensor) -> tuple:
    spec = tensor.spec
    # New tuples, because equal tuples may be one object in weft, and the pickle must have the same bytes as PyTorch's.
    size, stride = tuple([*spec.shape]), tuple([*spec.stride])
    if not spec.device.backend.has_memory:
        return rebuild.rebuild_meta_tensor, (spec.dtype, size, stride, tensor.requires_grad)
    _warn_of_hooks(tensor)
    if tensor.is_quantized:
        typed = TypedStorage(wrap_storage=tensor._storage, dtype=spec.dtype, _internal=True)
        place = (typed, tensor.storage_offset(), size, stride)
        return rebuild.rebuild_qtensor, (*place, _quantizer(tensor), tensor.requires_grad, OrderedDict())
    if tensor.layout is not strided:
        from ..layouts.sparse.files import state_of

        return rebuild.rebuild_sparse_tensor, state_of(tensor)
    common: tuple = (tensor.storage_offset(), size, stride, tensor.requires_grad, OrderedDict())
    flags = {name: True for name in ("conj", "neg") if getattr(spec, name)}
    if any(names := getattr(spec, "names", None) or ()):
        flags[rebuild.flag_of_names(names)] = True
    metadata = (flags,) if flags else ()
    if f"{LEGACY_NAMES[spec.dtype]}Storage" in FUNCTIONS:
        typed = TypedStorage(wrap_storage=tensor._storage, dtype=spec.dtype, _internal=True)
        return rebuild.rebuild_tensor_v2, (typed, *common, *metadata)
    return rebuild.rebuild_tensor_v3, (tensor._storage, *common, spec.dtype, *metadata)


def _quantizer(tensor: Tensor) -> tuple:
    if str(tensor.qscheme()).startswith("torch.per_tensor"):
        return tensor.qscheme(), tensor.q_scale(), tensor.q_zero_point()
    channels = tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points(), tensor.q_per_channel_axis()
    return tensor.qscheme(), *channels


def _warn_of_hooks(tensor: Tensor) -> None:
    edge = tensor._autograd
    for hook in ((edge.hooks or {}) if isinstance(edge, Leaf) else {}).values():
        if not getattr(hook, "__torch_unserializable__", False):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the "
                "function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                UserWarning,
                stacklevel=user_level(),
            )


def reduce_parameter(parameter: Any) -> tuple:
    """Return the same as for its tensor, for a Parameter."""
    _warn_of_hooks(parameter)
    arguments: tuple = (parameter.detach().as_subclass(Tensor), parameter.requires_grad, OrderedDict())
    if state := attributes(parameter):
        return rebuild.rebuild_parameter_with_state, (*arguments, state)
    return rebuild.rebuild_parameter, arguments


class _Reducers:
    """The dispatch table of the pickler: class -> reduce function."""

    def get(self, cls: type, default: Any = None) -> Any:
        if issubclass(cls, Tensor):
            from ..autograd.parameter import Parameter

            own: Any = cls.__reduce_ex__
            if public_function(own) not in (Tensor.__reduce_ex__, Parameter.__reduce_ex__):
                return default  # pickle calls the method of the subclass
            return reduce_parameter if type.__subclasscheck__(Parameter, cls) else reduce_tensor
        return _REDUCERS.get(cls) or copyreg.dispatch_table.get(cls, default)


_REDUCERS: dict[type, Callable[[Any], tuple]] = {
    Size: lambda size: (Size, (tuple(size),)),
    device: lambda where: (device, (where.type,) if where.index is None else (where.type, where.index)),
    Layout: lambda layout: (rebuild.rebuild_layout, (repr(layout),)),
    # The same as the default __reduce__, which calls a function of copyreg with a bare `except` that swallows Ctrl-C.
    OrderedDict: lambda each: (OrderedDict, (), vars(each) or None, None, iter(each.items())),
}


# ---- The pickler -----------------------------------------------------------------------------------------------------


class Names:
    """Mixin for picklers written in Python: PyTorch's names, and persistent ids for storages."""

    dispatch_table = _Reducers()

    def __init__(self, file: Any, protocol: int, identity: Callable[[Any], tuple]):
        super().__init__(file, protocol=protocol)  # type: ignore[call-arg]
        self._identity = identity

    def save_storage(self, obj: Any) -> None:
        self.save_pers(self._identity(obj))  # type: ignore[attr-defined]

    def save_reduce(self, func: Any, args: tuple, *rest: Any, obj: Any = None) -> None:
        if func is not rebuilt_object:
            super().save_reduce(func, args, *rest, obj=obj)  # type: ignore[misc]
            return
        # PyTorch's form: an object of the base class, then its state, which names the class.
        self.save(ScriptObject)  # type: ignore[attr-defined]
        self.save(())  # type: ignore[attr-defined]
        self.write(pickle.NEWOBJ)  # type: ignore[attr-defined]
        self.memoize(obj)  # type: ignore[attr-defined]
        self.save(*args)  # type: ignore[attr-defined]
        self.write(pickle.BUILD)  # type: ignore[attr-defined]

    def save_global(self, obj: Any, name: str | None = None) -> None:
        found = torch_name(obj)
        if found is None:
            super().save_global(obj, name)  # type: ignore[misc]
            return
        module, own = found
        outer, _, last = own.rpartition(".")
        if outer and self.proto < 4:  # type: ignore[attr-defined]
            # Older protocols name only what a module has, so that a class within a class is an attribute.
            self.save_reduce(getattr, (find_torch(module, outer), last), obj=obj)
            return
        if self.proto >= 4:  # type: ignore[attr-defined]
            for part in found:
                self.save(part)  # type: ignore[attr-defined]
            self.write(pickle.STACK_GLOBAL)  # type: ignore[attr-defined]
        else:
            self.write(pickle.GLOBAL + "\n".join((*found, "")).encode())  # type: ignore[attr-defined]
        self.memoize(obj)  # type: ignore[attr-defined]


@functools.cache
def pickler_of(module: Any) -> Any:
    """Return the class of picklers, derived from the pickler of `pickle` or of a module with the same interface.

    Raises: NotImplementedError for modules whose pickler is not written in Python, like cloudpickle.
    """
    base = pickle._Pickler if module is pickle else module.Pickler  # type: ignore[attr-defined]
    if not issubclass(base, pickle._Pickler):  # type: ignore[attr-defined]
        raise NotImplementedError(
            f"torch.save with pickle_module={module.__name__}: weft needs a Pickler derived from pickle._Pickler"
        )
    named = dict.fromkeys((FunctionType, DType, MemoryFormat, qscheme), Names.save_global)
    identified = dict.fromkeys((Storage, TypedStorage), Names.save_storage)
    return type("Pickler", (Names, base), {"dispatch": {**base.dispatch, **named, **identified}})


def dumps(obj: Any, protocol: int, identity: Callable[[Any], tuple], module: Any = pickle) -> bytes:
    """Return the pickle of an object."""
    file = io.BytesIO()
    pickler_of(module)(file, protocol, identity).dump(obj)
    return file.getvalue()
