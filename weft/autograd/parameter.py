"""Parameters and buffers are tensors of a module; parameters are trained, buffers are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from ..core.overrides import disabled
from ..core.restoring import contextmanager
from ..core.subclasses import make_subclass
from ..core.tensor import Tensor, add_plain_type
from ..ops.creation.creation import empty
from ..ops.tensor.pickling import attributes


class _ParameterType(type):
    """Lets `isinstance` accept tensors of other subclasses that `Parameter(...)` has marked."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or (
            cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)
        )


class Parameter(Tensor, metaclass=_ParameterType):
    """A tensor that a module counts among its parameters when it becomes one of its attributes.

    It shares memory with `data` and is a leaf of autograd's graph.
    Raises: RuntimeError if `requires_grad` is True and the data is neither floating point nor complex, or if the class of
    `data` returns a tensor of another class from `detach()`.

    >>> import weft as torch
    >>> torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    Parameter containing:
    tensor([1., 2.], requires_grad=True)
    """

    __torch_function__ = staticmethod(disabled)

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Self:
        if data is None:
            data = empty(0)
        if type(data) in (Tensor, cls):
            return make_subclass(cls, data, requires_grad)
        result: Any = data.detach().requires_grad_(requires_grad)
        if type(result) is not type(data):
            raise RuntimeError(
                f"A Parameter of a {type(data).__name__} requires that detach() returns an instance of the same type, but "
                f"its __torch_dispatch__ returned a {type(result).__name__}"
            )
        result._is_param = True
        return result

    def __deepcopy__(self, memo: dict) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple:
        # Name a subclass only, because `torch.nn.Parameter` may be another library's class where the pickle is read.
        cls = None if type(self) is Parameter else type(self)
        return _parameter, (cls, self.detach().as_subclass(Tensor), self.requires_grad, attributes(self))


add_plain_type(Parameter)


def _parameter(cls: Any, data: Tensor, requires_grad: bool, state: dict[str, Any]) -> Parameter:
    result = (cls or Parameter)(data, requires_grad)
    result.__dict__.update(state)
    return result


class _BufferType(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferType):
    """A tensor that a module counts among its buffers when it becomes one of its attributes.

    The result is a marked Tensor that shares memory with `data`. `persistent` says whether it is a part of
    the module's state_dict.

    >>> import weft as torch
    >>> torch.nn.Buffer(torch.ones(2))
    tensor([1., 1.])
    """

    __torch_function__ = staticmethod(disabled)

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = empty(0)
        result = data.detach().requires_grad_(data.requires_grad)
        result.persistent = persistent
        result._is_buffer = True
        return result


# ---- Tensors whose shape is not known yet -----------------------------------------------------------------------------


class UninitializedTensorMixin:
    """A tensor that gets its shape later by `materialize`; until then it only has a dtype and a device.

    It is an empty tensor whose class changes to `cls_to_become`. Every operation reads the `spec` of its arguments, and
    this class raises the error there.
    """

    __slots__ = ()
    cls_to_become: type

    @property
    def spec(self) -> Any:
        name = type(self).__name__
        raise ValueError(
            "Attempted to use an uninitialized parameter. This error happens when you are using a `LazyModule` or "
            f"explicitly manipulating `torch.nn.parameter.{name}` objects. When using LazyModules Call `forward` with "
            "a dummy batch to initialize the parameters before calling torch functions"
        )

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become a tensor of this shape with uninitialised values; None keeps the device or dtype."""
        bare: Any = self
        data = empty(shape, device=device or bare.device, dtype=dtype or bare.dtype)
        bare.__class__ = self.cls_to_become
        bare.data = data

    def share_memory_(self) -> Any:
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> tuple:
        bare: Any = self
        kind = (
            type(self).__name__ if type(self) in (UninitializedParameter, UninitializedBuffer) else type(self)
        )
        return _uninitialized, (kind, bare.requires_grad, bare.device, bare.dtype)


def _uninitialized(kind: Any, *args: Any) -> Any:
    return (globals()[kind] if isinstance(kind, str) else kind)(*args)


def _delegated(name: str) -> Any:
    """Return a member that forwards to the attribute `name` of the class that the tensor will have."""

    @contextmanager
    def undisguised(self: Any) -> Iterator[Any]:
        disguise = type(self)
        self.__class__ = disguise.cls_to_become
        try:
            yield self
        finally:
            self.__class__ = disguise

    def get(self: Any) -> Any:
        with undisguised(self):
            return getattr(self, name)

    def put(self: Any, value: Any) -> None:
        with undisguised(self):
            setattr(self, name, value)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        with undisguised(self):
            result = getattr(self, name)(*args, **kwargs)
        # A module replaces a buffer by its conversion, so the conversion must still wait for its shape. A parameter
        # takes over the data of its conversion instead.
        if type(result) is Tensor and isinstance(self, UninitializedBuffer):
            result.__class__ = type(self)
        return result

    return call if callable(getattr(Tensor, name)) else property(get, put)


# The attributes and conversions that work without a shape.
for _name in (
    "dtype device is_meta is_cpu is_cuda layout data grad requires_grad requires_grad_ is_floating_point is_complex "
    "to type cpu cuda float double half bfloat16"
).split():
    if hasattr(Tensor, _name):
        setattr(UninitializedTensorMixin, _name, _delegated(_name))


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[override]
    """A Parameter whose shape is not known yet, as in a lazy module before its first call.

    >>> import weft as torch
    >>> weight = torch.nn.UninitializedParameter()
    >>> weight
    <UninitializedParameter>
    >>> weight.materialize((2, 3)); weight.shape
    torch.Size([2, 3])
    """

    __slots__ = ()
    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        result = Parameter(empty(0, device=device, dtype=dtype), requires_grad)
        result.__class__ = cls
        return result

    def __deepcopy__(self, memo: dict) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, Tensor):  # type: ignore[override]
    """A Buffer whose shape is not known yet, as in a lazy module before its first call."""

    __slots__ = ()
    __torch_function__ = staticmethod(disabled)
    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> Any:
        result = Buffer(
            empty(0, device=device, dtype=dtype, requires_grad=requires_grad), persistent=persistent
        )
        result.__class__ = cls
        return result


def is_lazy(param: Any) -> bool:
    """Return whether `param` is a tensor whose shape is not known yet."""
    return isinstance(param, UninitializedTensorMixin)
