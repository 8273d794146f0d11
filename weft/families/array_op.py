"""Ops that compute on arrays, with functions of NumPy and SciPy. Tensors become arrays of their device without a copy, and back.

Such an op runs inside the device of its tensors: there `array` gives arrays on the device's memory, and new tensors are
allocated there. Code that needs values on the host, such as a check of indices, calls `host_array`.

Arrays need memory. Therefore each op also has a rule that computes the specs of its results from the specs of its tensors
(`spec_rule`). On a device without memory, such as "meta", the rule runs in place of the function.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from ..core.device import CPU, device
from ..core.dispatch import PLAIN, watched, watchers
from ..core.dtype import (
    FLOAT8,
    DType,
    bfloat16,
    complex32,
    complex64,
    compute_type,
    float16,
    from_numpy_dtype,
    numpy_dtype,
)
from ..core.op import Op
from ..core.out_of_memory import from_memory_error
from ..core.plans import PlanCache
from ..core.recording import needs_recording, record, record_inplace
from ..core.spec import Spec, contiguous_spec, make_spec
from ..core.templates import add_atoms
from ..core.tensor import Tensor, as_new, is_whole, make
from ..engine.kernel import Launch
from .map import COPY, FILL, Map, Plan, common_device, keyed

add_atoms(np.dtype)

# The device inside of which an op on arrays runs.
_here: ContextVar[device] = ContextVar("device of ops on arrays", default=CPU)


def here() -> device:
    """The device inside of which the caller computes on arrays; the CPU outside of ops on arrays."""
    return _here.get()


def inside(name: str, tensors: Sequence[Tensor]) -> contextlib.AbstractContextManager:
    """The context in which op `name` computes on arrays of these tensors.

    Raises: NotImplementedError if their device has no memory, RuntimeError if they are on several devices.
    """
    for tensor in tensors:
        if tensor.spec.device is not CPU:
            break
    else:
        return _ON_CPU
    return _inside(common_device(name, [tensor.spec for tensor in tensors]), name)


_ON_CPU = contextlib.nullcontext()


@contextlib.contextmanager
def _inside(where: device, name: str) -> Iterator[None]:
    if not where.backend.has_memory:
        raise needs_values(name, where)
    before = _here.set(where)
    try:
        with where.backend.inside():
            yield
    finally:
        _here.reset(before)


def needs_values(name: str, where: device) -> NotImplementedError:
    """The error of an operation whose result depends on values, for tensors on a device without memory."""
    return NotImplementedError(
        f"{name} on device {where}: the result depends on values, and a tensor on device {where} has none; "
        "move the tensors to a device with memory first"
    )


def check_values(name: str, tensor: Tensor) -> None:
    """Raises: NotImplementedError if the tensor is on a device without memory; `name` needs its values."""
    if not tensor.spec.device.backend.has_memory:
        raise needs_values(name, tensor.spec.device)


Specs = Spec | tuple[Spec, ...]


class SpecRule:
    """The rule of an op for tensors without values: the specs of the results.

    An op without a rule raises NotImplementedError for such tensors, because the sizes of its results depend on values.
    """

    name: str
    _specs: Callable[..., Specs] | None = None

    def spec_rule(self, rule: Callable[..., Specs]) -> Callable[..., Specs]:
        """Decorator: `rule` gets the arguments of the op, with specs in place of tensors; the device of its specs does not count."""
        self._specs = rule
        return rule

    def results_without_values(self, where: device, args: Sequence[Any], options: dict[str, Any]) -> Any:
        """Results on `where`, which has no memory."""
        if self._specs is None:
            raise needs_values(self.name, where)
        specs = self._specs(*map(_spec_of, args), **{name: _spec_of(each) for name, each in options.items()})
        if isinstance(specs, Spec):
            return _empty(specs.like(device=where))
        return tuple([_empty(spec.like(device=where)) for spec in specs])


def _spec_of(argument: Any) -> Any:
    if isinstance(argument, Tensor):
        return argument.spec
    return tuple(map(_spec_of, argument)) if isinstance(argument, (tuple, list)) else argument


def device_without_memory(name: str, tensors: Sequence[Tensor]) -> device | None:
    """The device of the tensors if it has no memory, else None."""
    for tensor in tensors:
        if tensor.spec.device is not CPU:
            where = common_device(name, [each.spec for each in tensors])
            return None if where.backend.has_memory else where
    return None


def runs_inside(function: Callable) -> Callable:
    """Decorator: `function` computes on arrays, inside the device of the tensors among its arguments."""
    name = function.__name__.strip("_")

    @functools.wraps(function)
    def complete(*args: Any) -> Any:
        with inside(name, [argument for argument in args if isinstance(argument, Tensor)]):
            return function(*args)

    return complete


class ArrayOp(SpecRule, Op):
    """An op whose `function` computes on arrays, inside the device of its tensors. It is one step for autograd.

    The arguments of the function, tensors or not, are the inputs of the step, in the order of the signature.
    `by_kernels` computes the same of the arguments, on devices that prefer kernels.
    """

    by_kernels: Callable | None = None

    def __init__(
        self,
        function: Callable,
        derivative: Any = None,
        *,
        name: str = "",
        node_name: str | Callable | None = None,
    ):
        super().__init__(name or function.__name__.strip("_"), derivative, node_name)
        functools.update_wrapper(self, function)
        self.function = function
        self._signature = inspect.signature(function)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        tensors = []
        for argument in (*args, *kwargs.values()):
            if isinstance(argument, Tensor):
                tensors.append(argument)
            elif isinstance(argument, (tuple, list)):
                tensors += [item for item in argument if isinstance(item, Tensor)]
        if (where := device_without_memory(self.name, tensors)) is not None:
            result = self.results_without_values(where, args, kwargs)
        elif self.by_kernels is not None and tensors[0].spec.device.backend.prefers_kernels:
            result = self.by_kernels(*args, **kwargs)
        else:
            result = self._on_arrays(tensors, args, kwargs)
        if needs_recording(tensors):
            arguments = self._signature.bind(*args, **kwargs)
            arguments.apply_defaults()
            return record(self, result, (*arguments.args, *arguments.kwargs.values()))
        return result

    def _on_arrays(self, tensors: Sequence[Tensor], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        try:
            with inside(self.name, tensors):
                return self.function(*args, **kwargs)
        except MemoryError as error:
            raise from_memory_error(error) from None


def array_op(function: Callable | None = None, **options: Any) -> Any:
    """Decorator, with or without options: the ArrayOp of a function."""
    return functools.partial(ArrayOp, **options) if function is None else ArrayOp(function, **options)


def array(tensor: Tensor) -> np.ndarray:
    """The elements as an array on the same memory, which the array keeps alive. It is for reading.

    Raises: RuntimeError outside of an op on arrays, if the host cannot reach the memory.

    bfloat16 and float8 come as ml_dtypes arrays; a pending conjugation and complex32 are carried out, on a copy.
    """
    spec = tensor.spec
    if spec.dtype is complex32 or spec.conj or spec.neg:
        return array(resolved(tensor))
    return memory_array(tensor)


def host_array(tensor: Tensor) -> np.ndarray:
    """The elements as an array on the host: on the same memory if the tensor is there, else a copy."""
    spec = tensor.spec
    return array(
        tensor if spec.device is CPU else to_device(make(tensor._storage, tensor._byte_offset, spec), CPU)
    )


def to_device(tensor: Tensor, where: device) -> Tensor:
    """A copy of a tensor, outside of autograd, on another device; strides stay if they are dense."""
    return _copied(tensor, where, is_constant=False)


def _copied(tensor: Tensor, where: device, is_constant: bool) -> Tensor:
    spec = tensor.spec
    if not spec.is_dense or spec.conj or spec.neg:
        tensor = COPY.write(_empty(contiguous_spec(spec.shape, spec.dtype, spec.device)), tensor)
    result = _empty(tensor.spec.like(device=where))
    if where.backend.has_memory:
        source, nbytes = tensor._storage.ptr + tensor._byte_offset, tensor.spec.nbytes
        if where.backend.copy_from(spec.device.backend, result._storage.ptr, source, nbytes):
            return result
        content = spec.device.backend.read(source, nbytes)
        if is_constant:
            where.backend.write_constant(result._storage, content)
        else:
            where.backend.write(result._storage.ptr, content)
    return result


def send(tensor: Tensor, where: device) -> Tensor | None:
    """A copy on another device of a tensor in pinned memory, for which the host does not wait. None if it has to wait, or if autograd records it."""
    spec = tensor.spec
    if spec.device is not CPU or where is CPU or watchers or not is_whole(tensor):
        return None
    if not tensor._storage.is_pinned() or not spec.is_dense or spec.conj or spec.neg:
        return None
    if needs_recording((tensor,)):
        return None
    result = _empty(spec.like(device=where))
    address = tensor._storage.ptr + tensor._byte_offset
    sent = where.backend.send(result._storage.ptr, tensor._storage.owner, address, spec.nbytes)
    return result if sent else None


def memory_array(tensor: Tensor) -> np.ndarray:
    """As `array`, but with the bytes as they lie in memory: pending conjugations are not carried out, complex32 is pairs."""
    spec = tensor.spec
    if spec.numel == 0:
        return np.empty(spec.shape, numpy_dtype(spec.dtype))
    as_array, shape, dtype, strides = _array_plans[(spec,)]
    return as_array(tensor._storage, shape, dtype, tensor._byte_offset, strides)


# NumPy reads a plain tuple 0.35 us faster than a subclass of it.
_array_plans = PlanCache(
    lambda spec: (
        spec.device.backend.as_array,
        tuple(spec.shape),
        numpy_dtype(spec.dtype),
        spec.byte_stride,
    )
)


def resolved(tensor: Tensor) -> Tensor:
    """A plain copy: no pending conjugation or negation; complex32 as complex64."""
    spec = tensor.spec
    dtype = complex64 if spec.dtype is complex32 else spec.dtype
    bare = make(tensor._storage, tensor._byte_offset, spec)  # autograd does not record the copy
    return COPY.write(
        _empty(make_spec(spec.shape, contiguous_spec(spec.shape, dtype).stride, dtype, spec.device)), bare
    )


def wide_array(tensor: Tensor) -> np.ndarray:
    """Like `array`, but the narrow floats, which libraries do not compute with, come as float32."""
    values = array(tensor)
    if tensor.spec.dtype in FLOAT8 or tensor.spec.dtype in (float16, bfloat16):
        return values.astype(np.float32)
    return values


def _empty(spec: Spec) -> Tensor:
    """`core.tensor.empty`, without `new_hooks`: the result of an op is not a tensor that a mapped function makes itself."""
    return make(spec.device.backend.allocate(spec.nbytes), 0, spec)


def tensor_of(values: Any, dtype: DType | None = None) -> Tensor:
    """A new contiguous tensor that takes over `values`: an array that no other object refers to, or a number.

    `dtype` converts with one rounding, as weft does: pass the tensor's own dtype after computing wider.
    """
    values = np.asarray(values)
    if not values.size:  # NumPy has no contiguous strides for it
        return _empty(contiguous_spec(values.shape, dtype or from_numpy_dtype(values.dtype), _here.get()))
    flags = values.flags
    if not flags.c_contiguous or not flags.writeable or not flags.owndata:
        values = np.array(values, order="C")
    elif 1 in values.shape:  # NumPy leaves any stride to a dim of size 1
        values = values.ravel().reshape(values.shape)
    result = from_array(values)
    if dtype is None or result.spec.dtype is dtype:
        return result
    return as_new(COPY.write(_empty(contiguous_spec(result.spec.shape, dtype, result.spec.device)), result))


def from_array(values: np.ndarray) -> Tensor:
    """A tensor on the memory of an array, with its strides."""
    spec, nbytes, adopt = _of_arrays[values.shape, values.strides, values.dtype, _here.get()]
    return make(adopt(values, nbytes), 0, spec)


def on_device(values: Any, where: device, dtype: DType | None = None) -> Tensor:
    """A new tensor on a device with values of the host, as `tensor_of` makes it."""
    here = _here.set(CPU)
    try:
        result = tensor_of(values, dtype)
    finally:
        _here.reset(here)
    return result if where is CPU else _copied(result, where, is_constant=True)


def _spec_of_array(
    sizes: tuple[int, ...], steps: tuple[int, ...], numpy: np.dtype, where: device
) -> tuple[Spec, int, Callable]:
    """The spec of an array's tensor, the number of bytes that it reaches over, and the function that makes a Storage of it."""
    dtype = from_numpy_dtype(numpy)
    spec = make_spec(sizes, tuple(step // dtype.itemsize for step in steps), dtype, where)
    return spec, spec.span * dtype.itemsize, where.backend.adopt


_of_arrays = PlanCache(_spec_of_array, with_sizes=True)


def tensor_in(values: Any, spec: Spec) -> Tensor:
    """`values` as a new tensor with a dense spec, whose dtype `values` are converted to."""
    where = _here.get()
    result = _empty(spec if where is CPU else spec.like(device=where))
    if spec.numel:
        array(result)[...] = values
    return result


class ArrayMap(Map):
    """An elementwise op whose `element` computes on arrays (with SciPy, say) instead of building a kernel.

    It gets an array or number per operand: the narrow floats as float32, else in the dtype of the promotion rule.
    `by_kernels` computes the same of tensors, on devices that prefer kernels; None where it cannot.
    """

    is_kernel = False

    def __init__(self, *parts: Any, by_kernels: Callable[..., Tensor | None] | None = None, **options: Any):
        super().__init__(*parts, **options)
        self.by_kernels = by_kernels

    def _launch(self, result: Spec, operands, types) -> Plan:
        return Plan(result, Launch(None, 0, 0, None), None, types.operands)

    def run(self, *operands: Any) -> Tensor:
        values, key = keyed(self.name, operands)
        plan = self.plans[key]
        result = self._compute(_empty(plan.spec), values, plan.operand_dtype)
        return self.recorded(result, values)

    def write(self, target: Tensor, *operands: Any) -> Tensor:
        if watchers and (answer := watched(self, "write", (target, *operands), {})) is not PLAIN:
            return answer
        values, key = keyed(self.name, operands)
        if needs_recording((target, *values)):
            return record_inplace(self, target, values, (), self.write, target, *values)
        plan = self.write_plans[(target.spec, *key)]
        return self._compute(target, values, plan.operand_dtype)

    def _compute(self, target: Tensor, operands, dtype: DType) -> Tensor:
        if not target.spec.device.backend.has_memory or target.spec.numel == 0:
            return target
        if self.by_kernels is not None and target.spec.device.backend.prefers_kernels:
            found = self.by_kernels(*[_as_tensor(each, compute_type(dtype), target) for each in operands])
            if found is not None:
                return COPY.write(target, found.to(self.promotion(dtype).result).expand(target.spec.shape))
        tensors = [operand for operand in operands if isinstance(operand, Tensor)]
        with inside(self.name, [target, *tensors]):
            return self._compute_inside(target, operands, dtype)

    def _compute_inside(self, target: Tensor, operands, dtype: DType) -> Tensor:
        wide = compute_type(dtype).numpy
        values = [
            wide_array(operand).astype(wide, copy=False)
            if isinstance(operand, Tensor)
            else wide.type(operand)
            for operand in operands
        ]
        result = self.promotion(dtype).result
        with np.errstate(
            all="ignore"
        ):  # rounded to the dtype of the result first, as if the op had run alone
            return COPY.write(target, tensor_of(self.element(*values), result))


def _as_tensor(operand: Any, dtype: DType, target: Tensor) -> Tensor:
    """An operand, or a number, as a tensor of a dtype on the device of the target, outside of autograd."""
    where = target.spec.device
    if not isinstance(operand, Tensor):
        return FILL.write(_empty(contiguous_spec((), dtype, where)), operand)
    bare = make(operand._storage, operand._byte_offset, operand.spec)
    if operand.spec.dtype is dtype and operand.spec.device is where:
        return bare
    return COPY.write(_empty(contiguous_spec(operand.spec.shape, dtype, where)), bare)
