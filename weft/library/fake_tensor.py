"""Tensors without values that say which device they are on, `torch._subclasses.fake_tensor`.

A FakeTensor has a shape, strides, a dtype and a device, and no memory: operators compute its metadata only, as on "meta". Its
device need not exist in this computer. Inside a FakeTensorMode all new tensors are FakeTensors.

A tensor of one element that is made of data, such as the counter of an optimizer's steps, keeps its value (`constant`), and so do results
of operators whose arguments all have one. So `item()` of these works, as in PyTorch.

>>> import weft as torch
>>> with FakeTensorMode():
...     torch.ones(2, 3, device="cuda") @ torch.ones(3, 4, device="cuda")
FakeTensor(..., device='cuda:0', size=(2, 4))
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from ..core import modes as function_modes
from ..core.device import as_device, claimed, device
from ..core.overrides import DisableTorchFunctionSubclass, disabled, handles_dispatch, modes, override_types
from ..core.pytree import tree_leaves, tree_map
from ..core.recording import unrecorded
from ..core.spec import make_spec
from ..core.tensor import Tensor, empty, of_class
from ..core.weak import WeakIdKeyDictionary, WeakTensorKeyDictionary
from ..ops.tensor.printing import tensor_repr
from . import functorch_config
from .keys import Tag
from .python_dispatch import TorchDispatchMode


class UnsupportedFakeTensorException(RuntimeError):
    """An operation that has no form without values."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _OperatorError(RuntimeError):
    """The base of errors of an operator, `func`."""

    def __init__(self, func: Any) -> None:
        super().__init__(func)
        self.func = func


class DynamicOutputShapeException(_OperatorError):
    """The shape of a result depends on values."""


class DataDependentOutputException(_OperatorError):
    """A result that is no tensor depends on values."""


class UnsupportedOperatorException(_OperatorError):
    """An operator that has no form without values."""


class MetadataMismatchError(RuntimeError):
    """Two tensors have different metadata."""


class FakeTensorDeviceMismatchError(RuntimeError):
    """Operands are on different devices."""


_READS_VALUES = frozenset(("_local_scalar_dense", "equal", "is_nonzero", "allclose"))
_SHAPED_BY_VALUES = frozenset(
    "nonzero masked_select unique_dim unique_consecutive unique_dim_consecutive _unique2 bincount repeat_interleave".split()
)


def _claim(where: Any) -> device:
    """The device without memory that stands for `where`."""
    where = as_device(where)
    if where.is_claimed:
        return where
    return claimed(device(where.type, 0) if where.type == "cuda" and where.index is None else where)


class FakeTensor(Tensor):
    """A tensor without values, of a FakeTensorMode."""

    __torch_function__ = disabled

    fake_mode: FakeTensorMode
    constant: Tensor | None = None  # the value, for some tensors of one element
    _is_param: bool

    @staticmethod
    def __new__(cls: Any, fake_mode: FakeTensorMode, elem: Tensor, device: Any, **options: Any) -> Any:  # type: ignore[misc]
        return fake_mode._faked(elem, _claim(device))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """`__new__` has made the tensor."""

    @property
    def fake_device(self) -> device:
        """The device that the tensor says it is on."""
        return self.device

    def _plainly(self, function: Callable, *args: Any) -> Any:
        """The result of a function of FakeTensors that works on plain tensors without memory."""
        plain = _Plain(self.fake_mode, list(_tensors(args)))
        return tree_map(plain.back, function(*tree_map(plain.of, args)))

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return tensor_repr(self, tensor_contents=tensor_contents)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        mode = next(each.fake_mode for each in _tensors((args, kwargs)) if isinstance(each, FakeTensor))
        return mode.__torch_dispatch__(func, types, args, kwargs)


# Libraries import this module without making FakeTensors. Each call would ask the classes of its arguments from the import on, so
# FakeTensor becomes one that is asked with the first mode.
override_types.discard(FakeTensor)


def _tensors(values: Any) -> Iterator[Tensor]:
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, dict):
        yield from _tensors(tuple(values.values()))
    elif isinstance(values, (tuple, list)):
        for each in values:
            yield from _tensors(each)


class FakeTensorConverter:
    """Makes FakeTensors of other tensors, one for each, and remembers it as long as somebody else has both."""

    def __init__(self) -> None:
        self.tensor_memo: Any = (
            WeakTensorKeyDictionary()
        )  # tensor -> a weak reference, because a FakeTensor has its mode

    def from_real_tensor(self, fake_mode: FakeTensorMode, t: Tensor, **options: Any) -> FakeTensor:
        """The FakeTensor with the metadata of `t`, a Parameter of a Parameter."""
        return self._remembered(fake_mode, t, t.device)

    def from_meta_and_device(
        self, fake_mode: FakeTensorMode, t: Tensor, device: Any, **options: Any
    ) -> FakeTensor:
        """The FakeTensor of a tensor on "meta", which says that it is on `device`.

        Raises: AssertionError for a tensor on another device.
        """
        if t.device.type != "meta":
            raise AssertionError(f"tensor's device must be `meta`, got {t.device.type} instead")
        return self._remembered(fake_mode, t, device)

    def _remembered(self, fake_mode: FakeTensorMode, tensor: Tensor, where: Any) -> FakeTensor:
        known = self.tensor_memo.get(tensor)
        found = None if known is None else known()
        if found is None:
            found = fake_mode._faked(tensor, _claim(where))
            found._is_param = getattr(tensor, "_is_param", False) or type(tensor).__name__ == "Parameter"
            if tensor.requires_grad:
                with fake_mode._off():
                    Tensor.requires_grad_(found)  # type: ignore[attr-defined]
            if tensor.grad is not None and tensor.is_leaf:
                found.grad = fake_mode.from_tensor(tensor.grad)
            self.tensor_memo[tensor] = weakref.ref(found)
        return found


class FakeTensorMode(TorchDispatchMode):
    """A context in which operators make FakeTensors of FakeTensors, and new tensors are FakeTensors.

    allow_non_fake_inputs: take other tensors as FakeTensors of their metadata instead of raising an error.
    """

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env: Any = None,
        static_shapes: bool | None = None,
        export: bool = False,
    ) -> None:
        super().__init__()
        override_types.add(FakeTensor)
        self.allow_fallback_kernels, self.allow_non_fake_inputs = (
            allow_fallback_kernels,
            allow_non_fake_inputs,
        )
        self.shape_env, self.static_shapes, self.export = shape_env, static_shapes, export
        self.allow_meta = functorch_config.fake_tensor_allow_meta
        self.fake_tensor_converter = FakeTensorConverter()
        self._with_values: Any = WeakIdKeyDictionary()  # storage -> the FakeTensors that have a value

    def from_tensor(self, tensor: Tensor, **options: Any) -> FakeTensor:
        """A FakeTensor with the metadata of `tensor`, the same one for each call.

        Raises: AssertionError for a FakeTensor of another mode.
        """
        if isinstance(tensor, FakeTensor):
            if tensor.fake_mode is not self:
                raise AssertionError("the FakeTensor belongs to another FakeTensorMode")
            return tensor
        return self.fake_tensor_converter.from_real_tensor(self, tensor)

    @contextlib.contextmanager
    def _off(self) -> Iterator[None]:
        outer, modes.dispatch = modes.dispatch, ()
        try:
            yield
        finally:
            modes.dispatch = outer

    def _faked(self, tensor: Tensor, where: device) -> FakeTensor:
        spec = make_spec(tensor.spec.shape, tensor.spec.stride, tensor.spec.dtype, where)
        return self._as_fake(empty(spec))

    def _as_fake(self, plain: Tensor) -> FakeTensor:
        if not self.allow_meta and plain.spec.device.type == "meta":
            raise AssertionError(
                "torch._functorch.config.fake_tensor_allow_meta is False, and a tensor is on meta"
            )
        result: FakeTensor = of_class(FakeTensor, plain)
        result._autograd = None
        result.fake_mode = self
        return result

    def _call_op(self, op: Any, args: tuple, static: dict[str, Any]) -> Any:
        def fake(value: Any) -> Any:
            if type(value) is not Tensor or value.spec.device.backend.has_memory:
                return value
            result: FakeTensor = of_class(FakeTensor, value)
            result.fake_mode = self
            return result

        return tree_map(fake, op.run(*args, **static))

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = func._opname
        if name in ("lift_fresh", "lift_fresh_copy", "detach") and not isinstance(args[0], FakeTensor):
            found = self._faked(args[0], _claim(args[0].device))
            self._keep(found, _value(args[0]))
            return found
        given = list(_tensors((args, kwargs)))
        if any(handles_dispatch(type(each)) and not isinstance(each, FakeTensor) for each in given):
            return NotImplemented  # the class of a wrapper calls operators of what it wraps
        is_constant = all(isinstance(each, FakeTensor) and each.constant is not None for each in given)
        values: Any = None
        if given and is_constant and Tag.nondeterministic_seeded not in func.tags:
            values = self._of_constants(func, args, kwargs)
            if not any(isinstance(each, Tensor) for each in tree_leaves(values)):
                return values
        elif func._schema.is_mutable:
            for written in _tensors(args[0]):
                self._forget(written)
        if name in _READS_VALUES:
            raise DataDependentOutputException(func)
        if name in _SHAPED_BY_VALUES or name == "index" and _has_mask(args[1]):
            raise DynamicOutputShapeException(func)
        # Tensors without memory are the results of steps that are no operators.
        strangers = [
            each for each in given if type(each) is not FakeTensor and each.spec.device.backend.has_memory
        ]
        if strangers and not self.allow_non_fake_inputs:
            raise AssertionError(
                f"Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with 'allow_non_fake_inputs'. "
                f"Found in {func}({', '.join(type(each).__name__ for each in given)})"
            )
        if kwargs.get("device") is not None:
            kwargs["device"] = _claim(kwargs["device"])
        elif not given and any(each.name == "device" for each in func._schema.arguments):
            kwargs["device"] = _claim(None)
        plain = _Plain(self, given)
        with unrecorded(), self._off():
            result = func(*tree_map(plain.of, args), **tree_map(plain.of, kwargs))
        found = tree_map(plain.back, result)
        if values is not None:
            for fake, value in zip(tree_leaves(found), tree_leaves(values), strict=True):
                if isinstance(fake, FakeTensor):
                    self._keep(fake, value if value.numel() == 1 else None)
        return found

    # -- Constants -------------------------------------------------------------------------------------------------------

    def _of_constants(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The results of an operator whose arguments have values. Views of these share their memory."""
        given, named = tree_map(lambda x: x.constant if isinstance(x, FakeTensor) else x, (args, kwargs))
        named.pop("device", None)
        with unrecorded(), self._off():
            return func(*given, **named)

    def _keep(self, fake: FakeTensor, value: Tensor | None) -> None:
        """Note the value of a FakeTensor, so that a write to a tensor that shares its memory drops the value."""
        fake.constant = value
        if value is not None:
            self._with_values.setdefault(fake._storage, []).append(weakref.ref(fake))

    def _forget(self, written: Tensor) -> None:
        """Drop the values of the FakeTensors that share memory with one that is written."""
        for each in self._with_values.pop(written._storage, ()):
            if (fake := each()) is not None:
                fake.constant = None


def _value(tensor: Tensor) -> Tensor | None:
    """A copy of a tensor of one element; None of a larger one, whose values are not kept."""
    has_value = type(tensor) is Tensor and tensor.spec.device.backend.has_memory and tensor.numel() == 1
    return tensor.detach().clone() if has_value else None


def _has_mask(indices: Any) -> bool:
    return any(
        isinstance(each, Tensor) and not each.dtype.is_signed and each.dtype.itemsize == 1 for each in indices
    )


class _Plain:
    """The arguments of one call as plain tensors without memory, and its results as FakeTensors."""

    def __init__(self, mode: FakeTensorMode, given: list[Tensor]):
        self.mode = mode
        self.fakes: dict[int, FakeTensor] = {}
        self.plains: dict[int, Tensor] = {}
        # Operators take numbers on the CPU beside tensors of other devices.
        others = [each.device for each in given if each.device.type != "cpu"]
        self.elsewhere = _claim(others[0]) if others else None
        devices = {_claim(each.device) for each in given if each.shape}
        if len(devices) > 1:
            raise FakeTensorDeviceMismatchError(
                f"Unhandled FakeTensor Device Propagation for the call, found devices {', '.join(map(str, devices))}"
            )
        for each in given:
            self._add(each)

    def _add(self, tensor: Tensor) -> None:
        if id(tensor) in self.plains:
            return
        fake = self.mode.from_tensor(tensor) if not isinstance(tensor, FakeTensor) else tensor
        plain = of_class(Tensor, fake)
        plain._autograd = None
        if self.elsewhere is not None and not fake.shape and fake.device.type == "cpu":
            plain = empty(make_spec((), (), fake.dtype, self.elsewhere))
        self.plains[id(tensor)] = plain
        self.fakes[id(plain)] = fake

    def of(self, value: Any) -> Any:
        """A plain tensor in place of a FakeTensor."""
        return self.plains[id(value)] if isinstance(value, Tensor) else value

    def back(self, value: Any) -> Any:
        """A FakeTensor in place of a plain tensor: that of an argument which was written."""
        if not isinstance(value, Tensor):
            return value
        fake = self.fakes.get(id(value))
        if fake is not None:
            fake.spec = value.spec
            return fake
        result = self.mode._as_fake(value)
        if value._base is not None:
            result._base = self.fakes.get(id(value._base), value._base)
        return result


class FakeCopyMode(function_modes.TorchFunctionMode):
    """A context in which `copy.deepcopy` gives FakeTensors of `fake_mode` in place of tensors."""

    def __init__(self, fake_mode: FakeTensorMode) -> None:
        super().__init__()
        self.fake_mode = fake_mode

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        if func is Tensor.clone:  # type: ignore[attr-defined]
            return func(self.fake_mode.from_tensor(args[0]), **kwargs or {})
        if func is Tensor.__deepcopy__:  # type: ignore[attr-defined]
            tensor, memo = args
            if id(tensor) not in memo:
                memo[id(tensor)] = self.fake_mode.from_tensor(tensor)
            return memo[id(tensor)]
        with DisableTorchFunctionSubclass():
            return func(*args, **kwargs or {})


def is_fake(x: object) -> bool:
    """Whether it is a FakeTensor."""
    return isinstance(x, FakeTensor)


def maybe_get_fake_mode(t: object) -> FakeTensorMode | None:
    """The mode of a FakeTensor, None for other objects."""
    return t.fake_mode if isinstance(t, FakeTensor) else None


@contextlib.contextmanager
def unset_fake_temporarily() -> Iterator[FakeTensorMode | None]:
    """A context without the innermost FakeTensorMode."""
    outer = modes.dispatch
    found = next((each for each in reversed(outer) if isinstance(each, FakeTensorMode)), None)
    modes.dispatch = tuple(each for each in outer if each is not found)
    try:
        yield found
    finally:
        modes.dispatch = outer
