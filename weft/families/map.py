"""Elementwise operations: one scalar expression per op, any number of operands, broadcasting, promotion.

A row states the name, the promotion rule and one element; everything else (shape rule, kernels, in-place and
`out=` forms, scalars, 0-dim tensors, devices) is here, once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.device import CPU, device
from ..core.dtype import DType, bool_, compute_type, get_default_dtype
from ..core.iteration import broadcast_shapes, broadcast_stride, loop_dims, result_spec
from ..core.op import (
    FUNCTIONS,
    PlanCache,
    check_inplace,
    check_out,
    needs_recording,
    record,
    resize_out,
)
from ..core.promotion import common_dtype
from ..core.spec import Spec
from ..core.tensor import Tensor, make
from ..engine.complexes import Complex
from ..engine.convert import convert
from ..engine.expr import const, load, param
from ..engine.loops import Result

NUMBERS = (bool, int, float, complex)
_new = object.__new__


class Types(NamedTuple):
    """What a promotion rule decides: the dtype operands are converted to, and that of the result."""

    operands: DType
    result: DType


# ---- Promotion rules: common dtype -> Types ----------------------------------------------------------------------


def keep(common: DType) -> Types:
    """Compute and return in the common dtype."""
    return Types(common, common)


def to_float(common: DType) -> Types:
    """Integers and bools count as the default float."""
    dtype = get_default_dtype() if common.category < 2 else common
    return Types(dtype, dtype)


def to_bool(common: DType) -> Types:
    """Compute in the common dtype, answer with bools."""
    return Types(common, bool_)


def to_real(common: DType) -> Types:
    """Complex operands have real results."""
    return Types(common, common.to_real())


def to_real_float(common: DType) -> Types:
    operands = to_float(common).operands
    return Types(operands, operands.to_real())


class Plan:
    """What an op decided for one combination of specs: the result's spec and the launch."""

    __slots__ = ("spec", "entry", "meta", "count", "allocate", "operand_dtype", "keep")

    def __init__(self, spec: Spec, launch, allocate, operand_dtype: DType):
        self.spec = spec
        self.entry, self.meta, self.count, self.keep = launch
        self.allocate = allocate
        self.operand_dtype = operand_dtype


class Map:
    """An elementwise op.

    `element` gets one Expr (or Complex) per operand, in the operand dtype's compute type, and returns the
    result's. `check(dtype)` raises for operand dtypes the op rejects.
    """

    def __init__(
        self,
        name: str,
        promotion: Callable[[DType], Types],
        element: Callable,
        *,
        check: Callable[[str, DType], None] | None = None,
        derivatives: Any = None,
    ):
        self.name = name
        self.promotion = promotion
        self.element = element
        self.check = check
        self.derivatives = derivatives
        self.plans = PlanCache(self._plan)
        self.write_plans = PlanCache(self._plan_write)
        self._results: dict[tuple, tuple[Result, ...]] = {}

    # -- planning --------------------------------------------------------------------------------------------------

    def _plan(self, *operands: Any) -> Plan:
        """A plan with a new result; an operand is a Spec or the type of a number."""
        types = self._types(operands)
        specs = [operand for operand in operands if type(operand) is Spec]
        where = common_device(self.name, specs)
        sizes = broadcast_shapes(self.name, *(each.shape for each in specs))
        shaped = [each for each in specs if each.shape or not sizes]
        result = result_spec(shaped or specs, sizes, types.result, where)
        return self._launch(result, operands, types)

    def _plan_write(self, target: Spec, *operands: Any) -> Plan:
        """A plan that writes into an existing tensor: in place or `out=`."""
        types = self._types(operands)
        specs = [operand for operand in operands if type(operand) is Spec]
        common_device(self.name, [target, *specs])
        return self._launch(target, operands, types)

    def _types(self, operands: Sequence[Any]) -> Types:
        types = self.promotion(common_dtype(operands))
        if self.check is not None:
            self.check(self.name, types.operands)
        return types

    def _launch(self, result: Spec, operands: Sequence[Any], types: Types) -> Plan:
        specs = [operand for operand in operands if type(operand) is Spec]
        expressions = self._expressions(operands, result, types)
        rows = [result.stride, *(broadcast_stride(each, result.shape) for each in specs)]
        itemsizes = [result.dtype.itemsize, *(each.dtype.itemsize for each in specs)]
        rows = tuple(tuple(s * size for s in row) for row, size in zip(rows, itemsizes, strict=True))
        sizes, strides = loop_dims(result.shape, rows)
        if 0 in sizes:
            sizes, strides = (0,), tuple((0,) for _ in strides)
        backend = result.device.backend
        launch = backend.prepare(expressions, [each.dtype for each in specs], self._params(operands, types), sizes, strides)
        return Plan(result, launch, backend.allocator(result.nbytes), types.operands)

    def _expressions(self, operands, result: Spec, types: Types) -> tuple[Result, ...]:
        """The element as stored: loads, conversions, the row's expression, the conversion of the result."""
        key = (
            types,
            result.dtype,
            result.conj,
            result.neg,
            *((o.dtype, o.conj, o.neg) if type(o) is Spec else None for o in operands),
        )
        found = self._results.get(key)
        if found is None:
            found = self._results[key] = (self._element(operands, result, types),)
        return found

    def _element(self, operands, result: Spec, types: Types) -> Result:
        compute = compute_type(types.operands)
        loads = params = 0
        values = []
        for operand in operands:
            if type(operand) is Spec:
                values.append(load_as(loads, operand, compute))
                loads += 1
            else:
                values.append(param_as(params, compute))
                params += 2 if compute.is_complex else 1
        value = self.element(*values)
        value = as_type(value, compute_type(types.result))
        return store_as(value, result)

    @staticmethod
    def _params(operands, types: Types) -> list[DType]:
        compute = compute_type(types.operands)
        count = sum(type(operand) is not Spec for operand in operands)
        return [compute.to_real()] * (2 * count) if compute.is_complex else [compute] * count

    # -- running ---------------------------------------------------------------------------------------------------

    def __call__(self, *operands: Any) -> Tensor:
        """A new tensor; operands are tensors and numbers."""
        operands = normalise(self.name, operands)
        key = tuple(o.spec if isinstance(o, Tensor) else type(o) for o in operands)
        plan = self.plans[key]
        storage = plan.allocate()
        plan.entry(storage.ptr, *_arguments(operands, plan), plan.meta, plan.count)
        result = make(storage, 0, plan.spec)
        if needs_recording(operands):
            return record(self, result, operands)
        return result

    def write(self, target: Tensor, *operands: Any) -> Tensor:
        """Compute into `target`, whose shape must be that of the result."""
        operands = normalise(self.name, operands)
        if needs_recording((target, *operands)):
            record(self, target, operands)
        operands = [_unaliased(o, target) for o in operands]
        key = (target.spec, *(o.spec if isinstance(o, Tensor) else type(o) for o in operands))
        plan = self.write_plans[key]
        plan.entry(target._storage.ptr + target._start, *_arguments(operands, plan), plan.meta, plan.count)
        target._storage.version += 1
        return target

    def inplace(self, target: Tensor, *others: Any) -> Tensor:
        """target = op(target, *others), in the memory of target."""
        check_inplace(target, self.name)
        others = normalise(self.name, others)
        specs = [target.spec, *(o.spec if isinstance(o, Tensor) else type(o) for o in others)]
        sizes = broadcast_shapes(self.name, *(s.shape for s in specs if type(s) is Spec))
        if sizes != target.spec.shape:
            raise RuntimeError(
                f"output with shape {list(target.spec.shape)} doesn't match the broadcast shape {list(sizes)}"
            )
        check_out(target, self._types(specs).result, target.spec.device, self.name)
        return self.write(target, target, *others)

    def into(self, out: Tensor, *operands: Any) -> Tensor:
        """The `out=` form: `out` is resized to fit and converted to."""
        operands = normalise(self.name, operands)
        specs = [o.spec if isinstance(o, Tensor) else type(o) for o in operands]
        tensors = [s for s in specs if type(s) is Spec]
        sizes = broadcast_shapes(self.name, *(s.shape for s in tensors))
        check_out(out, self._types(specs).result, common_device(self.name, tensors), self.name)
        if out.spec.shape != sizes:
            resize_out(out, sizes, self.name)
        check_inplace(out, self.name)
        return self.write(out, *operands)


def _arguments(operands: Sequence[Any], plan: Plan) -> list:
    """Addresses and scalars, in the order of the kernel's arguments."""
    arguments = [o._storage.ptr + o._start for o in operands if isinstance(o, Tensor)]
    for operand in operands:
        if not isinstance(operand, Tensor):
            arguments.extend(scalar_arguments(operand, plan.operand_dtype))
    return arguments


def scalar_arguments(value: Any, dtype: DType) -> tuple:
    """A Python number as the kernel takes it: two floats for complex, float for floats, else an int."""
    if dtype.is_complex:
        return value.real + 0.0, value.imag + 0.0
    if dtype.is_floating_point:
        return (_float(value),)
    return (int(value),)


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # a huge int
        return float("inf") if value > 0 else float("-inf")


def _unaliased(operand: Any, target: Tensor) -> Any:
    """The operand, copied if writing `target` would change elements that are read later."""
    if not isinstance(operand, Tensor) or operand._storage is not target._storage:
        return operand
    if operand._start == target._start and operand.spec.stride == target.spec.stride:
        return operand
    if operand._storage.nbytes_ == 0:
        return operand
    return COPY(operand)


def normalise(name: str, operands: Sequence[Any]) -> list:
    """Tensors and Python numbers; NumPy numbers become Python's.

    Raises: TypeError for anything else.
    """
    result = []
    for position, operand in enumerate(operands):
        if not isinstance(operand, Tensor) and type(operand) not in NUMBERS:
            operand = _as_number(name, position, operand)
        result.append(operand)
    return result


def _as_number(name: str, position: int, value: Any) -> Any:
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return value.item()
    for kind in NUMBERS:
        if isinstance(value, kind):
            return kind(value)
    argument = ("input", "other")[position] if position < 2 else f"number {position + 1}"
    raise TypeError(
        f"{name}(): argument '{argument}' (position {position + 1}) must be Tensor, not {type(value).__name__}"
    )


def common_device(name: str, specs: Sequence[Spec]) -> device:
    """The device of all operands; a 0-dim CPU tensor may join those of any device.

    Raises: RuntimeError naming the devices if they differ.
    """
    found = None
    for each in specs:
        if each.device is found or found is None:
            found = each.device
        elif found is CPU and all(not s.shape for s in specs if s.device is CPU):
            found = each.device
        elif not (each.device is CPU and not each.shape):
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {found} and "
                f"{each.device}! ({name}: move one of them with .to(device))"
            )
    return found or CPU


# ---- Elements on their way in and out ----------------------------------------------------------------------------


def load_as(index: int, operand: Spec, compute: DType) -> Any:
    """Operand `index` of the kernel in the compute type, pending conjugation and negation carried out."""
    if operand.dtype.is_complex:
        part = operand.dtype.to_real()
        real, imag = load((index, 0), part), load((index, 1), part)  # type: ignore[arg-type]
        wide = compute_type(operand.dtype).to_real()
        value: Any = Complex(convert(real, wide), convert(imag, wide))
        if operand.conj:
            value = Complex(value.real, -value.imag)
    else:
        value = load(index, operand.dtype)
    value = as_type(value, compute)
    return -value if operand.neg else value


def param_as(index: int, compute: DType) -> Any:
    if compute.is_complex:
        return Complex(param(index, compute.to_real()), param(index + 1, compute.to_real()))
    return param(index, compute)


def as_type(value: Any, dtype: DType) -> Any:
    """Convert an Expr or Complex; complex to real drops the imaginary part, complex to bool asks both."""
    if isinstance(value, Complex):
        if dtype.is_complex:
            part = dtype.to_real()
            return Complex(convert(value.real, part), convert(value.imag, part))
        if dtype is bool_:
            return convert(value.real, bool_) | convert(value.imag, bool_)
        return convert(value.real, dtype)
    if dtype.is_complex:
        real = convert(value, dtype.to_real())
        return Complex(real, const(0.0, real.dtype))
    return convert(value, dtype)


def store_as(value: Any, result: Spec) -> Result:
    """The parts that memory gets: in the result's own dtype, un-conjugated and un-negated if it is a lazy view."""
    dtype = result.dtype
    if result.neg:
        value = -value
    value = as_type(value, compute_type(dtype))
    if not dtype.is_complex:
        return Result((convert(value, dtype),))
    part = dtype.to_real()
    imag = -value.imag if result.conj else value.imag
    return Result((convert(value.real, part), convert(imag, part)))


# The identity: copies and converts.
COPY = Map("clone", keep, lambda a: a)


class _Fill(Map):
    """Writes one number everywhere; it is converted to the target's dtype directly."""

    def _plan_write(self, target: Spec, *operands: Any) -> Plan:
        return self._launch(target, operands, Types(target.dtype, target.dtype))


FILL = _Fill("fill", keep, lambda a: a)


# ---- Public faces --------------------------------------------------------------------------------------------------


def unary(op: Map) -> Callable:
    """`function(input, *, out=None)`, with a fast path for plain tensors."""
    plans = op.plans

    def function(input, *, out=None):
        if type(input) is Tensor and out is None and input._autograd is None:
            plan = plans[(input.spec,)]
            storage = plan.allocate()
            plan.entry(storage.ptr, input._storage.ptr + input._start, plan.meta, plan.count)
            result = _new(Tensor)
            result._storage = storage
            result._start = 0
            result.spec = plan.spec
            return result
        if not isinstance(input, Tensor):
            raise TypeError(f"{op.name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
        return op(input) if out is None else op.into(out, input)

    return _named(function, op)


def binary(op: Map, operator: bool = False) -> Callable:
    """`function(input, other, *, out=None)`; `other` may be a number.

    As an `operator` it answers NotImplemented to types it does not know, which may have their own.
    """
    plans = op.plans

    def function(input, other, *, out=None):
        if type(input) is Tensor and out is None and input._autograd is None:
            if type(other) is Tensor:
                if other._autograd is None:
                    plan = plans[input.spec, other.spec]
                    storage = plan.allocate()
                    plan.entry(
                        storage.ptr,
                        input._storage.ptr + input._start,
                        other._storage.ptr + other._start,
                        plan.meta,
                        plan.count,
                    )
                    result = _new(Tensor)
                    result._storage = storage
                    result._start = 0
                    result.spec = plan.spec
                    return result
            elif type(other) is float:
                plan = plans[input.spec, float]
                if plan.operand_dtype.is_floating_point:
                    storage = plan.allocate()
                    plan.entry(storage.ptr, input._storage.ptr + input._start, other, plan.meta, plan.count)
                    return make(storage, 0, plan.spec)
        if operator and not is_operand(other):
            return NotImplemented
        return op(input, other) if out is None else op.into(out, input, other)

    return _named(function, op)


def is_operand(value: Any) -> bool:
    """Whether elementwise ops take this: a tensor or a number, NumPy's included."""
    return isinstance(value, (Tensor, *NUMBERS, np.number, np.bool_))


def reflected(op: Map) -> Callable:
    """`other op self`, for the operators with an r in their names."""

    def function(self, other):
        return op(other, self) if is_operand(other) else NotImplemented

    return _named(function, op)


def _named(function: Callable, op: Map) -> Callable:
    function.__name__ = function.__qualname__ = op.name
    return function


def inplace_of(op: Map) -> Callable:
    """`method_(self, *others)`, with a fast path for one plain tensor of the same dtype."""
    plans = PlanCache(lambda target, other: _inplace_plan(op, target, other))

    def method(self, *others):
        if len(others) == 1 and type(others[0]) is Tensor:
            other = others[0]
            if (
                self._autograd is other._autograd is None
                and type(self) is Tensor
                and self._storage is not other._storage
                and (plan := plans[self.spec, other.spec]) is not None
            ):
                storage = self._storage
                address = storage.ptr + self._start
                plan.entry(address, address, other._storage.ptr + other._start, plan.meta, plan.count)
                storage.version += 1
                return self
        return op.inplace(self, *others)

    method.__name__ = method.__qualname__ = f"{op.name}_"
    return method


def _inplace_plan(op: Map, target: Spec, other: Spec) -> Plan | None:
    """The plan of an in-place call that needs no further checks; None sends it the long way."""
    types = op._types((target, other))
    sizes = broadcast_shapes(op.name, target.shape, other.shape)
    if target.repeats or sizes != target.shape or types.result.category > target.dtype.category:
        return None
    return op.write_plans[target, target, other]


def publish(op: Map, arity: int, forms: str, *aliases: str) -> Callable:
    """Make an op public: `forms` are "function", "method", "inplace"."""
    function = unary(op) if arity == 1 else binary(op)
    wanted = forms.split()
    for name in (op.name, *aliases):
        last = name.rpartition(".")[2]
        if "function" in wanted:
            FUNCTIONS[name] = function
        if "method" in wanted:
            setattr(Tensor, last, function)
        if "inplace" in wanted:
            method = inplace_of(op)
            setattr(Tensor, f"{last}_", method)
            if arity == 1 and "." not in name:
                FUNCTIONS[f"{name}_"] = method
    return function
