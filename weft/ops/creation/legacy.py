"""Defines the constructors of old: `torch.Tensor(2, 3)`, `torch.LongTensor([1, 2])`, and types by name."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np

from ...core import dtype as dt
from ...core.arguments import no_form
from ...core.device import ACCELERATORS, CPU, as_device, get_default_device, set_default_device
from ...core.dtype import DTYPES, LEGACY_NAMES, DType, get_default_dtype, set_default_dtype
from ...core.names import ROOT
from ...core.overrides import modes
from ...core.public import public
from ...core.registry import add_function
from ...core.size import Size
from ...core.spec import contiguous_spec
from ...core.storage import Storage
from ...core.subclasses import check_subclass
from ...core.tensor import Tensor, make, of_class
from ...core.warn import user_level
from ..views.views import ALIAS
from .creation import empty, size_arguments
from .from_data import from_data, is_sequence, tensor


def _construct(
    dtype: DType, positional: tuple, device: Any = None, size: Any = None, exact: bool = True, here: Any = CPU
) -> Tensor:
    """Return a tensor of sizes, of values, or on the memory of a tensor or storage.

    `exact`: a tensor must have this dtype. `here`: the device if the caller names none.
    """
    where = here if device is None else as_device(device)
    if size is not None:
        positional = (Size(size),)
    if len(positional) != 1:
        return (
            empty(size_arguments((positional,), "new"), dtype=dtype, device=where)
            if positional
            else _none(dtype, where)
        )
    (data,) = positional
    if isinstance(data, Tensor):
        if device is not None:
            raise RuntimeError(
                "Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.  Use "
                "torch.tensor(...) or torch.as_tensor(...) instead."
            )
        if exact and data.spec.dtype is not dtype:
            raise TypeError(
                f"expected a tensor of {dtype}, got one of {data.spec.dtype}: convert it with .to({dtype})"
            )
        return ALIAS(data)
    untyped = getattr(data, "_untyped_storage", data)
    if isinstance(untyped, Storage):
        return make(untyped, 0, contiguous_spec((untyped.nbytes() // dtype.itemsize,), dtype, untyped.device))
    if isinstance(data, Size) or not isinstance(data, (bool, np.ndarray)) and hasattr(data, "__index__"):
        return empty(data, dtype=dtype, device=where)
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if not is_sequence(data) and not isinstance(data, np.ndarray):
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    if modes.dispatch:  # they are told of tensors that are made of data
        return tensor(data, dtype=dtype, device=where)
    return from_data(data, dtype, where)


def _unknown_option(positional: tuple, others: dict[str, Any]) -> TypeError:
    error = no_form("new", positional, others, "*size, device", "data, device")
    if others.keys() <= {"dtype", "requires_grad"}:
        error.add_note(f"torch.tensor(data, {', '.join([f'{name}=' for name in others])}) takes it")
    return error


def _none(dtype: DType, where) -> Tensor:
    return empty(0, dtype=dtype, device=where)


def _new_tensor(cls, *positional: Any, device: Any = None, size: Any = None, **others: Any) -> Tensor:
    if others:
        raise _unknown_option(positional, others)
    if len(positional) == 1 and type(positional[0]) is not Tensor and isinstance(positional[0], Tensor):
        check_subclass(cls, positional[0])
    result = _construct(get_default_dtype(), positional, device, size, exact=False)
    return result if cls is Tensor else of_class(cls, result)


Tensor._legacy_new = classmethod(_new_tensor)


@public("method")
def as_subclass(self: Tensor, cls: type) -> Tensor:
    """Return a view of the whole tensor as an object of a subclass of Tensor."""
    check_subclass(cls, self)
    view = ALIAS(self)
    try:
        # The very object that autograd knows as a view, so that writes to it are recorded.
        view.__class__ = cls
    except TypeError:  # a class with slots of its own
        return of_class(cls, view)
    return view


@public("method")
def new(self: Tensor, *positional: Any, device: Any = None, size: Any = None) -> Tensor:
    """Return a tensor of this dtype and device: of sizes, or with the values of a sequence."""
    return _construct(self.spec.dtype, positional, device, size, here=self.spec.device)


# ---- Classes that stand for a dtype ------------------------------------------------------------------------------------


class _TypedClass(type):
    """The type of `torch.FloatTensor` and the like: a call makes a Tensor, which `isinstance` takes for an instance."""

    dtype: DType
    where: Any = CPU  # the device of its tensors
    is_xpu = is_sparse = False

    @property
    def is_cuda(cls) -> bool:
        return cls.where.type == "cuda"

    def __new__(cls, name: str, bases: tuple, members: dict[str, Any]) -> Any:
        if bases:
            raise TypeError(
                f"type '{bases[0].__module__}.{bases[0].__name__}' is not an acceptable base type"
            )
        return super().__new__(cls, name, bases, members)

    def __call__(cls, *positional: Any, device: Any = None, size: Any = None, **others: Any) -> Tensor:
        if others:
            raise _unknown_option(positional, others)
        device = cls.where if device is None and cls.where is not CPU else device
        return _construct(cls.dtype, positional, device, size)

    def __instancecheck__(cls, value: Any) -> bool:
        if not isinstance(value, Tensor):
            return False
        return value.spec.dtype is cls.dtype and value.spec.device.type == cls.where.type


_LEGACY = (
    dt.float32, dt.float64, dt.float16, dt.bfloat16, dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64, dt.bool_,
)  # fmt: skip


def typed_classes(where: Any, module: str) -> dict[str, type]:
    """Return the classes of tensors on a device by their names, for a module such as `torch.cuda`."""
    names = {f"{LEGACY_NAMES[dtype]}Tensor": dtype for dtype in _LEGACY}
    return {
        name: _TypedClass(name, (), {"dtype": dtype, "where": where, "__module__": module})
        for name, dtype in names.items()
    }


for _name, _class in typed_classes(CPU, ROOT).items():
    add_function(_name, _class)


_DTYPE_OF_NAME = {f"torch.{LEGACY_NAMES[dtype]}Tensor": dtype for dtype in DTYPES.values()}
_DTYPE_OF_NAME["torch.Tensor"] = dt.float32
_OF_CUDA = "torch.cuda."


@public("method", name="type")
def type_of(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Return the name of the legacy class, such as 'torch.FloatTensor'; with `dtype` (or a class), convert.

    >>> import weft as torch
    >>> torch.ones(1).type(), torch.ones(1).type("torch.LongTensor")
    ('torch.FloatTensor', tensor([1]))
    """
    if dtype is None:
        place = "" if self.spec.device is CPU else f"{self.spec.device.type}."
        return f"torch.{place}{LEGACY_NAMES[self.spec.dtype]}Tensor"
    if isinstance(dtype, DType):
        return self.to(dtype)
    return self.to(_legacy_device(dtype), _legacy_dtype(dtype))


def _legacy_device(kind: Any) -> Any:
    """The device that a legacy class, or the name of one, stands for."""
    if isinstance(kind, _TypedClass):
        return kind.where
    return as_device("cuda") if isinstance(kind, str) and kind.startswith(_OF_CUDA) else CPU


def _legacy_dtype(kind: Any) -> DType:
    """The dtype that a legacy class, or the name of one, stands for."""
    if isinstance(kind, _TypedClass):
        return kind.dtype
    if kind is Tensor:
        return dt.float32
    if not isinstance(kind, (str, type)):
        raise TypeError("dtype must be a type, str, or dtype object")
    name = kind if isinstance(kind, str) else kind.__name__
    name = name.replace(_OF_CUDA, "torch.")
    if name not in _DTYPE_OF_NAME:
        raise ValueError(f"invalid type: '{name}'")
    return _DTYPE_OF_NAME[name]


@public("function")
def set_default_tensor_type(t: Any, /) -> None:
    """Make the dtype of a legacy class the default of floating point tensors; deprecated."""
    warnings.warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives.",
        UserWarning,
        stacklevel=user_level(),
    )
    if isinstance(t, str) and t not in _DTYPE_OF_NAME:
        module, _, name = t.rpartition(".")
        t = getattr(importlib.import_module(module or t), name)
    if isinstance(t, DType):
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    set_default_dtype(_legacy_dtype(t))
    where = _legacy_device(t)
    if where is not CPU or get_default_device().type in ACCELERATORS:
        set_default_device(where)
