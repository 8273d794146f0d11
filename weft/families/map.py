"""Map: the family of elementwise ops.

A row states the name of the op, its promotion rule, and one element of the result as an expression of one element of each
operand. This file does the rest for all of them: broadcasting, kernels, the in-place and `out=` forms, Python numbers and 0-dim
tensors as operands, devices.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.device import CPU, device
from ..core.dispatch import PLAIN, watched, watchers
from ..core.dtype import LEGACY_NAMES, DType, bool_, compute_type, float64, get_default_dtype, int64, uint8
from ..core.grad_mode import mode
from ..core.iteration import broadcast_shapes, broadcast_stride, loop_dims, result_spec
from ..core.limits import check_number
from ..core.op import Op
from ..core.outputs import (
    check_dtype,
    check_inplace,
    check_no_repeats,
    check_out_spec,
    check_unrecorded,
    memory_overlaps,
    overlap,
    resize_out,
)
from ..core.plans import PlanCache
from ..core.promotion import common_dtype
from ..core.recording import needs_recording, new_recorder, record_inplace, tape
from ..core.size import Size
from ..core.spec import Spec, contiguous_spec
from ..core.storage import Storage
from ..core.templates import Late
from ..core.tensor import Tensor, make, plain_types
from ..engine.defer import deferrable, is_deferred, promised, rewritten
from ..engine.fusion import Elementwise
from ..engine.habits import Habit, habit_for
from ..engine.loops import Result
from .elements import as_type, const_as, load_as, param_as, rounded, store_as
from .launches import OBJECT, OF_INPUT, OF_RESULT, Launches
from .traced import NoKernel, Traced

NUMBERS = (bool, int, float, complex)


class Types(NamedTuple):
    """The answer of a promotion rule: the dtype that operands are converted to, and the dtype of the result."""

    operands: DType
    result: DType


# ---- Promotion rules: common dtype -> Types ----------------------------------------------------------------------


def same_dtype(common: DType) -> Types:
    """Compute in the common dtype of the operands, and return it."""
    return Types(common, common)


def to_float(common: DType) -> Types:
    """Integers and bools count as the default float."""
    dtype = get_default_dtype() if common.category < 2 else common
    return Types(dtype, dtype)


def to_bool(common: DType) -> Types:
    """Compute in the common dtype, return bools."""
    return Types(common, bool_)


def to_real(common: DType) -> Types:
    """Compute in the common dtype, return its real type."""
    return Types(common, common.to_real())


def to_real_float(common: DType) -> Types:
    """As `to_float`, but complex operands have real results."""
    operands = to_float(common).operands
    return Types(operands, operands.to_real())


def promote_bool(common: DType) -> Types:
    """As `same_dtype`, but bools count as int64."""
    return same_dtype(int64 if common is bool_ else common)


# ---- Checks: which operand dtypes an op rejects --------------------------------------------------------------------


def refuse(kinds: str, error: type[Exception] = NotImplementedError, message: str = "") -> Callable:
    """A `check` for Map that raises if the dtype is of one of these kinds (b, u, i, f, c); the message may name {name}, {dtype}."""

    def check(name: str, dtype: DType) -> None:
        if dtype.kind in kinds:
            text = message or "\"{name}_cpu\" not implemented for '{dtype}'"
            raise error(text.format(name=name, dtype=LEGACY_NAMES[dtype]))

    return check


NO_COMPLEX = refuse("c")
NO_BOOL_OR_COMPLEX = refuse("bc")
ONLY_FLOATS = refuse("buic")
ONLY_BITS = refuse("fc")


class Plan(Late):
    """The spec of the result and the kernel, for one combination of specs of operands.

    `limits` is the dtype that numbers must fit into; None allows every number.
    """

    __slots__ = (
        "spec",
        "entry",
        "meta",
        "count",
        "allocate",
        "operand_dtype",
        "limits",
        "keepalive",
        "record",
        "readers",
        "deferred",
        "habit",
    )
    LATE = ("keepalive",)

    def __init__(self, spec: Spec, launch, allocate, operand_dtype: DType, limits: DType | None = None):
        self.spec = spec
        self.entry, self.meta, self.count, self.keepalive = launch
        self.allocate = allocate
        self.operand_dtype = operand_dtype
        self.limits = limits
        self.record: Callable | None = None  # made when the first call is recorded
        self.readers: tuple[
            int, ...
        ] = ()  # of a plan for writes: the inputs whose gradients need overwritten values
        self.deferred: Elementwise | None = None  # results are computed when somebody needs the bytes
        self.habit: Habit | None = None  # of a deferred plan


class Map(Op):
    """An elementwise op.

    `element` gets one Expr (or Complex) per operand, in the compute type of the operand dtype, and returns one for the result.
    `check(name, dtype)` raises for the operand dtypes that the op rejects.
    `deciding`: only so many operands, the first ones, take part in promotion; None means all of them.
    `wide`: numbers and 0-dim tensors are not rounded to a narrow operand dtype, so that bfloat16 * 0.1 multiplies by the
    float32 0.1.
    `limited`: numbers that take no part in promotion must fit into the dtype that the op computes in.
    `contiguous`: the result is contiguous, because the kernel of PyTorch does not follow the strides of the operands.
    `derivative`: a rule for each operand, see `core.derivative`.
    """

    is_copy = False  # a copy never rounds, because the result is one of the operands
    is_kernel = True  # a plan's `entry` is all there is to a call: faces may take the fast path

    def __init__(
        self,
        name: str,
        promotion: Callable[[DType], Types],
        element: Callable,
        *,
        check: Callable[[str, DType], None] | None = None,
        deciding: int | None = None,
        wide: bool = False,
        limited: bool = False,
        contiguous: bool = False,
        derivative: Any = None,
        node_name: str | Callable | None = None,
    ):
        super().__init__(name, derivative, node_name)
        self.promotion = promotion
        self.element = element
        self.check = check
        self.deciding = deciding
        self.wide = wide
        self.limited = limited
        self.contiguous = contiguous
        self.as_write: Any = self  # the op that autograd records for `write`
        self.plans = PlanCache(self._plan)
        self.write_plans = PlanCache(self._plan_write)
        self.inplace_plans = PlanCache(self._plan_inplace)
        self.into_plans = PlanCache(self._plan_into)
        self._results: dict[tuple, tuple[Result, ...]] = {}

    # -- planning --------------------------------------------------------------------------------------------------

    def _plan(self, *operands: Any) -> Plan:
        """The plan of a call that makes a new tensor; an operand is a Spec or the type of a number.

        Raises: TypeError for the only operand if it is a number.
        """
        plan = self._plan_now(*operands)
        if self.is_kernel:
            self._let_wait(plan, operands)
        return plan

    def _plan_now(self, *operands: Any) -> Plan:
        """A plan whose result is never deferred."""
        if len(operands) == 1 and type(operands[0]) is not Spec:
            raise TypeError(
                f"{self.name}(): argument 'input' (position 1) must be Tensor, not {operands[0].__name__}"
            )
        types = self._types(operands)
        specs = [operand for operand in operands if type(operand) is Spec]
        where = common_device(self.name, specs)
        sizes = broadcast_shapes(self.name, *(each.shape for each in specs))
        return self._launch(self._layout(operands, sizes, types.result, where), operands, types)

    def _let_wait(self, plan: Plan, operands: Sequence[Any]) -> None:
        """Let results of the plan be deferred if they may be."""
        if not is_deferred(plan.spec):
            return
        types = self._types(operands)
        specs = [operand for operand in operands if type(operand) is Spec]
        (stored,) = self._expressions(operands, plan.spec, types)
        params = self._params(operands, types)
        plan.deferred = deferrable(self.name, plan.spec, specs, params, stored.parts)
        plan.habit = habit_for(plan.spec) if plan.deferred else None

    def _layout(self, operands: Sequence[Any], sizes: Size, dtype: DType, where: device) -> Spec:
        """The spec of a new result."""
        if self.contiguous:
            return contiguous_spec(sizes, dtype, where)
        specs = [operand for operand in operands if type(operand) is Spec]
        shaped = [each for each in specs if each.shape or not sizes]
        return result_spec(shaped or specs, sizes, dtype, where)

    def _plan_write(self, target: Spec, *operands: Any) -> Plan:
        """The plan of a call that writes into an existing tensor, in place or by `out=`."""
        plan = self._plan_write_now(target, *operands)
        if self.is_kernel and any(type(operand) is Spec for operand in operands):
            self._let_wait(plan, operands)
        return plan

    def _plan_write_now(self, target: Spec, *operands: Any) -> Plan:
        """A plan whose writes are never deferred."""
        types = self._types(operands)
        specs = [operand for operand in operands if type(operand) is Spec]
        where = common_device(self.name, [target, *specs])
        if where is not target.device:  # a 0-dim target on the CPU
            raise several_devices(self.name, where, target.device)
        return self._launch(target, operands, types)

    # The plans of kernels inside a kernel graph.

    @functools.cached_property
    def plans_in_graphs(self) -> PlanCache:
        return PlanCache(self._plan_now)

    @functools.cached_property
    def write_plans_in_graphs(self) -> PlanCache:
        return PlanCache(self._plan_write_now)

    def _types(self, operands: Sequence[Any]) -> Types:
        types = self.promotion(common_dtype(operands[: self.deciding]))
        if self.check is not None:
            self.check(self.name, types.operands)
        return types

    def _launch(self, result: Spec, operands: Sequence[Any], types: Types) -> Plan:
        specs = [operand for operand in operands if type(operand) is Spec]
        expressions = self._expressions(operands, result, types)
        rows = [result.stride, *(broadcast_stride(each, result.shape) for each in specs)]
        itemsizes = [result.dtype.itemsize, *(each.dtype.itemsize for each in specs)]
        byte_rows = tuple(tuple(s * size for s in row) for row, size in zip(rows, itemsizes, strict=True))
        sizes, strides = loop_dims(result.shape, byte_rows)
        if 0 in sizes:
            sizes, strides = (0,), tuple((0,) for _ in strides)
        backend = result.device.backend
        launch = backend.prepare(
            expressions, [each.dtype for each in specs], self._params(operands, types), sizes, strides
        )
        guests = [k for k, each in enumerate(specs, 1) if each.device is not result.device]
        if guests and backend.has_memory:
            launch = with_guests(launch, backend, [(k, specs[k - 1].dtype.itemsize) for k in guests])
        return Plan(
            result, launch, backend.allocator(result.nbytes), types.operands, self._limits(operands, types)
        )

    def _limits(self, operands: Sequence[Any], types: Types) -> DType | None:
        if not self.limited or any(type(each) is not Spec for each in operands[: self.deciding]):
            return None
        return compute_type(types.operands) if self.wide else types.operands

    def _expressions(self, operands, result: Spec, types: Types) -> tuple[Result, ...]:
        """The expression of one stored element; plans whose operands differ only in shape share it."""
        key = (
            types,
            result.dtype,
            result.conj,
            result.neg,
            *((o.dtype, o.conj, o.neg, not o.shape) if type(o) is Spec else None for o in operands),
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
        value = self._computed(values, operands, types)
        if result.dtype is not types.result and not self.is_copy:  # as if the op had run alone
            value = rounded(value, types.result)
        return store_as(value, result)

    def _computed(self, values: Sequence[Any], operands: Sequence[Any], types: Types) -> Any:
        """The result in the compute type of its dtype; each operand is a Spec or the type of a number."""
        compute = compute_type(types.operands)
        converted = []
        for value, operand in zip(values, operands, strict=True):
            value = as_type(value, compute)
            if type(operand) is Spec:
                exact = operand.dtype is types.operands or self.wide and not operand.shape
            else:
                exact = self.wide
            converted.append(value if exact else rounded(value, types.operands))
        return as_type(self.element(*converted), compute_type(types.result))

    def trace(self, *operands: Any) -> Traced:
        """The op on traced values and numbers: a traced value, rounded to the dtype of the result.

        Raises: NoKernel if an operand is an ordinary tensor, or if this op has no kernel.
        """
        kinds = [each.kind if type(each) is Traced else type(each) for each in operands]
        specs = [kind for kind in kinds if type(kind) is Spec]
        if not self.is_kernel or not all(type(kind) is Spec or kind in NUMBERS for kind in kinds):
            raise NoKernel(f"{self.name} of {kinds}")
        types = self._types(kinds) if specs else self.promotion(float64)
        compute, limits = compute_type(types.operands), self._limits(kinds, types)
        values = []
        for each in operands:
            if type(each) is not Traced and limits is not None:
                check_number(each, limits)
            values.append(each.value if type(each) is Traced else const_as(each, compute))
        value = rounded(self._computed(values, kinds, types), types.result)
        if not specs:
            return Traced(bool if types.result is bool_ else float, value)
        shape = max((spec.shape for spec in specs), key=len)
        kind = contiguous_spec(shape, types.result, common_device(self.name, specs))
        return Traced(kind, value, self, operands)

    @staticmethod
    def _params(operands, types: Types) -> list[DType]:
        compute = compute_type(types.operands)
        count = sum(type(operand) is not Spec for operand in operands)
        if compute.is_complex:
            return [compute.to_real()] * (2 * count)
        return [uint8 if compute is bool_ else compute] * count

    # -- running ---------------------------------------------------------------------------------------------------

    def run(self, *operands: Any) -> Tensor:
        """A new tensor; operands are tensors and numbers."""
        key: Any = []
        recorded, numbers = False, False
        for operand in operands:
            kind = type(operand)
            if kind in plain_types:
                key.append(operand.spec)
                if operand._autograd is not None:
                    recorded = mode.enabled
            elif kind in NUMBERS:
                key.append(kind)
                numbers = True
            else:
                operands = tuple(normalise(self.name, operands))
                key = map(spec_or_type, operands)
                recorded, numbers = needs_recording(operands), True
                break
        plan = self.plans[tuple(key)]
        if plan.deferred is not None:
            storage = _promised(plan, operands)
        else:
            storage = plan.allocate()
            arguments = (
                kernel_arguments(operands, plan)
                if numbers
                else [each._storage.ptr + each._byte_offset for each in operands]
            )
            plan.entry(storage.ptr, *arguments, plan.meta, plan.count)
        result = make(storage, 0, plan.spec)
        if recorded:
            (plan.record or new_recorder(plan, self, result, operands))(result, *operands)
        return result

    def launches(self, *operands: Any) -> Launches | None:
        """What `run` launches with these operands; None if it launches no kernel, or does so later."""
        if not self.is_kernel:
            return None
        values, key = keyed(self.name, operands)
        return launches_of(self.plans[key], values)

    def write(self, target: Tensor, *operands: Any) -> Tensor:
        """Compute into `target`, whose shape must be that of the result."""
        if watchers and (answer := watched(self, "write", (target, *operands), {})) is not PLAIN:
            return answer
        numbers = normalise(self.name, operands)
        if needs_recording((target, *numbers)):
            return record_inplace(self.as_write, target, numbers, (), self.write, target, *numbers)
        values, key = keyed(self.name, [_unaliased(self.name, o, target) for o in numbers])
        return self._run(self.write_plans[(target.spec, *key)], target, values)

    @staticmethod
    def _run(plan: Plan, target: Tensor, operands: Sequence[Any]) -> Tensor:
        if plan.deferred is not None and rewritten(plan, target, *_wanted(plan, operands)):
            return target
        storage = target._storage
        storage.version += 1  # first, because it may raise
        arguments = kernel_arguments(operands, plan)
        plan.entry(storage.ptr + target._byte_offset, *arguments, plan.meta, plan.count)
        return target

    def inplace(self, target: Tensor, *others: Any) -> Tensor:
        """target = op(target, *others), in the memory of target."""
        if watchers and (answer := watched(self, "inplace", (target, *others), {})) is not PLAIN:
            return answer
        values, key = keyed(self.name, others)
        inputs = (target, *values)
        recorded = needs_recording(inputs)
        # PyTorch raises the error about leaves before the error about shapes, so check in that order.
        if recorded:
            tape.check_write(target)
        plan = self.inplace_plans[(target.spec, *key)]
        if self.is_kernel and all([_apart(value, target) for value in values]):
            if not recorded:
                return self._run(plan, target, inputs)
            if not tape.can_record_after(plan, self, target, inputs):
                return record_inplace(self, target, inputs, (), self._run, plan, target, inputs)
            tape.record_after(plan, self._run(plan, target, inputs), inputs)
            return target
        return self.write(target, target, *values)

    def _plan_inplace(self, target: Spec, *others: Any) -> Plan:
        """As `_plan_write`. Raises: RuntimeError unless the result has the shape of the target and its dtype converts to that of
        the target.
        """
        check_no_repeats(target, self.name)
        operands = (target, *others)
        sizes = broadcast_shapes(self.name, *(s.shape for s in operands if type(s) is Spec))
        if sizes != target.shape:
            raise RuntimeError(
                f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(sizes)}"
            )
        check_dtype(target, self.promotion(common_dtype(operands[: self.deciding])).result, self.name)
        return self.write_plans[(target, *operands)]

    def into(self, out: Tensor, *operands: Any) -> Tensor:
        """The `out=` form: `out` is resized to the shape of the result, and the result is converted to its dtype."""
        if watchers and (answer := watched(self, "into", (out, *operands), {})) is not PLAIN:
            return answer
        values, key = keyed(self.name, operands)
        check_unrecorded(self.name, (out, *values))
        if not isinstance(out, Tensor):
            raise TypeError(f"{self.name}(): argument 'out' must be Tensor, not {type(out).__name__}")
        plan = self.into_plans[(out.spec, *key)]
        if type(plan) is Spec:
            resize_out(out, plan.shape, self.name, plan.stride)
            check_inplace(out, self.name)
        return self.write(out, *values)

    def _plan_into(self, out: Spec, *operands: Any) -> Plan | Spec:
        """The plan of a call with `out=`, or the spec of the result if the tensor must first be resized to it."""
        tensors = [each for each in operands if type(each) is Spec]
        sizes = broadcast_shapes(self.name, *(each.shape for each in tensors))
        result = self.promotion(common_dtype(operands[: self.deciding])).result
        where = common_device(self.name, tensors)
        check_out_spec(out, result, where, self.name)
        if out.shape != sizes:
            return self._layout(operands, sizes, result, where)
        check_no_repeats(out, self.name)
        return self.write_plans[(out, *operands)]


def spec_or_type(operand: Any) -> Any:
    """The part of a plan's key that stands for an operand: the Spec of a tensor, the type of a number."""
    return operand.spec if isinstance(operand, Tensor) else type(operand)


def keyed(name: str, operands: Sequence[Any]) -> tuple[Sequence[Any], tuple]:
    """The operands, with numbers of NumPy converted to Python's, and the key of their plan."""
    key = []
    for operand in operands:
        kind = type(operand)
        if kind in plain_types:
            key.append(operand.spec)
        elif kind in NUMBERS:
            key.append(kind)
        else:
            operands = normalise(name, operands)
            return operands, tuple(map(spec_or_type, operands))
    return operands, tuple(key)


def kernel_arguments(operands: Sequence[Any], plan: Plan) -> list:
    """The arguments of the kernel: the addresses of the tensors, then the numbers."""
    arguments = []
    numbers: list = []
    for operand in operands:
        if isinstance(operand, Tensor):
            arguments.append(operand._storage.ptr + operand._byte_offset)
        elif (
            type(operand) is float
            and plan.operand_dtype.kind == "f"
            and (plan.limits is None or -1e4 < operand < 1e4)
        ):
            numbers.append(operand)  # the usual case needs no further look
        else:
            if plan.limits is not None:
                check_number(operand, plan.limits)
            numbers += scalar_arguments(operand, plan.operand_dtype)
    return arguments + numbers if numbers else arguments


def _promised(plan: Plan, operands: Sequence[Any]) -> Storage:
    """A storage for the result of a plan that is deferred."""
    return promised(plan, *_wanted(plan, operands))


def storage_of(plan: Plan, tensor: Tensor) -> Storage:
    """A new storage for the result of a plan with one operand. The result may be deferred."""
    if plan.deferred is not None:
        return promised(plan, (tensor,), ())
    storage = plan.allocate()
    plan.entry(storage.ptr, tensor._storage.ptr + tensor._byte_offset, plan.meta, plan.count)
    return storage


def launches_of(plan: Plan, operands: Sequence[Any]) -> Launches | None:
    """What a call with this plan launches; None if its result is deferred."""
    if plan.deferred is not None:
        return None
    tensors = [each for each in operands if isinstance(each, Tensor)]
    numbers = kernel_arguments(operands, plan)[len(tensors) :]
    inputs = [(OF_INPUT, each, 0) for each in tensors]
    constants = [(OBJECT, each, 0) for each in (*numbers, plan.meta, plan.count)]
    step = plan.entry, [(OF_RESULT, 0, 0), *inputs, *constants]
    return Launches([plan.allocate], [step], keepalive=plan)


def _wanted(plan: Plan, operands: Sequence[Any]) -> tuple[list[Tensor], list]:
    """The operands that are tensors, and the numbers as the kernel takes them."""
    tensors = [each for each in operands if isinstance(each, Tensor)]
    numbers = [each for each in operands if not isinstance(each, Tensor)]
    return tensors, kernel_arguments(numbers, plan)


def scalar_arguments(value: Any, dtype: DType) -> tuple:
    """A Python number as arguments of a kernel that computes in `dtype`: two floats if that is complex, else a float or an int.

    The imaginary part of a complex number is dropped if `dtype` is real.
    Raises: OverflowError for ints of more than 64 bits.
    """
    if type(value) is int and not -(2**63) <= value < 2**64:
        raise OverflowError("int too big to convert")
    if dtype.kind == "f":
        return (float(value.real),)
    if dtype.kind == "c":
        return float(value.real), float(value.imag)
    return (bool(value) if dtype is bool_ else int(value.real),)


def _unaliased(name: str, operand: Any, target: Tensor) -> Any:
    """As `apart`.

    Raises: RuntimeError, as in PyTorch, if both are dense and share a part of their memory.
    """
    if not _apart(operand, target) and operand.spec.is_dense and target.spec.is_dense:
        if memory_overlaps(operand, target):
            raise overlap(name, operand.spec, target.spec)
    return apart(operand, target)


def apart(operand: Any, target: Tensor) -> Any:
    """The operand, copied if writing `target` would change elements that are read later."""
    return operand if _apart(operand, target) else COPY(operand)


def _apart(operand: Any, target: Tensor) -> bool:
    """Whether each element of `target` can be written as soon as that of `operand` is read."""
    if not isinstance(operand, Tensor) or operand._storage is not target._storage:
        return True
    mine, theirs = operand.spec, target.spec
    if (
        operand._byte_offset == target._byte_offset
        and mine.shape == theirs.shape
        and mine.stride == theirs.stride
        and mine.dtype.itemsize == theirs.dtype.itemsize
    ):
        return True
    if operand._storage.nbytes_ == 0:
        return True
    return operand._byte_offset == target._byte_offset and _steps(mine) == _steps(theirs)


def _steps(spec: Spec) -> tuple:
    """How the elements of a tensor lie in memory; the strides of dims of size 1 do not count."""
    return spec.dtype.itemsize, [(size, step) for size, step in zip(spec.shape, spec.stride) if size != 1]


def normalise(name: str, operands: Sequence[Any]) -> list:
    """Tensors and Python numbers; NumPy numbers become Python numbers.

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
        number = value.item()
        if type(number) in NUMBERS:
            return number
        return complex(number) if value.dtype.kind == "c" else float(number)  # a long double of NumPy
    kind: Any
    for kind in NUMBERS:
        if isinstance(value, kind):
            return kind(value)
    raise not_a_tensor(name, position, value)


def not_a_tensor(name: str, position: int, value: Any) -> TypeError:
    argument = ("input", "other")[position] if position < 2 else f"number {position + 1}"
    return TypeError(
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
            raise several_devices(name, found, each.device)
    return found or CPU


def several_devices(name: str, one: device, other: device) -> RuntimeError:
    return RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {one} and {other}! "
        f"({name}: move one of them with .to(device))"
    )


def with_guests(launch: Any, backend: Any, guests: Sequence[tuple[int, int]]) -> Any:
    """The launch where some operands are on the CPU: each call first copies them to the device.

    `guests`: the position among the arguments of each, and its bytes.
    """
    start = launch.entry
    assert start is not None

    def entry(*arguments: Any) -> None:
        given = list(arguments)
        copies = []  # which must outlive the launch
        for position, nbytes in guests:
            copies.append(backend.allocate(nbytes))
            backend.write(copies[-1].ptr, CPU.backend.read(given[position], nbytes))
            given[position] = copies[-1].ptr
        start(*given)

    return launch._replace(entry=entry)


class _Copy(Map):
    is_copy = True


# The identity, which copies and converts.
COPY = _Copy("clone", same_dtype, lambda a: a, derivative=lambda ct, out, a: ct)
COPY.as_write = Op("copy_", COPY.derivative, "CopyBackwards")


class _Fill(Map):
    """Write one number everywhere. The number is converted to the dtype of the target, without promotion."""

    def _plan_write_now(self, target: Spec, *operands: Any) -> Plan:
        return self._launch(target, operands, Types(target.dtype, target.dtype))

    def _let_wait(self, plan: Plan, operands: Sequence[Any]) -> None:
        """Filling is never deferred."""


FILL = _Fill("fill", same_dtype, lambda a: a, derivative=(None,))
FILL.as_write = Op("fill_", FILL.derivative, "FillBackward2")
