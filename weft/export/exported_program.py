"""An exported program: a graph of functions, the tensors it needs, and how its inputs and outputs are arranged."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn

from ..core.pytree import TreeSpec, tree_flatten
from ..core.tensor import Tensor
from ..fx._codegen import _PyTreeCodeGen, _PyTreeInfo
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..nn import Module, Parameter
from ._guards import GuardsFn
from .decomp_utils import CustomDecompTable
from .graph_signature import ArgumentSpec, ExportGraphSignature, InputKind

__all__ = ["ExportedProgram", "ModuleCallEntry", "ModuleCallSignature", "default_decompositions"]


@dataclasses.dataclass
class ModuleCallSignature:
    """The inputs and outputs of a module, and how they are arranged."""

    inputs: list[ArgumentSpec]
    outputs: list[ArgumentSpec]
    in_spec: TreeSpec
    out_spec: TreeSpec
    forward_arg_names: list[str] | None = None

    def replace_all_uses_with(self, original_node: Node, new_node: Node) -> None:
        """Rename a node in the inputs and outputs."""
        for each in (*self.inputs, *self.outputs):
            if each.name == original_node.name:
                each.name = new_node.name


@dataclasses.dataclass
class ModuleCallEntry:
    """A module of the program that keeps its signature; the whole program is the one named ""."""

    fqn: str
    signature: ModuleCallSignature | None = None


class CallSpec(NamedTuple):
    """How inputs and outputs are arranged."""

    in_spec: TreeSpec | None
    out_spec: TreeSpec | None


class ExportedProgram:
    """What `torch.export.export` returns. `module()` gives a module to call.

    `graph_module` holds the graph: its placeholders are first the parameters, buffers and constant tensors, then the
    tensors among the user's inputs. `graph_signature` says which is which.
    """

    def __init__(
        self,
        root: Module | dict[str, Any],
        graph: Graph,
        graph_signature: ExportGraphSignature,
        state_dict: dict[str, Tensor | Parameter],
        range_constraints: dict[Any, Any],
        module_call_graph: list[ModuleCallEntry],
        example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None,
        constants: dict[str, Any] | None = None,
        *,
        verifiers: list[type] | None = None,
    ):
        self._graph_module = GraphModule(root, graph)
        self._graph_signature = graph_signature
        self._state_dict = state_dict
        self._range_constraints = range_constraints
        self._module_call_graph = module_call_graph
        self._example_inputs = example_inputs
        self._constants = constants or {}
        self._verifiers = verifiers or []
        self._guards_code: list[str] = []  # comparisons of dynamic sizes that must hold
        self.validate()

    @property
    def graph_module(self) -> GraphModule:
        """The graph as a module that takes all placeholders, parameters included."""
        return self._graph_module

    @graph_module.setter
    def graph_module(self, value: Any) -> None:
        raise RuntimeError("Unable to set ExportedProgram's graph_module attribute.")

    @property
    def graph(self) -> Graph:
        return self._graph_module.graph

    @property
    def graph_signature(self) -> ExportGraphSignature:
        return self._graph_signature

    @property
    def state_dict(self) -> dict[str, Any]:
        return self._state_dict

    def parameters(self) -> Iterator[Parameter]:
        for _, each in self.named_parameters():
            yield each

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        for name in self.graph_signature.parameters:
            yield name, self.state_dict[name]

    def buffers(self) -> Iterator[Tensor]:
        for _, each in self.named_buffers():
            yield each

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        transient = set(self.graph_signature.non_persistent_buffers)
        for name in self.graph_signature.buffers:
            yield name, (self.constants if name in transient else self.state_dict)[name]

    @property
    def range_constraints(self) -> dict[Any, Any]:
        return self._range_constraints

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        return self._module_call_graph

    @property
    def example_inputs(self) -> Any:
        return self._example_inputs

    @property
    def constants(self) -> dict[str, Any]:
        return self._constants

    @property
    def tensor_constants(self) -> dict[str, Any]:
        return self._constants

    @property
    def dialect(self) -> str:
        return "TRAINING"

    @property
    def verifiers(self) -> list[type]:
        return self._verifiers

    @property
    def verifier(self) -> Any:
        return self._verifiers[0] if self._verifiers else None

    @property
    def call_spec(self) -> CallSpec:
        signature = self._module_call_graph[0].signature
        return CallSpec(None, None) if signature is None else CallSpec(signature.in_spec, signature.out_spec)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def __str__(self) -> str:
        code = self.graph_module.print_readable(print_output=False).replace("\n", "\n    ")
        signature = str(self.graph_signature).replace("\n", "\n    ")
        return f"ExportedProgram:\n    {code}\nGraph signature: {signature}\nRange constraints: {self.range_constraints}\n"

    def module(self, check_guards: bool = True) -> GraphModule:
        """A module with the parameters of this program, which takes and returns what the exported module does."""
        graph, tensors = self._unlifted()
        root: dict[str, Any] = dict(tensors)
        if check_guards:
            root["_guards_fn"] = self._guards()
            users = [node for node in graph.nodes if node.op == "placeholder"]
            with graph.inserting_after(users[-1]) if users else graph.inserting_before():
                graph.call_module("_guards_fn", tuple(users))
        module = GraphModule(root, graph)
        signature = self._module_call_graph[0].signature
        assert signature is not None and signature.forward_arg_names is not None
        info = _PyTreeInfo(signature.forward_arg_names, signature.in_spec, signature.out_spec)
        graph.set_codegen(_PyTreeCodeGen(info))
        module.recompile()

        def refuse(mode: bool = True) -> NoReturn:
            raise NotImplementedError(f"Calling {'train' if mode else 'eval'}() is not supported yet.")

        module.register_forward_pre_hook(_StructureCheck(signature.in_spec), with_kwargs=True)
        module.train = refuse  # type: ignore[assignment,method-assign]
        module.eval = lambda: refuse(False)  # type: ignore[assignment,method-assign]
        return module

    def _unlifted(self) -> tuple[Graph, dict[str, Any]]:
        """The graph in which parameters, buffers and constants are attributes, and these by name."""
        graph = Graph()
        tensors: dict[str, Any] = {}
        specs = {each.arg.name: each for each in self.graph_signature.input_specs}
        mapping: dict[Node, Node] = {}
        for node in self.graph.nodes:
            if node.op == "get_attr":
                tensors[str(node.target)] = getattr(self.graph_module, str(node.target))
            spec = specs.get(node.name) if node.op == "placeholder" else None
            if spec is None or spec.kind == InputKind.USER_INPUT:
                mapping[node] = graph.node_copy(node, lambda each: mapping[each])
                continue
            assert spec.target is not None
            held = self.state_dict if spec.target in self.state_dict else self.constants
            tensors[spec.target] = held[spec.target]
            mapping[node] = graph.create_node("get_attr", spec.target)
            mapping[node].meta.update(node.meta)
        return graph, tensors

    def _guards(self) -> GuardsFn:
        checks = [node.meta["check"] for node in self.graph.nodes if "check" in node.meta]
        return GuardsFn(checks, dict(self.range_constraints), self._guards_code)

    def run_decompositions(
        self, decomp_table: Mapping[Any, Callable] | None = None, decompose_custom_triton_ops: bool = False
    ) -> ExportedProgram:
        """The same program as a graph of operators of `torch.ops.aten`, without operators in place.

        decomp_table: operator -> a function to call in its place; `default_decompositions()` if None.
        Raises: NotImplementedError for dynamic sizes, for writes to inputs and buffers, and for writes to tensors that are read
        through another view afterwards.
        """
        from ._decomposed import decomposed  # it makes an ExportedProgram

        return decomposed(self, default_decompositions() if decomp_table is None else decomp_table)

    def validate(self) -> None:
        """Check that the graph is well formed and that the signature fits it."""
        self.graph.lint()
        placeholders = [node.name for node in self.graph.nodes if node.op == "placeholder"]
        if len(placeholders) != len(self.graph_signature.input_specs):
            raise RuntimeError(
                f"the graph has {len(placeholders)} placeholders, its signature {len(self.graph_signature.input_specs)} inputs"
            )


def default_decompositions() -> CustomDecompTable:
    """The decompositions of the operators that are not in PyTorch's core set, which programs may change before they use it."""
    return CustomDecompTable()


class _StructureCheck:
    """A hook: the arguments are arranged as those that the program was exported with."""

    def __init__(self, spec: TreeSpec):
        self.spec = spec

    def __call__(self, module: Module, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        names = self.spec.child(1).context
        ordered = {name: kwargs[name] for name in names} if set(names) == set(kwargs) else kwargs
        _, given = tree_flatten((args, ordered))
        if given != self.spec:
            raise ValueError(
                f"Trying to flatten user inputs with exported input tree spec: \n{self.spec}\nbut actually got inputs with tree "
                f"spec of: \n{given}.\nPlease check that the inputs have the same number and type of args and kwargs as the "
                "ones you used when tracing."
            )
        return args, ordered
