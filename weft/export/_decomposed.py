"""`ExportedProgram.run_decompositions`: the program traced again, as a graph of operators that write to nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from ..core.grad_mode import no_grad
from ..core.pytree import tree_leaves, tree_map
from ..core.tensor import Tensor
from ..fx.experimental.proxy_tensor import ProxyTorchDispatchMode, PythonKeyTracer, trace
from ..fx.graph import Graph
from ..fx.node import Node
from ..library.fake_tensor import FakeTensorMode
from ..library.namespaces import ops
from .exported_program import ExportedProgram
from .graph_signature import InputKind, TensorArgument


def decomposed(program: ExportedProgram, table: Mapping[Any, Callable]) -> ExportedProgram:
    """The program with a graph of operators, decomposed by the table.

    Raises: NotImplementedError for dynamic sizes, and for writes that operators without writes cannot express.
    """
    if program.range_constraints:
        raise NotImplementedError(
            "run_decompositions of a program with dynamic sizes: operators are traced with ints"
        )
    fake_mode = FakeTensorMode(allow_non_fake_inputs=True)
    values = tree_map(lambda x: fake_mode.from_tensor(x) if isinstance(x, Tensor) else x, _values(program))
    mode = _Functional(PythonKeyTracer(), "fake", table)
    mode.inputs = tuple(each._storage for each in values if isinstance(each, Tensor))
    with no_grad():
        traced = trace(lambda *given: program.graph_module(*given), tuple(values), mode, fake_mode)
    graph = _renamed(traced, program.graph)
    graph.eliminate_dead_code()
    outputs: Any = graph.output_node().args[0]
    specs = [
        dataclasses.replace(spec, arg=TensorArgument(name=node.name)) if isinstance(node, Node) else spec
        for spec, node in zip(program.graph_signature.output_specs, outputs, strict=True)
    ]
    result = ExportedProgram(
        mode.tracer.root, graph, dataclasses.replace(program.graph_signature, output_specs=specs),
        program.state_dict, program.range_constraints, program.module_call_graph, program.example_inputs,
        program.constants, verifiers=program.verifiers,
    )  # fmt: skip
    result._guards_code = program._guards_code
    return result


def _values(program: ExportedProgram) -> list[Any]:
    """The values of the placeholders: the program's tensors, and the inputs that it was exported with."""
    users = iter(tree_leaves(program.example_inputs))
    found = []
    for spec in program.graph_signature.input_specs:
        if spec.kind == InputKind.USER_INPUT:
            found.append(next(users))
        else:
            held = program.state_dict if spec.target in program.state_dict else program.constants
            found.append(held[spec.target])  # type: ignore[index]
    return found


def _renamed(traced: Graph, original: Graph) -> Graph:
    """The traced graph with the placeholders of the original one."""
    graph = Graph()
    mapping: dict[Node, Node] = {}
    placeholders = (node for node in original.nodes if node.op == "placeholder")
    for node in traced.nodes:
        if node.op == "placeholder":
            own = next(placeholders)
            mapping[node] = graph.placeholder(own.name)
            mapping[node].meta.update(own.meta)
            if "val" in node.meta:
                mapping[node].meta["val"] = node.meta["val"]
        else:
            mapping[node] = graph.node_copy(node, lambda each: mapping[each])
    return graph


class _Functional(ProxyTorchDispatchMode):
    """Records an operator in place as the one that returns a new tensor, whose node takes the place of the written tensor."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.inputs: tuple = ()  # the storages of what must not be written
        self._stale: set[tuple] = (
            set()
        )  # (storage, offset and spec) of tensors whose memory was written by way of another tensor

    def track(self, value: Any, proxy: Any, constant: Any = None) -> None:
        if isinstance(value, Tensor):
            self._stale.discard((value._storage, (value._byte_offset, value.spec)))
        super().track(value, proxy, constant)

    def _known(self, tensor: Tensor) -> Any:
        if (tensor._storage, (tensor._byte_offset, tensor.spec)) in self._stale:
            raise NotImplementedError(
                "run_decompositions: a tensor was written to, and is read through another view afterwards"
            )
        return super()._known(tensor)

    def _recorded(self, func: Any, args: tuple, kwargs: dict[str, Any], is_constant: bool) -> Any:
        if not func._schema.is_mutable:
            return super()._recorded(func, args, kwargs, is_constant)
        written, functional = args[0], _functional(func)
        is_input = isinstance(written, Tensor) and any(written._storage is each for each in self.inputs)
        if functional is None or not isinstance(written, Tensor) or is_input:
            raise NotImplementedError(
                f"run_decompositions: {func} writes to a tensor, and there is no operator without writes for it, or the tensor "
                "is an input, a parameter or a buffer of the program"
            )
        given = tree_map(self.proxy_of, (args, kwargs))
        name = self.tracer.graph._target_to_str(functional._opname)
        proxy = self.tracer.create_proxy("call_function", functional, *given, name=name)
        result = func(*args, **kwargs)
        views = self._aliases.get(written._storage, ())
        self._stale.update((written._storage, key) for key in views)
        self.track(result, proxy)
        return result


def _functional(func: Any) -> Any:
    """The overload that computes what an overload in place writes; None if there is none."""
    name = func._opname
    if not name.endswith("_") or name.endswith("__"):
        return None
    packet = getattr(ops.aten, name[:-1], None)
    return None if packet is None else getattr(packet, func._overloadname, None)
