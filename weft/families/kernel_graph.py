"""Several kernels that are planned together and recorded as one op.

On small tensors, a function such as softmax spends most of its time between its kernels. A kernel graph is planned once for
each combination of specs: `build(graph, *static)` calls methods of a `GraphBuilder`, which plan the kernels, and returns the
values that are results. A call then allocates the results and one block for all intermediate values, and launches the kernels.

A `Value` of a graph stands for a whole tensor, with a spec and an address in a block. It is therefore another class than
`traced.Traced`, which stands for one element inside one kernel and has neither.
"""

from __future__ import annotations

import builtins
import functools
import linecache
import operator
import zlib
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from ..core import view_rules
from ..core.dtype import DType
from ..core.grad_mode import mode
from ..core.iteration import check_reach
from ..core.op import Op
from ..core.plans import PlanCache
from ..core.recording import new_recorder, record
from ..core.spec import Spec, contiguous_spec
from ..core.symbols import Later, per_plan
from ..core.templates import Late, add_atoms
from ..core.tensor import Tensor, make
from ..engine.chain import Operand
from ..engine.kernel import Launch
from ..engine.memory import FENCE
from .indexed import Gather, Scatter, add_elements
from .launches import OBJECT, OF_INPUT, OF_NUMBER, OF_RESULT, OF_SCRATCH, Launches
from .map import COPY, FILL, Map
from .product import Product
from .reduce import Reduce

ALIGNMENT = 64  # bytes: each intermediate value starts at a multiple, one cache line, so that vectors load without splits


class Value(NamedTuple):
    """An operand of the kernels of a graph: a tensor, or a number (then `spec` is its type)."""

    kind: str  # "input", "made", "number" or "constant"
    number: int
    spec: Any
    offset: int = 0  # bytes from the address of the input, or of the value that a kernel made

    @property
    def name(self) -> str:
        """The expression for this value in the source of the plan."""
        name = f"{self.kind}{self.number}"
        return f"{name}.real, {name}.imag" if self.spec is complex else name


class GraphBuilder:
    """Collects the kernels that a graph launches; its methods are what `build` may call."""

    def __init__(self, specs: Sequence[Spec | None], numbers: Sequence[type]):
        # A Value for each input; None for an optional input that is missing.
        self.inputs: list[Any] = [
            None if each is None else Value("input", k, each) for k, each in enumerate(specs)
        ]
        self.numbers = [Value("number", k, kind) for k, kind in enumerate(numbers)]
        self.made: list[Value] = []
        self.constants: list[Any] = []
        # The plan of each launch, and its arguments before meta and count.
        self.launches: list[tuple[Any, list[Value]]] = []
        self.plans: list[Any] = []  # references that keep kernels and constants alive
        self.written: list[int] = []  # the numbers of the inputs that kernels write
        self.guarded = False  # whether kernels follow indices, so that bad ones are counted
        self.idle = (
            False  # whether a kernel that follows indices is left out, because the indexed dimension is empty
        )

    # -- kernels -------------------------------------------------------------------------------------------------------

    def map(self, op: Map, *operands: Value | float) -> Value:
        """The result of an elementwise op."""
        plan = op.plans_in_graphs[_key(operands)]
        result = self.new(plan.spec)
        self._launch_map(plan, result, operands)
        return result

    def write(self, op: Map, target: Value, *operands: Value | float) -> None:
        """Write the result of an elementwise op into `target`."""
        self._launch_map(op.write_plans_in_graphs[(target.spec, *_key(operands))], target, operands)
        if target.kind == "input":
            self.written.append(target.number)

    def reduce(
        self,
        op: Reduce,
        *inputs: Value,
        dims: tuple[int, ...],
        numbers: Sequence[Value | float] = (),
        keepdim: bool = True,
    ) -> list[Value]:
        """The results of a reduction."""
        dims = tuple(map(operator.index, dims))  # numbers of dims are no sizes
        plan = op.plans[tuple([each.spec for each in inputs]), dims, keepdim, None, len(numbers)]
        results = [self.new(each) for each in plan.results]
        if plan.results[0].numel:
            self._launch(plan, [*results, *inputs, plan.reduced, *numbers])
        return results

    def matmul(self, op: Product, a: Value, b: Value) -> Value:
        """The product of matrices."""
        first = op.plans[a.spec, b.spec]
        readable = first.readable
        a, b = (each if each.spec is own else self._copy(each, own) for each, own in zip((a, b), readable))
        plan = op.plans[readable]
        result = self.new(plan.spec)
        self._launch(plan, [result, a, b])
        return self.to(result, first.spec.dtype)

    def launch(self, launch: Launch, *operands: Value) -> None:
        """Launch a kernel that the device has prepared for these operands, the first of which it writes."""
        self._launch(launch, operands)

    def gather(self, op: Gather, input: Value, indices: Sequence[Value], static: Any) -> Value:
        """The elements that the indices select."""
        plan = op.plans[(input.spec, static, *[each.spec for each in indices])]
        result = self.new(plan.spec)
        self._follow(plan.launch, [result, input, *indices])
        return result

    def scatter(
        self,
        op: Scatter,
        target: Value,
        indices: Sequence[Value],
        value: Value,
        static: Any,
        combine: Callable | None = None,
    ) -> None:
        """Write `value` to the elements that the indices select, or combine it with them. Bad indices are skipped."""
        plan = op.plans[(target.spec, value.spec, combine, static, *[each.spec for each in indices])]
        self._follow(plan.launch, [target, *[target] * (combine is not None), value, *indices])

    def adjoint(self, op: Gather, ct: Value, indices: Sequence[Value], static: Any, input: Spec) -> Value:
        """The gradient of the input of `gather`: zeros, to which `ct` is added at the selected elements."""
        whole = self.new(contiguous_spec(input.shape, ct.spec.dtype, ct.spec.device))
        self.write(FILL, whole, 0)
        self.scatter(op.scatter, whole, indices, ct, static, add_elements)
        return whole

    def to(self, operand: Any, dtype: DType) -> Any:
        """The operand converted to `dtype`, unless it has that dtype; None stays None."""
        if operand is None or operand.spec.dtype is dtype:
            return operand
        spec = operand.spec
        dense = spec.like(dtype=dtype) if spec.is_dense else contiguous_spec(spec.shape, dtype, spec.device)
        return self._copy(operand, dense)

    def reshape(self, operand: Value, sizes: tuple[int, ...]) -> Value:
        """The operand with other sizes: a view where the strides allow one, else a copy."""
        spec = operand.spec
        if len(spec.shape) == len(sizes) and spec.shape == sizes:
            return operand
        if view_rules.view_stride(spec, sizes) is None:
            operand = self._copy(operand, contiguous_spec(spec.shape, spec.dtype, spec.device))
        return self.view(view_rules.view, operand, sizes)

    def view(self, rule: Callable[..., tuple[Spec, int]], operand: Value, *static: Any) -> Value:
        """A view of the operand, by one of `core.view_rules`.

        Raises: RuntimeError if the view reaches beyond the elements of the operand.
        """
        spec, offset = rule(operand.spec, *static)
        if spec.dtype is operand.spec.dtype:
            check_reach("view", operand.spec, spec.shape, spec.stride, offset)
        return operand._replace(spec=spec, offset=operand.offset + offset * spec.dtype.itemsize)

    def constant(self, tensor: Tensor) -> Value:
        """A tensor that all calls read."""
        self.plans.append(tensor)
        return self._constant(tensor._storage.ptr + tensor._byte_offset)._replace(spec=tensor.spec)

    def empty(self, dtype: DType) -> Value:
        """A tensor without elements, which stands for a result that is missing."""
        return self.new(contiguous_spec((0,), dtype, self.inputs[0].spec.device))

    def _copy(self, operand: Value, target: Spec) -> Value:
        result = self.new(target)
        self.write(COPY, result, operand)
        return result

    def new(self, spec: Spec) -> Value:
        """A new intermediate value or result, not initialized."""
        self.made.append(Value("made", len(self.made), spec))
        return self.made[-1]

    def _launch_map(self, plan: Any, result: Value, operands: Sequence[Any]) -> None:
        numbers = [each for each in operands if not _is_address(each)]
        self._launch(plan, [result, *filter(_is_address, operands), *numbers])

    def _follow(self, launch: Any, arguments: Sequence[Any]) -> None:
        self.guarded = True
        if launch is None:
            self.idle = True
        else:
            self._launch(launch, [*arguments, launch.table])

    def _launch(self, plan: Any, arguments: Sequence[Any]) -> None:
        self.plans.append(plan)
        operands = [each if isinstance(each, Value) else self._constant(each) for each in arguments]
        self.launches.append((plan, operands))

    def _constant(self, value: Any) -> Value:
        self.constants.append(value)
        return Value("constant", len(self.constants) - 1, None)

    # -- the plan ------------------------------------------------------------------------------------------------------

    def finish(self, results: Sequence[Value]) -> Plan:
        """The plan: a Python function with one line for each launch, because a loop over launches would take as long as small
        kernels do (2 us for softmax of 16 numbers).

        The source contains no sizes: what depends on them are default arguments. So plans that differ in sizes share its code, and
        compiling it costs once.
        """
        first = [each.number for each in results]
        known: dict[str, Any] = {}
        lines = [""]
        lines += [f"    {_names('x', self.inputs)} = inputs"] if self.inputs else []
        lines += [f"    {_names('number', self.numbers)} = numbers"] if self.numbers else []
        # Before the addresses are read, because a write may give a storage other memory.
        lines += [f"    x{k}._storage.version += 1" for k in self.written]
        for each in filter(None, self.inputs):
            k = each.number
            lines.append(f"    input{k} = x{k}._storage.ptr + x{k}._byte_offset")
        for place, each in enumerate(results):
            lines.append(
                f"    storage{place} = allocate{place}()\n    made{each.number} = storage{place}.ptr"
            )
            known[f"allocate{place}"] = each.spec.device.backend.allocator(each.spec.nbytes)
            known[f"spec{place}"] = each.spec
        end = 0
        for each in self.made:
            if each.number in first:
                continue
            if FENCE:  # a block for each value, so that an access outside the value is noticed
                lines.append(f"    block{each.number} = allocate_{each.number}()")
                lines.append(f"    made{each.number} = block{each.number}.ptr")
                known[f"allocate_{each.number}"] = each.spec.device.backend.allocator(each.spec.nbytes)
            else:
                lines.append(f"    made{each.number} = block.ptr + place{each.number}")
                known[f"place{each.number}"] = end
                end += -(-each.spec.nbytes // ALIGNMENT) * ALIGNMENT
                known["allocate"] = each.spec.device.backend.allocator(end)
        if "allocate" in known:
            lines.insert(1, "    block = allocate()")
        backend = results[0].spec.device.backend
        chained = self._chained(backend)
        for place, (entry, arguments) in enumerate(chained):
            known[f"launch{place}"] = entry
            names = [each.name for each in arguments]
            for k, each in enumerate(arguments):
                if each.offset:
                    names[k] += f" + offset{place}_{k}"
                    known[f"offset{place}_{k}"] = each.offset
            lines.append(f"    launch{place}({', '.join(names)})")
        known |= {f"constant{k}": value for k, value in enumerate(self.constants)}
        made_results = ", ".join(f"make(storage{place}, 0, spec{place})" for place in range(len(results)))
        lines.append(f"    return {made_results}")
        lines[0] = f"def run(inputs, numbers, {', '.join(known)}):"
        run = _bound(_compiled("\n".join(lines)), tuple(known.values()))
        faults = backend.faults if self.guarded else None
        steps = None
        if complex not in (each.spec for each in self.numbers) and not FENCE:
            steps = tuple([self._step(place, given, first) for place, (_, given) in enumerate(chained)])
        return Plan(run, faults, self.idle, steps, len(first), tuple(self.written), self.plans)

    def _step(self, place: int, given: list[Value], first: list[int]) -> tuple:
        """The arguments of a launch: their kinds, their numbers, and the names of their offsets. `first`: the numbers of the results."""
        offsets = [f"offset{place}_{k}" if each.offset else "" for k, each in enumerate(given)]
        return tuple([(*self._source(each, first), name) for each, name in zip(given, offsets)])

    @staticmethod
    def _source(value: Value, first: list[int]) -> tuple[int, int]:
        if value.kind == "made":
            is_result = value.number in first
            return (OF_RESULT, first.index(value.number)) if is_result else (OF_SCRATCH, value.number)
        return _KINDS[value.kind], value.number

    def _chained(self, backend: Any) -> list[tuple[Callable, list[Value]]]:
        """The entries and the arguments of the launches, of which neighbours are chained where the device can do so."""
        groups: list[tuple[Any, list]] = []
        for plan, arguments in self.launches:
            operands = [self._operand(each) for each in arguments if _is_address(each)]
            if not groups or groups[-1][0] is None or not groups[-1][0].add(plan.keepalive, operands):
                chain = backend.chain()
                groups.append((chain if chain and chain.add(plan.keepalive, operands) else None, []))
            groups[-1][1].append((plan, arguments))
        found = []
        for chain, members in groups:
            if len(members) == 1:
                plan, arguments = members[0]
                meta = [self._constant(plan.meta), self._constant(plan.count)]
                found.append((plan.entry, [*arguments, *meta]))
            else:
                entry, keepalive = chain.entry()
                self.plans.append(keepalive)
                found.append((entry, [each for _, arguments in members for each in arguments]))
        return found

    def _operand(self, value: Value) -> Operand:
        if value.kind != "made":
            return Operand(None, value.spec.nbytes, value.offset)
        return Operand(value.number, self.made[value.number].spec.nbytes, value.offset)


add_atoms(Tensor)

# The kinds of values that are arguments of launches.
_KINDS = {"input": OF_INPUT, "number": OF_NUMBER, "constant": OBJECT}


def _argument(known: dict[str, Any], kind: int, number: int, offset: str) -> tuple[int, Any, int]:
    """An argument of `Launches`, by the names that a plan's function knows."""
    start = known[offset] if offset else 0
    if kind == OBJECT:
        given = known[f"constant{number}"]
        return OBJECT, given + start if start else given, 0
    if kind == OF_SCRATCH:
        return OF_SCRATCH, 0, known[f"place{number}"] + start
    return kind, number, start


def _names(letters: str, values: Sequence[Any]) -> str:
    return "".join(f"{letters}{k}, " for k in range(len(values)))


@per_plan
def _bound(code: CodeType, known: tuple) -> Callable:
    """The function with this code, whose further arguments are `known`."""
    return FunctionType(code, _NAMES, "run", known)


_NAMES = {"make": make, "__builtins__": builtins}


@functools.lru_cache(maxsize=256)
def _compiled(source: str) -> CodeType:
    filename = f"<weft kernel graph {zlib.crc32(source.encode()):08x}>"
    linecache.cache[filename] = (
        len(source),
        None,
        source.splitlines(keepends=True),
        filename,
    )  # for tracebacks
    (code,) = [each for each in compile(source, filename, "exec").co_consts if type(each) is CodeType]
    return code


def _key(operands: Sequence[Any]) -> tuple:
    """The key of a Map's plan. A number that is made for each plan is a float."""
    return tuple([each.spec if isinstance(each, Value) else _type_of(each) for each in operands])


def _type_of(number: Any) -> type:
    return float if type(number) is Later else type(number)


def _is_address(operand: Any) -> bool:
    return isinstance(operand, Value) and type(operand.spec) is Spec


class Plan(Late):
    """A kernel graph for one combination of specs: `run(inputs, numbers)` returns the result, or a tuple of results."""

    __slots__ = ("run", "faults", "idle", "steps", "results", "written", "keepalive", "record", "numbers")
    OWNING = ("keepalive",)

    def __init__(
        self,
        run: Callable,
        faults: Sequence[int] | None,
        idle: bool,
        steps: tuple | None,
        results: int,
        written: tuple,
        keepalive: list,
    ):
        self.run = run
        self.faults = faults  # the device's count of bad indices; None if no kernel follows indices
        self.idle = idle
        self.steps = (
            steps  # the arguments of the launches, None if they are not known to be all that `run` does
        )
        self.results = results  # their number
        self.written = written  # the inputs that are written to
        self.keepalive = keepalive  # the plans and constants whose memory `run` reads
        # Made when the first call is recorded, for the numbers of that call.
        self.record: Callable | None = None
        self.numbers: tuple = ()

    @property
    def launches(self) -> Launches | None:
        """What `run` launches, for those who run it without Python."""
        if self.steps is None:
            return None
        names = self.run.__code__.co_varnames[2:]  # behind the arguments of a call
        known = dict(zip(names, self.run.__defaults__ or ()))
        steps = [
            (known[f"launch{place}"], [_argument(known, *each) for each in given])
            for place, given in enumerate(self.steps)
        ]
        allocators = [known[f"allocate{place}"] for place in range(self.results)]
        return Launches(allocators, steps, known.get("allocate"), written=self.written)


class EagerBuilder:
    """Has methods of GraphBuilder, but runs each op at once, so that autograd records the ops of a graph without a derivative."""

    def __init__(self, inputs: Sequence[Tensor | None], numbers: Sequence[Any]):
        self.inputs, self.numbers = inputs, numbers

    @staticmethod
    def map(op: Map, *operands: Any) -> Tensor:
        return op(*operands)

    @staticmethod
    def reduce(op: Reduce, *inputs: Tensor, dims: tuple[int, ...], numbers=(), keepdim: bool = True) -> tuple:
        results = op(*inputs, dims=dims, keepdim=keepdim, params=tuple(numbers))
        return (results,) if isinstance(results, Tensor) else results

    @staticmethod
    def gather(op: Gather, input: Tensor, indices: Sequence[Tensor], static: Any) -> Tensor:
        return op(input, indices, static)

    @staticmethod
    def adjoint(op: Gather, ct: Tensor, indices: Sequence[Tensor], static: Any, input: Spec) -> Tensor:
        return op.adjoint(ct, indices, static, input)

    @staticmethod
    def to(operand: Any, dtype: DType) -> Any:
        return None if operand is None else operand.to(dtype)

    @staticmethod
    def reshape(operand: Tensor, sizes: Sequence[int]) -> Tensor:
        return operand.reshape(sizes)


class KernelGraph(Op):
    """A function of tensors, static arguments and numbers, computed by several kernels.

    `inputs` is the number of tensors. `numbers` are the types of the numbers, whose values may change from call to call.
    The rules of `derivative` get (ct, out, *inputs, *static, *numbers); a graph without a derivative is recorded op by op,
    and then `build` may only call the methods of EagerBuilder. `check_indices(*inputs, *static, *numbers)` raises the error about bad
    indices, for graphs whose kernels follow indices.
    """

    def __init__(
        self,
        name: str,
        inputs: int,
        build: Callable[..., Sequence[Value]],
        *,
        numbers: Sequence[type] = (),
        derivative: Any = None,
        node_name: str | Callable | None = None,
        check_indices: Callable | None = None,
    ):
        super().__init__(name, derivative, node_name)
        self.inputs = inputs
        self.build = build
        self.numbers = tuple(numbers)
        self.check_indices = check_indices
        self.plans = PlanCache(self._plan, with_sizes=True)

    def _plan(self, *key: Any) -> Plan:
        graph = GraphBuilder(key[: self.inputs], self.numbers)
        return graph.finish(self.build(graph, *key[self.inputs :]))

    def run(self, inputs: tuple, static: tuple = (), numbers: tuple = ()) -> Any:
        """The result, or a tuple of results; optional inputs that are missing are None."""
        specs: list[Spec | None] = []
        recorded = False
        for each in inputs:
            if each is None:
                specs.append(None)
            else:
                specs.append(each.spec)
                if each._autograd is not None:
                    recorded = mode.enabled
        if recorded and self.derivative is None:
            results = self.build(EagerBuilder(inputs, numbers), *static)
            return results[0] if len(results) == 1 else tuple(results)
        plan = self.plans[(*specs, *static)]
        if plan.faults is None:
            found = plan.run(inputs, numbers)
        else:
            before = plan.faults[0]
            found = plan.run(inputs, numbers)
            if (plan.idle or plan.faults[0] != before) and self.check_indices is not None:
                self.check_indices(*inputs, *static, *numbers)
        if not recorded:
            return found
        if plan.record is None:
            plan.numbers = numbers
            new_recorder(plan, self, found, inputs, (*static, *numbers))
        if numbers == plan.numbers:
            plan.record(found, *inputs)
        else:  # such as a probability that changes from call to call
            record(self, found, inputs, (*static, *numbers))
        return found
