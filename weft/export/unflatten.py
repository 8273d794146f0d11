"""An exported program as a tree of modules again: `torch.export.unflatten`.

The nodes of a graph know which modules they were traced in. Each module that was called becomes an `InterpreterModule`, with the
parameters it had and a graph of its own, so that parts of a program can be looked at, and replaced.
"""

from __future__ import annotations

import abc
from typing import Any

from ..core.pytree import TreeSpec, tree_flatten, tree_leaves, tree_unflatten
from ..core.tensor import Tensor
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.interpreter import Interpreter
from ..fx.node import Node, map_arg
from ..nn import Module, Parameter
from .exported_program import ExportedProgram, ModuleCallSignature
from .graph_signature import ConstantArgument, InputKind

__all__ = [
    "FlatArgsAdapter", "InterpreterModule", "InterpreterModuleDispatcher", "UnflattenedModule", "unflatten",
]  # fmt: skip


class FlatArgsAdapter(abc.ABC):
    """Fits inputs that are arranged in another way to a program: a subclass says how, in `adapt`."""

    @abc.abstractmethod
    def adapt(
        self,
        target_spec: TreeSpec,
        input_spec: TreeSpec,
        input_args: list[Any],
        metadata: dict[str, Any] | None = None,
        obj: Any | None = None,
    ) -> list[Any]:
        """The leaves of the inputs as `target_spec` arranges them, from those that `input_spec` arranges."""

    def get_flat_arg_paths(self) -> list[str]:
        """The paths of inputs that the program is to accept."""
        return []


class _SubmoduleBase(Module):
    """A module that stands for one of the exported model."""

    _ty: str | None = None

    def type_name(self) -> str | None:
        """The class that the module had in the model, as text."""
        return self._ty

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
    ) -> str:
        """The code of the graph."""
        return _readable(self, self.graph, print_output, include_stride, include_device, colored)


class InterpreterModule(_SubmoduleBase):
    """A module that runs a graph. Its submodules and parameters are the attributes that the graph names."""

    def __init__(self, graph: Graph, ty: str | None = None):
        super().__init__()
        self.graph = graph
        self._ty = ty
        self.arg_names: list[str] = []
        self.finalize()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        given = list(args)
        given += [kwargs[name] for name in self.arg_names[len(given) :] if name in kwargs]
        return Interpreter(self, graph=self.graph).run(*given, enable_io_processing=False)

    def finalize(self) -> None:
        """Look for the arguments of the graph, after it was changed."""
        self.arg_names = [str(node.target) for node in self.graph.nodes if node.op == "placeholder"]


class InterpreterModuleDispatcher(_SubmoduleBase):
    """A module that was called more than once: each call runs the graph that was traced for it, in turn."""

    def __init__(self, attrs: set[str], call_modules: list[InterpreterModule]):
        super().__init__()
        if not call_modules:
            raise AssertionError("call_modules must not be empty")
        self._modules = call_modules[0]._modules
        for name in attrs:
            setattr(self, name, getattr(call_modules[0], name))
        self._call_modules = call_modules
        self._next = 0

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        module = self._call_modules[self._next]
        self._next = (self._next + 1) % len(self._call_modules)
        return module(*args, **kwargs)

    def call_modules(self) -> list[InterpreterModule]:
        """The module of each call."""
        return self._call_modules

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
    ) -> str:
        """The code of the graphs."""
        options = print_output, include_stride, include_device, colored
        return "\n".join(each.print_readable(*options) for each in self._call_modules)


def _readable(
    module: Module,
    graph: Graph,
    print_output: bool,
    include_stride: bool,
    include_device: bool,
    colored: bool,
) -> str:
    whole = GraphModule(module, graph)
    return whole.print_readable(print_output, include_stride, include_device, colored)


class UnflattenedModule(_SubmoduleBase):
    """A program with the modules of the model it was exported from. `unflatten` makes it."""

    def __init__(self, export_module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None):
        super().__init__()
        signature = export_module.module_call_graph[0].signature
        if signature is None:
            raise AssertionError("the program has no signature of its own")
        self.module_call_graph = export_module.module_call_graph
        self.flat_args_adapter = flat_args_adapter
        self.in_spec, self.out_spec = signature.in_spec, signature.out_spec
        self._sizes = [
            (node.meta["check"].source, node.meta["check"].sizes)
            for node in export_module.graph.nodes
            if "check" in node.meta
        ]
        _Unflattening(export_module, self).run()

    def process_forward_inputs(self, *args: Any, **kwargs: Any) -> list[Any]:
        """The leaves of the inputs, in the order of the graph's placeholders.

        Raises: TypeError if they are arranged in another way, and no adapter is there; RuntimeError for a wrong size.
        """
        leaves, spec = tree_flatten((args, kwargs))
        if spec != self.in_spec:
            names = self.in_spec.child(1).context
            if set(names) == set(kwargs):
                leaves, spec = tree_flatten((args, {name: kwargs[name] for name in names}))
        if spec != self.in_spec:
            if self.flat_args_adapter is None:
                raise TypeError(
                    "There is no flat args adapter specified. Are you sure you are calling this with the right arguments?\n"
                    f"expected: {self.in_spec}\ngot: {spec}"
                )
            leaves = self.flat_args_adapter.adapt(self.in_spec, spec, leaves)
            if len(leaves) != self.in_spec.num_leaves:
                raise TypeError(
                    f"Flat args adaption failed, number of args mismatch: {len(leaves)} and {self.in_spec.num_leaves}"
                )
        for (source, sizes), leaf in zip(self._sizes, leaves):
            self._check_sizes(source, sizes, leaf)
        return leaves

    @staticmethod
    def _check_sizes(source: str, sizes: list[Any] | None, leaf: Any) -> None:
        for dim, wanted in enumerate(sizes or ()):
            if isinstance(leaf, Tensor) and isinstance(wanted, int) and leaf.shape[dim] != wanted:
                raise RuntimeError(
                    f"Expected input at {source}.shape[{dim}] to be equal to {wanted}, but got {leaf.shape[dim]}. If you meant "
                    "for this dimension to be dynamic, please re-export and specify dynamic_shapes (e.g. with Dim.DYNAMIC)"
                )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        leaves = self.process_forward_inputs(*args, **kwargs)
        results = Interpreter(self, graph=self.graph).run(*leaves, enable_io_processing=False)
        return tree_unflatten(list(results), self.out_spec)

    def finalize(self) -> None:
        """Check the graph, after it was changed."""
        self.graph.lint()


def unflatten(module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> UnflattenedModule:
    """The program as a tree of modules, named as in the model it was exported from.

    Modules in `preserve_module_call_signature` of `export` take and return what they did in the model, so that others can take
    their place. The arguments of the rest are the tensors that their part of the graph needs.

    >>> import weft as torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    >>> torch.export.unflatten(torch.export.export(model, (torch.ones(1, 2),)))
    UnflattenedModule(
      (0): InterpreterModule()
      (1): InterpreterModule()
    )
    """
    return UnflattenedModule(module, flat_args_adapter)


# ---- Cutting the graph into modules -------------------------------------------------------------------------------------------


def leaves_of(value: Any) -> list[Any]:
    """The leaves of what a module returned, as a function of the graph."""
    return tree_leaves(value)


class _Unflattening:
    """Gives `root` the parameters, the submodules and the graph of a program."""

    def __init__(self, program: ExportedProgram, root: UnflattenedModule):
        self.program, self.root = program, root
        self.signatures = {
            each.fqn: each.signature for each in program.module_call_graph if each.fqn and each.signature
        }
        self.lifted: dict[Node, str] = {}  # placeholder -> the path of its parameter, buffer or constant
        self.graph = program.graph

    def run(self) -> None:
        specs = {each.arg.name: each for each in self.program.graph_signature.input_specs}
        body: list[Node] = []
        graph, mapping = Graph(), {}
        for node in self.graph.nodes:
            if node.op != "placeholder":
                body.append(node)
            elif specs[node.name].kind == InputKind.USER_INPUT:
                mapping[node] = graph.node_copy(node)
            else:
                self.lifted[node] = str(specs[node.name].target)
        for path in self.lifted.values():
            self._place(path)
        (output,) = [node for node in body if node.op == "output"]
        body.remove(output)
        self._fill(self.root, graph, mapping, body, 0, "", set(tree_leaves(output.args[0])))
        graph.output(
            tuple(map_arg(list(output.args[0]), lambda each: self._inside(graph, mapping, each, "")))
        )
        self.root.graph = graph

    def _place(self, path: str) -> None:
        """Put a parameter, buffer or constant where it was in the model."""
        *parents, name = path.split(".")
        module: Module = self.root
        for parent in parents:
            if parent not in module._modules:
                module.add_module(parent, InterpreterModule(Graph()))
            module = module._modules[parent]  # type: ignore[assignment]
        held = self.program.state_dict if path in self.program.state_dict else self.program.constants
        value = held[path]
        if isinstance(value, Parameter):
            module.register_parameter(name, value)
        elif isinstance(value, Tensor):
            module.register_buffer(name, value, persistent=held is self.program.state_dict)
        else:
            setattr(module, name, value)

    def _fill(
        self,
        module: Any,
        graph: Graph,
        mapping: dict[Node, Any],
        body: list[Node],
        depth: int,
        path: str,
        used: set[Any],
    ) -> None:
        """Copy nodes into the graph of a module; nodes of modules below become calls. `used` are nodes used after `body`."""
        place = 0
        while place < len(body):
            key = _key(body[place], depth)
            if key is None:
                node = body[place]
                mapping[node] = graph.node_copy(node, lambda each: self._inside(graph, mapping, each, path))
                place += 1
                continue
            end = place
            while end < len(body) and _key(body[end], depth) == key:
                end += 1
            part, rest = body[place:end], body[end:]
            later = used | {each for node in rest for each in node.all_input_nodes}
            self._call(module, graph, mapping, part, depth, path, key, later)
            place = end

    def _call(
        self,
        module: Any,
        graph: Graph,
        mapping: dict[Node, Any],
        part: list[Node],
        depth: int,
        path: str,
        key: str,
        later: set,
    ) -> None:
        own, kind = list(part[0].meta["nn_module_stack"].values())[depth]
        outputs = [node for node in part if node in later]
        inner = set(part)
        found = dict.fromkeys(each for node in part for each in node.all_input_nodes if each not in inner)
        prefix = f"{own}." if own else ""
        # Parameters of this module and of those below are attributes; tied ones of other modules are arguments.
        inputs = [
            each for each in found if not (each in self.lifted and self.lifted[each].startswith(prefix))
        ]
        target = own.removeprefix(f"{path}.") if path else own
        suffix = f"@{key.split('@')[1]}" if "@" in key else ""
        child_graph, child_map = Graph(), {}
        signature = self.signatures.get(own) if not suffix else None
        for each in inputs:
            child_map[each] = child_graph.placeholder(each.name)
            child_map[each].meta.update(each.meta)
        child = self._child(module, f"{target}{suffix}", kind)
        self._fill(child, child_graph, child_map, part, depth + 1, own, set(outputs))
        if signature is not None and self._fits(signature, inputs, outputs):
            self._preserve(graph, mapping, child, child_graph, child_map, target, signature, inputs, path)
        else:
            results = [child_map[each] for each in outputs]
            child_graph.output(results[0] if len(results) == 1 else tuple(results))
            args = tuple(self._inside(graph, mapping, each, path) for each in inputs)
            call = graph.call_module(f"{target}{suffix}", args)
            if len(outputs) == 1:
                mapping[outputs[0]] = call
            else:
                mapping.update({each: _item(graph, call, number) for number, each in enumerate(outputs)})
        child.graph = child_graph
        child.finalize()

    def _child(self, module: Module, name: str, kind: Any) -> InterpreterModule:
        """The submodule that a call becomes. A later call has a module of its own, with the same parameters."""
        ty = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
        found: Any = module
        *parents, last = name.split(".")
        for parent in parents:
            if parent not in found._modules:
                found.add_module(parent, InterpreterModule(Graph()))
            found = found._modules[parent]
        plain = found._modules.get(last.partition("@")[0])
        if last not in found._modules:
            made = InterpreterModule(Graph(), ty)
            if "@" in last and plain is not None:
                made._parameters, made._buffers = plain._parameters, plain._buffers
                made._modules.update(plain._modules)
            found.add_module(last, made)
        found._modules[last]._ty = ty
        return found._modules[last]

    def _inside(self, graph: Graph, mapping: dict[Node, Any], node: Node, path: str) -> Any:
        """The node of a module's graph for a node of the whole graph; parameters become attributes when first used."""
        if node not in mapping:
            name = self.lifted[node]
            first = next(iter(graph.nodes), None)
            with graph.inserting_before(first):
                made = graph.create_node("get_attr", name.removeprefix(f"{path}.") if path else name)
            made.meta.update(node.meta)
            mapping[node] = made
        return mapping[node]

    @staticmethod
    def _fits(signature: ModuleCallSignature, inputs: list[Node], outputs: list[Node]) -> bool:
        """Whether the part of the graph takes and gives only what the signature says."""
        taken = {each.name for each in signature.inputs}
        given = {each.name for each in signature.outputs}
        return {each.name for each in inputs} <= taken and {each.name for each in outputs} <= given

    def _preserve(
        self, graph: Graph, mapping: dict, child: Any, child_graph: Graph, child_map: dict, target: str,
        signature: ModuleCallSignature, inputs: list[Node], path: str,
    ) -> None:  # fmt: skip
        """Call the module as the model called it: with its arguments and containers."""
        nodes = {each.name: each for each in self.graph.nodes}

        def leaf(argument: Any, inside: Any) -> Any:
            return argument.value if isinstance(argument, ConstantArgument) else inside(nodes[argument.name])

        outer = [
            leaf(each, lambda node: self._inside(graph, mapping, node, path)) for each in signature.inputs
        ]
        args, kwargs = tree_unflatten(outer, signature.in_spec)
        call = graph.call_module(target, args, kwargs)
        child.__class__ = _PreservedModule
        child._in_spec, child._out_spec = signature.in_spec, signature.out_spec
        child._taken = [place for each in inputs for place in [_place_of(signature.inputs, each.name)]]
        results = [leaf(each, lambda node: child_map[node]) for each in signature.outputs]
        child_graph.output(tuple(results))
        listed = graph.call_function(leaves_of, (call,))
        for number, each in enumerate(signature.outputs):
            if not isinstance(each, ConstantArgument):
                mapping[nodes[each.name]] = _item(graph, listed, number)


class _PreservedModule(InterpreterModule):
    """A module that takes and returns what it did in the model."""

    _in_spec: TreeSpec
    _out_spec: TreeSpec
    _taken: list[int]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        names = self._in_spec.child(1).context
        ordered = {name: kwargs[name] for name in names} if set(names) == set(kwargs) else kwargs
        leaves, spec = tree_flatten((args, ordered))
        if (
            spec.num_leaves != self._in_spec.num_leaves
        ):  # the containers differ, because graphs hold immutable lists
            raise TypeError(f"{type(self).__name__}: expected the arguments {self._in_spec}, got {spec}")
        given = [leaves[place] for place in self._taken]
        results = Interpreter(self, graph=self.graph).run(*given, enable_io_processing=False)
        return tree_unflatten(list(results), self._out_spec)


_PreservedModule.__name__ = "InterpreterModule"


def _place_of(arguments: list[Any], name: str) -> int:
    return next(place for place, each in enumerate(arguments) if each.name == name)


def _key(node: Node, depth: int) -> str | None:
    """Which call of a module, at this depth, a node belongs to."""
    keys = list(node.meta.get("nn_module_stack") or {})
    return keys[depth] if depth < len(keys) else None


def _item(graph: Graph, of: Node, number: int) -> Node:
    import operator

    return graph.call_function(operator.getitem, (of, number))
