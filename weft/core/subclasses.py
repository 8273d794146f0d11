"""Subclasses of Tensor: the class between Tensor and the classes of users, and their default `__torch_function__`.

`Tensor.__init_subclass__` gives each class that overrides functions the base `AskingTensor`. Its methods, operators and
properties are entries, which ask the classes of their arguments. Plain tensors have Tensor's own and pay nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, cast

from . import overrides
from .above import above
from .device import as_device, claimed, device
from .dispatch import PLAIN
from .dtype import DType, get_default_dtype
from .entry import entry
from .overrides import (
    OPERATORS,
    REFLECTED,
    UNARY,
    DisableTorchFunctionSubclass,
    disabled,
    disabled_dispatch,
    handles_dispatch,
    note_class,
    overrides_functions,
    switch,
)
from .recording import tape
from .registry import entry_of
from .spec import contiguous_spec, make_spec
from .tensor import Tensor, empty, of_class


def without_overrides(function: Callable) -> Callable:
    """`function`, inside of which classes are not asked."""

    @functools.wraps(function)
    def complete(*args: Any, **kwargs: Any) -> Any:
        with DisableTorchFunctionSubclass():
            return function(*args, **kwargs)

    return complete


@functools.cache
def unconverted() -> frozenset[Callable]:
    """The functions whose results keep their class: `torch.overrides.get_default_nowrap_functions`."""
    return frozenset((Tensor.grad.__get__, vars(Tensor)["_base"].__get__))


def _default(cls: type, func: Callable, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
    """Call `func` as for plain tensors; its results become objects of this class.

    NotImplemented if this class is not a subclass of an argument's class that overrides functions.
    """
    if not all(issubclass(cls, each) for each in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        # Tensor's own methods do not ask, so a class with `__torch_dispatch__` is asked here.
        asked = overrides.dispatcher
        result = PLAIN if asked is None else asked(func, args, kwargs or {})
        if result is PLAIN:
            result = func(*args, **kwargs or {})
        return result if func in unconverted() else _converted(result, cls)


def _converted(result: Any, cls: type) -> Any:
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, (tuple, list)) and any(isinstance(each, (Tensor, tuple, list)) for each in result):
        kind: Any = type(result)
        return getattr(kind, "_make", kind)(_converted(each, cls) for each in result)
    return result


def make_subclass(cls: type, data: Tensor, require_grad: bool = False) -> Any:
    """A leaf of class `cls` that shares the memory of `data`."""
    if not isinstance(data, Tensor):
        raise TypeError(
            f"_make_subclass(): argument 'data' (position 2) must be Tensor, not {type(data).__name__}"
        )
    check_subclass(cls, data)
    if require_grad and not (data.spec.dtype.is_floating_point or data.spec.dtype.is_complex):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    with DisableTorchFunctionSubclass():
        result = of_class(cls, data.detach())
        result._base = None
        return tape.require_grad(result) if require_grad else result


def make_wrapper_subclass(
    cls: type,
    size: Any,
    strides: Any = None,
    storage_offset: int | None = None,
    memory_format: Any = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    dispatch_sizes_strides_policy: str | None = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
    _extra_dispatch_keys: Any = None,
    storage_size: int | None = None,
) -> Any:
    """A tensor of class `cls` with this metadata and without memory, for `__torch_dispatch__` to compute with others.

    Raises: TypeError if `cls` does not define `__torch_dispatch__`.
    """
    check_subclass(cls)
    if not handles_dispatch(cls):
        raise TypeError(
            f"{cls.__name__} must define __torch_dispatch__, because a tensor without memory cannot be computed with"
        )
    where = claimed(as_device(device))
    spec = contiguous_spec(tuple(int(each) for each in size), dtype or get_default_dtype(), where)
    if strides is not None:
        spec = make_spec(spec.shape, tuple(int(each) for each in strides), spec.dtype, where)
    with DisableTorchFunctionSubclass():
        result = of_class(cls, empty(spec))
        result._byte_offset = (storage_offset or 0) * spec.dtype.itemsize
        above("library.registry.dispatching").wrappers.note(result._storage)
        if requires_grad:
            tape.require_grad(result)
    return result


def is_wrapper(value: Any) -> bool:
    """Whether this is a tensor without memory, so that only its `__torch_dispatch__` can compute with it."""
    return isinstance(value, Tensor) and value.spec.device.is_claimed and handles_dispatch(type(value))


def as_base_tensor(tensor: Tensor) -> Tensor:
    """The same tensor as a plain Tensor, so that functions do not ask its class."""
    return tensor if type(tensor) is Tensor else of_class(Tensor, tensor)


def check_subclass(cls: Any, data: Tensor | None = None) -> None:
    """Raises: TypeError if `cls` is not a class of tensors; RuntimeError if `data` has no memory that an object of it could share."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, Tensor):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your "
            "class inherits from Tensor."
        )
    if data is not None and data.spec.device.is_claimed and not isinstance(data, cls):
        raise RuntimeError(
            f"Creating an object of the subclass {cls.__name__} but the data has no memory of its own: the tensor is already "
            f"associated to a python object of type {type(data).__name__}"
        )


class AskingTensor(Tensor):
    """What users' subclasses of Tensor inherit first: the methods, operators and properties of Tensor, which ask."""

    __slots__ = ()


# Each is called with a new subclass of Tensor that does not override functions.
plain_class_hooks: list[Callable[[type], None]] = []


def _init_subclass(cls: Any, **kwargs: Any) -> None:
    super(Tensor, cls).__init_subclass__(**kwargs)
    if handles_dispatch(cls) and getattr(cls.__torch_function__, "__func__", None) is _default:
        cls.__torch_function__ = staticmethod(
            disabled
        )  # its results have the classes that __torch_dispatch__ gave them
    if not note_class(cls):
        for hook in plain_class_hooks:
            hook(cls)
        return
    if handles_dispatch(cls):
        above("library.registry.dispatching")
    complete_asking()
    if AskingTensor not in cls.__mro__:
        bases = cls.__bases__
        cls.__bases__ = (
            tuple(AskingTensor if base is Tensor else base for base in bases)
            if Tensor in bases
            else (*bases, AskingTensor)
        )


_default.__qualname__, _default.__name__ = "Tensor.__torch_function__", "__torch_function__"
Tensor.__torch_function__ = classmethod(_default)  # type: ignore[attr-defined]
Tensor.__torch_dispatch__ = staticmethod(disabled_dispatch)  # type: ignore[attr-defined]
Tensor.__init_subclass__ = classmethod(_init_subclass)  # type: ignore[assignment]
Tensor._make_wrapper_subclass = staticmethod(make_wrapper_subclass)  # type: ignore[attr-defined]
Tensor._make_subclass = staticmethod(make_subclass)  # type: ignore[attr-defined]

# Members that run without asking the class.
UNASKED = frozenset(
    "__new__ __hash__ __iter__ __init_subclass__ __torch_function__ __array_namespace__ __buffer__ as_subclass".split()
)


@functools.cache
def complete_asking() -> None:
    """Give `AskingTensor` its members; by now Tensor has all of its own."""
    for name, member in list(vars(Tensor).items()):
        if name in UNASKED:
            continue
        if isinstance(member, FunctionType):
            setattr(AskingTensor, name, _asking_method(member, UNARY.get(name, name)))
        elif isinstance(member, property):
            setattr(AskingTensor, name, _asking_property(member))
    for name, method in OPERATORS.items():
        if hasattr(Tensor, name):
            setattr(AskingTensor, name, _asking_operator(name, method))
    for forward, (name, method) in REFLECTED.items():
        setattr(AskingTensor, name, _asking_reflected(name, method, OPERATORS[forward]))
    AskingTensor.device = _asking_property(  # type: ignore[method-assign, assignment]
        cast(property, vars(Tensor)["device"]),
        lambda self: device(self.spec.device),
    )
    AskingTensor.__hash__ = Tensor.__hash__  # type: ignore[method-assign]  # __eq__ took it away


# Methods of Tensor that do not ask, because plain tensors call them all the time. `__torch_dispatch__` is not told of them.
_METADATA = frozenset(
    (
        Tensor.size,
        Tensor.stride,
        Tensor.storage_offset,
        Tensor.dim,
        Tensor.ndimension,
        Tensor.numel,
        Tensor.nelement,
    )
)


class _AskingMethod:
    """A method of `AskingTensor`. Read from a class, it is the method of Tensor, as in PyTorch, if that asks all it has to."""

    def __init__(self, asking: Callable, method: Callable):
        self.asking, self.method = asking, method
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> Callable:
        if instance is not None:
            return MethodType(self.asking, instance)
        asks = (
            self.method in entry_of or self.method in _METADATA and not overrides_functions(cast(type, owner))
        )
        return self.method if asks else self.asking


class _AskingProperty(property):
    """A property of `AskingTensor`. The class itself has the property of Tensor."""

    member: property

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self.member if instance is None else super().__get__(instance, owner)


def _asking_method(function: Callable, name: str) -> _AskingMethod:
    member = getattr(Tensor, name)
    return _AskingMethod(entry(function, name, reported=member), function)


def _asking_property(member: property, getter: Callable | None = None) -> property:
    """Handlers are told of a property by its `__get__`, `__set__` and `__delete__`."""
    result = _AskingProperty(
        entry(getter or member.__get__, reported=member.__get__),
        entry(member.__set__, reported=member.__set__) if member.fset else None,
        entry(member.__delete__, reported=member.__delete__) if member.fdel else None,
        member.__doc__,
    )
    result.member = member
    return result


def _asking_operator(name: str, method: str) -> _AskingMethod:
    """As in PyTorch, operators return NotImplemented where the method raises TypeError."""
    function = getattr(Tensor, name)
    asking = entry(function, name, reported=getattr(Tensor, method, None), is_operator=True)
    return _AskingMethod(asking, function)


_SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "div": "/", "floordiv": "//", "mod": "%", "pow": "** or pow()",
    "matmul": "@", "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip


def _asking_reflected(name: str, method: str, forward: str) -> _AskingMethod:
    """Python prefers the reflected operator of a subclass: `tensor + mine` comes here, and is turned round again."""
    function = getattr(Tensor, name)
    own = entry(function, name, reported=getattr(Tensor, method), is_operator=True)
    turned = entry(
        lambda other, self: function(self, other), name, reported=getattr(Tensor, forward), is_operator=True
    )
    symbol = _SYMBOLS[name.strip("_")[1:]]

    def operator(self: Any, other: Any) -> Any:
        if not isinstance(other, Tensor) or overrides_functions(type(other)):
            return own(self, other)  # the class of `other` was asked for the forward operator, and declined
        answer = turned(other, self)
        if answer is NotImplemented and switch.on:
            # Python would go on to the operator of the plain tensor, which does not ask the class.
            raise TypeError(
                f"unsupported operand type(s) for {symbol}: '{type(other).__name__}' and '{type(self).__name__}'"
            )
        return answer

    operator.__name__ = operator.__qualname__ = name
    return _AskingMethod(operator, function)
