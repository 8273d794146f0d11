"""From a module and its example inputs to an exported program."""

from __future__ import annotations

import inspect
import re
from typing import Any

from .. import Tensor, arange
from ..fx.graph import Graph
from ..fx.node import Node
from ..nn import Module
from ..utils._pytree import tree_flatten, tree_map
from ._values import ValueTracer, trace
from .dynamic_shapes import Dim, _DimHint, _DimHintType, hints_of
from .exported_program import (
    ExportedProgram,
    ModuleCallEntry,
    ModuleCallSignature,
    Size,
    source_names,
)
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)


class Symbol:
    """A dynamic size: its name, bounds, and its value in each of the two runs."""

    def __init__(self, name: str, first: int, minimum: int, maximum: int, place: int):
        self.name, self.first = name, first
        self.minimum, self.maximum = minimum, maximum
        # Another size in the second run for each symbol, so that equal sizes are equal for a reason.
        wanted = first + 3 + 2 * place
        self.second = wanted if wanted <= maximum else (maximum if maximum != first else minimum)


class Symbols:
    """The dynamic sizes of all inputs."""

    def __init__(self) -> None:
        self.by_name: dict[str, Symbol] = {}

    def of(self, hint: Any, size: int) -> tuple[Symbol, int, str]:
        """For a dimension: its symbol, its size in the second run, and how it is written."""
        if isinstance(hint, Dim):
            root = hint.root
            slope = hint.evaluate(1) - hint.evaluate(0)
            own = (size - hint.evaluate(0)) // slope
            symbol = self._symbol(root.__name__, own, root.min, root.max)
            return symbol, hint.evaluate(symbol.second), hint.__name__
        low = 0 if hint.min is None else hint.min
        high = 2**63 - 1 if hint.max is None else hint.max
        # Dimensions without a name share a symbol if they have the same size.
        symbol = self._symbol(f"s{size}", size, low, high)
        return symbol, symbol.second, symbol.name

    def _symbol(self, name: str, size: int, low: int, high: int) -> Symbol:
        found = self.by_name.get(name)
        if found is None:
            found = self.by_name[name] = Symbol(name, size, low, high, len(self.by_name))
        elif found.first != size:
            raise ValueError(f"the dimension {name} is {found.first} in one input and {size} in another")
        return found


def capture(module: Module, args: tuple, kwargs: dict[str, Any], dynamic_shapes: Any) -> ExportedProgram:
    """`torch.export.export`, after its checks of the arguments."""
    parameters = list(inspect.signature(module.forward).parameters.values())
    names = _argument_names(parameters, args)
    leaves, spec = tree_flatten((args, kwargs))
    sources = source_names(names, args, kwargs)
    hints = _hints(dynamic_shapes, names, args, kwargs, leaves)
    symbols = Symbols()
    second, sizes = _second_inputs(leaves, hints, symbols)
    first = [each.clone() if isinstance(each, Tensor) else each for each in leaves]
    node_names = [_identifier(source) for source in sources]
    graph, tracer = trace(module, node_names, first, second, spec)
    inputs = [
        (name, source, sizes[place])
        for place, (name, source) in enumerate(zip(node_names, sources))
        if isinstance(leaves[place], Tensor)
    ]
    forward_names = [*names, *kwargs]
    return _program(module, graph, tracer, inputs, symbols, spec, forward_names, (args, kwargs), leaves)


def _argument_names(parameters: list[inspect.Parameter], args: tuple) -> list[str]:
    names = []
    for place in range(len(args)):
        parameter = parameters[min(place, len(parameters) - 1)]
        is_rest = parameter.kind is parameter.VAR_POSITIONAL
        first_rest = next((i for i, each in enumerate(parameters) if each.kind is each.VAR_POSITIONAL), 0)
        names.append(f"{parameter.name}_{place - first_rest}" if is_rest else parameter.name)
    return names


def _identifier(source: str) -> str:
    """`y['q'][0]` -> y_q_0, as PyTorch names placeholders."""
    return re.sub(r"\W+", "_", source).strip("_").lower()


def _hints(
    shapes: Any, names: list[str], args: tuple, kwargs: dict[str, Any], leaves: list[Any]
) -> list[dict]:
    """For each leaf of the inputs, the hints of its dimensions."""
    if shapes is None:
        return [{} for _ in leaves]
    from .dynamic_shapes import AdditionalInputs, ShapesCollection

    arguments = [*zip(names, args), *kwargs.items()]
    if isinstance(shapes, (list, tuple)):
        shapes = dict(zip([name for name, _ in arguments], shapes))
    elif isinstance(shapes, (ShapesCollection, AdditionalInputs)):
        raise TypeError("pass shapes.dynamic_shapes(module, args, kwargs)")
    found: list[dict] = []
    for name, value in arguments:
        _collect(value, shapes.get(name), found)
    return found


def _collect(value: Any, shapes: Any, found: list[dict]) -> None:
    """Walk a value and its shapes at the same time."""
    if isinstance(value, Tensor):
        found.append(hints_of(shapes, value))
    elif isinstance(value, dict):
        for key, each in value.items():
            _collect(each, None if shapes is None else shapes.get(key), found)
    elif isinstance(value, (list, tuple)):
        for place, each in enumerate(value):
            _collect(each, None if shapes is None else shapes[place], found)
    else:
        leaves, _ = tree_flatten(value)
        found.extend({} for _ in leaves)


def _second_inputs(leaves: list[Any], hints: list[dict], symbols: Symbols) -> tuple[list[Any], list[Any]]:
    """The inputs of the second run, and the sizes of each input, in which symbols are strings."""
    second: list[Any] = []
    all_sizes: list[Any] = []
    for leaf, hint in zip(leaves, hints, strict=True):
        if not isinstance(leaf, Tensor):
            second.append(leaf)
            all_sizes.append(None)
            continue
        other, sizes = leaf, list(leaf.shape)
        for dim, each in sorted(hint.items()):
            if isinstance(each, _DimHint) and each.type is _DimHintType.AUTO and leaf.shape[dim] < 2:
                continue  # PyTorch takes sizes 0 and 1 to be special, unless it is told
            _, size, name = symbols.of(each, leaf.shape[dim])
            # Elements of the first input again, so that indices stay valid.
            other = other.index_select(dim, arange(size) % max(leaf.shape[dim], 1))
            sizes[dim] = name
        second.append(other.clone())
        all_sizes.append(sizes)
    return second, all_sizes


# ---- The program --------------------------------------------------------------------------------------------------------

_PREFIXES = {InputKind.PARAMETER: "p_", InputKind.BUFFER: "b_", InputKind.CONSTANT_TENSOR: "c_"}


def _program(
    module: Module,
    traced: Graph,
    tracer: ValueTracer,
    inputs: list[tuple[str, str, Any]],
    symbols: Symbols,
    in_spec: Any,
    forward_names: list[str],
    example_inputs: Any,
    leaves: list[Any],
) -> ExportedProgram:
    state = module.state_dict(keep_vars=True)
    kinds, constants = _lifted(module, traced, state, tracer)
    graph = Graph()
    nodes: dict[Node, Node] = {}
    specs: list[InputSpec] = []
    lifted: dict[str, Node] = {}
    for target, kind in kinds.items():
        name = _PREFIXES[kind] + target.replace(".", "_")
        lifted[target] = graph.create_node("placeholder", name, name=name)
        persistent = target in state if kind is InputKind.BUFFER else None
        specs.append(InputSpec(kind, TensorArgument(lifted[target].name), target, persistent))
    by_name = {name: (source, sizes) for name, source, sizes in inputs}
    for node in traced.nodes:
        if node.op == "get_attr":
            nodes[node] = lifted[str(node.target)]
        else:
            nodes[node] = graph.node_copy(node, lambda each: nodes[each])
        if node in tracer.values:
            nodes[node].meta["val"] = tree_map(_described, tracer.values[node][0])
            nodes[node].meta["dynamic"] = _dynamic(tracer.values[node])
        if node.op == "placeholder":
            nodes[node].meta["source"], nodes[node].meta["sizes"] = by_name[str(node.target)]
            specs.append(InputSpec(InputKind.USER_INPUT, TensorArgument(nodes[node].name), None))
    graph.eliminate_dead_code()
    results = next(node for node in reversed(graph.nodes) if node.op == "output").args[0]
    outputs = [OutputSpec(OutputKind.USER_OUTPUT, _output(each), None) for each in results]
    signature = ExportGraphSignature(specs, outputs)
    entry = ModuleCallEntry("", ModuleCallSignature([], [], in_spec, tracer.out_spec, forward_names))
    ranges = {each.name: Size(each.minimum, each.maximum) for each in symbols.by_name.values()}
    return ExportedProgram(
        {}, graph, signature, module.state_dict(keep_vars=True), ranges, [entry], example_inputs, constants
    )


def _lifted(
    module: Module, graph: Graph, state: dict[str, Any], tracer: ValueTracer
) -> tuple[dict[str, InputKind], dict[str, Any]]:
    """The attributes that become placeholders, in PyTorch's order, and the tensors that are not in the state dict."""
    parameters = [name for name, _ in module.named_parameters(remove_duplicate=False)]
    buffers = [name for name, _ in module.named_buffers(remove_duplicate=False)]
    used = {str(node.target): node for node in graph.nodes if node.op == "get_attr"}
    kinds = {name: InputKind.PARAMETER for name in parameters if name in state}
    kinds |= {name: InputKind.BUFFER for name in buffers}
    constants = {}
    for name, node in used.items():
        if name not in kinds:
            kinds[name] = InputKind.CONSTANT_TENSOR
        if name not in state:
            constants[name] = tracer.values[node][0]
    for name in buffers:
        if name not in state and name not in constants:
            constants[name] = dict(module.named_buffers(remove_duplicate=False))[name]
    return kinds, constants


def _described(value: Any) -> Any:
    """A value as `meta["val"]` holds it: tensors without their memory."""
    return value.detach().to("meta") if isinstance(value, Tensor) else value


def _dynamic(values: tuple[Any, Any]) -> list[int] | None:
    """The dimensions of a tensor that differ from call to call."""
    first, second = values
    if not isinstance(first, Tensor):
        return None
    return [dim for dim, (a, b) in enumerate(zip(first.shape, second.shape)) if a != b]


def _output(value: Any) -> Any:
    if isinstance(value, Node):
        return (TensorArgument if isinstance(value.meta.get("val"), Tensor) else SymIntArgument)(value.name)
    return ConstantArgument("", value)
