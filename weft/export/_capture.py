"""From a module and its example inputs to an exported program."""

from __future__ import annotations

import dataclasses
from typing import Any

from .. import Tensor
from ..compiler.errors import UserError
from ..core.pytree import tree_map
from ..fx.graph import Graph
from ..fx.node import Node, map_arg
from ..nn import Module
from ._guards import UNBOUNDED, Check, Size, SizeName, bounds_of
from ._inputs import ExampleInputs, Symbol, Symbols, second_inputs
from ._sizes import DataDependentError, SizesDiffer
from ._values import ModuleState, TraceInputs, ValueTracer, trace
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from .graph_signature import (
    ArgumentSpec,
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)


@dataclasses.dataclass
class Traced:
    """One successful trace."""

    graph: Graph
    tracer: ValueTracer
    symbols: Symbols


def capture(
    module: Module, args: tuple, kwargs: dict[str, Any], dynamic_shapes: Any, preserved: tuple[str, ...] = ()
) -> ExportedProgram:
    """`torch.export.export`, after its checks of the arguments."""
    inputs = ExampleInputs(module, args, kwargs, dynamic_shapes)
    missing = set(preserved) - {name for name, _ in module.named_modules(remove_duplicate=False)}
    if missing:
        raise ValueError(
            f"preserve_module_call_signature names {sorted(missing)}, which are no modules of the model"
        )
    limits: dict[str, tuple[int, int]] = {}
    for _ in range(20):
        try:
            traced = _traced(module, inputs, Symbols(limits=limits), preserved)
            break
        except SizesDiffer as error:
            if not _narrowed(limits, inputs, error):
                traced = _relaxed(module, inputs, error, preserved)
                break
    _refine(traced)
    return _program(module, inputs, traced)


def _traced(
    module: Module, inputs: ExampleInputs, symbols: Symbols, preserved: tuple[str, ...] = ()
) -> Traced:
    second, sizes = second_inputs(inputs, symbols)
    pairs: dict[tuple[int, int], str] = {}
    for each in symbols.by_name.values():
        pair = each.first, each.second
        pairs[pair] = "" if pair in pairs else each.name
    trace_inputs = TraceInputs(
        inputs.names,
        [each.detach().clone() if isinstance(each, Tensor) else each for each in inputs.leaves],
        second,
        inputs.spec,
        sizes,
        {pair: name for pair, name in pairs.items() if name},
        preserved,
        ModuleState(module),
    )
    return Traced(*trace(module, trace_inputs), symbols)


# ---- When the program takes a dynamic size for a constant ---------------------------------------------------------------


def _narrowed(limits: dict[str, tuple[int, int]], inputs: ExampleInputs, error: SizesDiffer) -> bool:
    """Limit a dimension without a name to the sizes for which a comparison is as for the example inputs."""
    symbols = Symbols(limits=limits)
    second_inputs(inputs, symbols)
    for symbol in symbols.by_name.values():
        for guard in () if symbol.is_named or error.guard is None else (error.guard, f"not {error.guard}"):
            bounds = bounds_of(guard, symbol.name)
            if bounds is None or not bounds[0] <= symbol.first <= bounds[1] or bounds[0] == bounds[1]:
                continue
            low, high = limits.get(symbol.source, (0, UNBOUNDED))
            limits[symbol.source] = max(low, bounds[0]), min(high, bounds[1])
            return True
    return False


def _relaxed(module: Module, inputs: ExampleInputs, error: SizesDiffer, preserved: tuple[str, ...]) -> Traced:
    """Trace with dimensions of equal size tied together, or with those static that `Dim.AUTO` allows to be.

    Raises: UserError, which says what dimension is to blame.
    """
    symbols = Symbols()
    second_inputs(inputs, symbols)
    shared = _attempt(module, inputs, Symbols(is_shared=True), preserved)
    if shared is not None and not any(each.is_named for each in symbols.by_name.values()):
        return shared
    autos = [each for each in symbols.by_name.values() if each.is_auto]
    constant = [each for each in symbols.by_name.values() if not _works_alone(module, inputs, each, symbols)]
    if autos:
        chosen = frozenset(each.source for each in autos if each in constant)
        for is_shared in (False, True):
            found = _attempt(module, inputs, Symbols(is_shared, chosen), preserved) if chosen else None
            if found is not None:
                return found
        static = frozenset(each.source for each in autos)
        found = _attempt(module, inputs, Symbols(False, static), preserved)
        if found is not None:
            return found
    raise UserError(_explanation(constant, symbols, shared is not None, error)) from error


def _attempt(
    module: Module, inputs: ExampleInputs, symbols: Symbols, preserved: tuple[str, ...]
) -> Traced | None:
    try:
        return _traced(module, inputs, symbols, preserved)
    except SizesDiffer:
        return None


def _works_alone(module: Module, inputs: ExampleInputs, symbol: Symbol, symbols: Symbols) -> bool:
    """Whether the program can be traced with this dimension dynamic and all others static."""
    others = [each for each in symbols.by_name.values() if each is not symbol]
    static = frozenset(each.name if each.is_named else each.source for each in others)
    return _attempt(module, inputs, Symbols(False, static), ()) is not None


def _explanation(constant: list[Symbol], symbols: Symbols, works_shared: bool, error: SizesDiffer) -> str:
    """What the program does with which dimension, and what to do about it."""
    named = [each for each in symbols.by_name.values() if not each.is_auto]
    pairs = [
        (first, second)
        for place, second in enumerate(named)
        for first in named[:place][-1:]
        if works_shared and first.first == second.first
    ]
    lines = [
        f"  - The values of {second.name} = {second.source} and {first.name} = {first.source} must always be equal."
        for first, second in pairs
    ]
    fixes = [f"  {second.name} = {first.name}" for first, second in pairs]
    named = [second for _, second in pairs] or [each for each in constant if not each.is_auto]
    for each in () if pairs else named:
        name = each.name if each.is_named else each.source
        bounds = None if error.guard is None else bounds_of(error.guard, each.name)
        if bounds is not None:
            inverse = bounds_of(f"not {error.guard}", each.name) or bounds
            low, high = bounds if bounds[0] <= each.first <= bounds[1] else inverse
            limit = f"max={high}" if high != UNBOUNDED else f"min={low}"
            lines.append(
                f"  - Not all values of {name} = {each.source} in the specified range satisfy {error.guard}"
            )
            fixes.append(f"  {name} = Dim('{name}', {limit})")
        else:
            lines.append(
                f"  - You marked {name} as dynamic but your code specialized it to be a constant ({each.first}). Replace "
                "Dim.DYNAMIC with Dim.STATIC or Dim.AUTO, or make the program compute this size from its inputs"
            )
            fixes += [f"  {name} = {each.first}"] if each.is_named else []
    names = ", ".join(each.name if each.is_named else each.source for each in named)
    text = "\n".join([f"Constraints violated ({names})!", *lines, f"  - {error}"])
    return text + ("\nSuggested fixes:\n" + "\n".join(fixes) if fixes else "")


def _refine(traced: Traced) -> None:
    """Narrow the bounds of the dynamic dimensions to the sizes for which the program decides alike.

    Raises: UserError if a Dim allows other sizes. Sizes 0 and 1 are left out of this, as PyTorch does.
    """
    for symbol in traced.symbols.by_name.values():
        for guard in traced.tracer.guards:
            bounds = bounds_of(guard, symbol.name)
            if bounds is None:
                continue
            low, high = bounds
            if symbol.is_named and (low > max(symbol.minimum, 2) or high < symbol.maximum):
                limits = [f"min={low}"] * (low > 2) + [f"max={high}"] * (high != UNBOUNDED)
                raise UserError(
                    f"Constraints violated ({symbol.name})!\n  - Not all values of {symbol.name} = {symbol.source} in the "
                    f"specified range satisfy the generated guard {guard}\nSuggested fixes:\n"
                    f"  {symbol.name} = Dim('{symbol.name}', {', '.join(limits)})"
                )
            if not symbol.is_named:
                symbol.minimum = max(symbol.minimum, low if low > 2 else 0)
                symbol.maximum = min(symbol.maximum, high)


# ---- The program --------------------------------------------------------------------------------------------------------

_PREFIXES = {InputKind.PARAMETER: "p_", InputKind.BUFFER: "b_", InputKind.CONSTANT_TENSOR: "c_"}


def _program(module: Module, inputs: ExampleInputs, traced: Traced) -> ExportedProgram:
    tracer = traced.tracer
    kinds, constants = _lifted(module, traced.graph, tracer)
    graph = Graph()
    specs, lifted = _attributes(module, kinds, graph)
    nodes = _copied(traced, inputs, graph, specs, lifted)
    graph.eliminate_dead_code(lambda node: node.is_impure() or "writes" in node.meta)
    results = next(node for node in reversed(graph.nodes) if node.op == "output").args[0]
    outputs = [OutputSpec(OutputKind.USER_OUTPUT, argument_of(each), None) for each in results]
    whole = ModuleCallSignature([], [], inputs.spec, tracer.out_spec, inputs.forward_names)
    entries = [ModuleCallEntry("", whole), *_module_calls(module, graph, tracer, nodes)]
    ranges = {
        SizeName(each.name): Size(each.minimum, each.maximum) for each in traced.symbols.by_name.values()
    }
    program = ExportedProgram(
        {},
        graph,
        ExportGraphSignature(specs, outputs),
        module.state_dict(keep_vars=True),
        ranges,
        entries,
        (inputs.args, inputs.kwargs),
        constants,
    )
    program._guards_code = [each for each in tracer.guards]
    return program


def _attributes(
    module: Module, kinds: dict[str, InputKind], graph: Graph
) -> tuple[list[InputSpec], dict[str, Node]]:
    """Placeholders for parameters, buffers and constants."""
    state = module.state_dict(keep_vars=True)
    specs: list[InputSpec] = []
    lifted: dict[str, Node] = {}
    for target, kind in kinds.items():
        name = _PREFIXES[kind] + target.replace(".", "_")
        lifted[target] = graph.create_node("placeholder", name, name=name)
        persistent = target in state if kind is InputKind.BUFFER else None
        specs.append(InputSpec(kind, TensorArgument(lifted[target].name), target, persistent))
    return specs, lifted


def _copied(
    traced: Traced, inputs: ExampleInputs, graph: Graph, specs: list[InputSpec], lifted: dict[str, Node]
) -> dict[Node, Node]:
    """Copy the traced nodes, with what is known of their values, and add the specs of the user's inputs."""
    tracer = traced.tracer
    nodes: dict[Node, Node] = {}
    leaves = iter(zip(inputs.leaves, inputs.sources, inputs.names))
    for node in traced.graph.nodes:
        if node.op == "get_attr":
            nodes[node] = lifted[str(node.target)]
        else:
            nodes[node] = graph.node_copy(node, lambda each: nodes[each])
        meta = nodes[node].meta
        meta.pop("is_wrapped", None)  # else the code of the program would register the function again
        if node in tracer.values:
            meta["val"] = tree_map(_described, tracer.values[node][0])
            meta["dynamic"] = _dynamic(tracer.values[node])
        if node in tracer.writes:
            same, others = tracer.writes[node]
            meta["writes"] = ([nodes[each] for each in same], [nodes[each] for each in others])
        if node.op == "placeholder":
            leaf, source, name = next(leaves)
            is_tensor = isinstance(leaf, Tensor)
            meta["check"] = Check(source, tracer.inputs.sizes.get(name), None if is_tensor else leaf)
            arg = TensorArgument(nodes[node].name) if is_tensor else ConstantArgument(nodes[node].name, leaf)
            specs.append(InputSpec(InputKind.USER_INPUT, arg, None))
    return nodes


def _lifted(module: Module, graph: Graph, tracer: ValueTracer) -> tuple[dict[str, InputKind], dict[str, Any]]:
    """The attributes that become placeholders, in PyTorch's order, and the tensors that are not in the state dict."""
    state = module.state_dict(keep_vars=True)
    buffers = dict(module.named_buffers(remove_duplicate=False))
    kinds = {
        name: InputKind.PARAMETER
        for name, _ in module.named_parameters(remove_duplicate=False)
        if name in state
    }
    kinds |= {name: InputKind.BUFFER for name in buffers}
    constants = {name: value for name, value in buffers.items() if name not in state}
    for name in dict.fromkeys(str(node.target) for node in graph.nodes if node.op == "get_attr"):
        if name not in kinds:
            kinds[name] = InputKind.CONSTANT_TENSOR
            constants[name] = tracer.original(name)
    return kinds, constants


def _module_calls(
    module: Module, graph: Graph, tracer: ValueTracer, nodes: dict[Node, Node]
) -> list[ModuleCallEntry]:
    """An entry for each submodule that was called, with a signature for those that keep theirs."""
    called: dict[str, None] = {}
    for node in graph.nodes:
        for path, _ in (node.meta.get("nn_module_stack") or {}).values():
            called.setdefault(path)
    entries = []
    for path in called:
        signature = None
        if path in tracer.module_calls:
            call = tracer.module_calls[path]
            inputs, outputs = (
                [argument_of(map_arg(each, lambda one: nodes[one])) for each in side]
                for side in (call.inputs, call.outputs)
            )
            signature = ModuleCallSignature(inputs, outputs, call.in_spec, call.out_spec)
        if path:
            entries.append(ModuleCallEntry(path, signature))
    return entries


def _described(value: Any) -> Any:
    """A value as `meta["val"]` holds it: tensors without their memory."""
    return value.detach().to("meta") if isinstance(value, Tensor) else value


def _dynamic(values: tuple[Any, Any]) -> list[int] | None:
    """The dimensions of a tensor that differ from call to call."""
    first, second = values
    if not isinstance(first, Tensor):
        return None
    return [dim for dim, (a, b) in enumerate(zip(first.shape, second.shape)) if a != b]


def argument_of(value: Any) -> ArgumentSpec:
    """How a signature names a node or a constant."""
    if not isinstance(value, Node):
        return ConstantArgument("", value)
    known = value.meta.get("val")
    kind = (
        TensorArgument
        if isinstance(known, Tensor)
        else SymFloatArgument
        if isinstance(known, float)
        else SymIntArgument
    )
    return kind(value.name)


__all__ = ["DataDependentError", "capture"]
