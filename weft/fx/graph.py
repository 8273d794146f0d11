"""The graph: a list of nodes that can be read, changed and written as Python.

>>> import weft as torch
>>> graph = torch.fx.Graph()
>>> x = graph.placeholder("x")
>>> node = graph.call_function(torch.relu, (x,))
>>> _ = graph.output(node)
>>> print(graph)
graph():
    %x : [num_users=1] = placeholder[target=x]
    %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
    return relu
>>> print(graph.python_code("self").src.strip())
def forward(self, x):
    relu = torch.relu(x);  x = None
    return relu
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..core.warn import user_level
from ..library.qualified_name import is_from_torch as _is_from_torch  # noqa: F401 (as above)
from ._codegen import (  # noqa: F401 (programs import these from here, as from PyTorch)
    CodeGen,
    PythonCode,
    _BoxedCodeGen,
    _ExportCodeGen,
    _format_target,
    _parse_stack_trace,
    _ParsedStackTrace,
    _PyTreeCodeGen,
    _PyTreeInfo,
    inplace_methods,
    magic_methods,
    own_names,
    reflectable_magic_methods,
)
from ._compatibility import compatibility
from ._namespace import (  # noqa: F401 (as above)
    _custom_builtins,
    _CustomBuiltin,
    _illegal_names,
    _Namespace,
    _register_custom_builtin,
    _snake_case,
)
from .node import (  # noqa: F401 (as above)
    Argument,
    Node,
    Target,
    _get_qualified_name,
    _type_repr,
    dtype_abbrs,
    map_arg,
)

if TYPE_CHECKING:
    from ._symbolic_trace import Tracer
    from .graph_module import GraphModule

__all__ = ["CodeGen", "Graph", "PythonCode"]

TransformCodeFunc = Callable[[list[str]], list[str]]
_legal_ops = dict.fromkeys(
    ("call_function", "call_method", "get_attr", "call_module", "placeholder", "output")
)


def _is_magic(x: str) -> bool:
    return x.startswith("__") and x.endswith("__")


class _node_list:  # noqa: N801 (PyTorch's name)
    """The nodes of a graph as a sequence that shows later changes, as `Graph.nodes`."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        if direction not in ("_next", "_prev"):
            raise AssertionError(f"direction must be '_next' or '_prev', got {direction}")
        self.graph = graph
        self.direction = direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root, step = self.graph._root, self.direction
        current = getattr(root, step)
        while current is not root:
            if not current._erased:
                yield current
            current = getattr(current, step)

    def __reversed__(self) -> _node_list:
        return _node_list(self.graph, "_next" if self.direction == "_prev" else "_prev")


class _InsertPoint:
    """A context manager: inside, new nodes go to another place."""

    def __init__(self, graph: Graph, new_insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.orig_insert, graph._insert = graph._insert, new_insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, type: Any, value: Any, tb: Any) -> None:
        self.graph._insert = self.orig_insert


class _FindNodesLookupTable:
    """The nodes of a graph by their op, those of functions and modules by their target as well."""

    def __init__(self) -> None:
        self.table: dict[tuple[str, Any], dict[Node, None]] = defaultdict(dict)

    def _key(self, node: Node) -> tuple[str, Any]:
        return (node.op, node.target if node.op == "call_function" else None)

    def __contains__(self, node: Node) -> bool:
        return node in self.table[self._key(node)]

    def insert(self, node: Node) -> None:
        self.table[self._key(node)][node] = None

    def remove(self, node: Node) -> None:
        self.table[self._key(node)].pop(node)

    def find_nodes(self, *, op: str, target: Target | None = None) -> list[Node]:
        if op == "call_function":
            if target is None:
                raise AssertionError("target must not be None for call_function op")
            return [*self.table[(op, target)]]
        found = [*self.table[(op, None)]]
        return found if target is None else [node for node in found if node.target == target]


@compatibility(is_backward_compatible=True)
class Graph:
    """A list of nodes, in the order in which they are carried out.

    New nodes go to the end, or where `inserting_before` and `inserting_after` say.
    """

    @compatibility(is_backward_compatible=True)
    def __init__(
        self,
        owning_module: GraphModule | None = None,
        tracer_cls: type[Tracer] | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._root: Node = Node(self, "", "root", "", (), {})
        self._used_names: dict[str, int] = {}
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}
        self._find_nodes_lookup_table = _FindNodesLookupTable()

    @property
    def owning_module(self) -> GraphModule | None:
        """The module whose attributes the nodes refer to."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: GraphModule | None) -> None:
        self._owning_module = mod

    @property
    def nodes(self) -> _node_list:
        """The nodes in their order. The list follows changes; `reversed` gives them from the last to the first."""
        return _node_list(self)

    @compatibility(is_backward_compatible=False)
    def output_node(self) -> Node:
        """The node with the result."""
        last = self._root._prev
        if last.op != "output":
            raise AssertionError(f"Expected output node, got op={last.op}")
        return last

    @compatibility(is_backward_compatible=False)
    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes with this op and, if it is given, this target, without a look at all the others."""
        found = self._find_nodes_lookup_table.find_nodes(op=op, target=target)
        return sorted(found) if sort else found

    # ---- Copies ---------------------------------------------------------------------------------------------------------

    @compatibility(is_backward_compatible=True)
    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Argument | None:
        """Append copies of all nodes of `g` but its output, and return what that gives back, in terms of this graph.

        `val_map` takes nodes of `g` to nodes here; those in it are not copied, and the copies are added.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda each: val_map[each])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda each: val_map[each])
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        memo = memo if memo is not None else {}
        g = Graph(tracer_cls=self._tracer_cls)
        val_map: dict[Node, Node] = {}
        output_vals = g.graph_copy(self, val_map=val_map, return_output_node=True)
        g._codegen = copy.deepcopy(self._codegen)
        if output_vals is not None:
            if not isinstance(output_vals, tuple):
                raise AssertionError(f"Expected tuple output_vals, got {type(output_vals)}")
            result, old_output = output_vals
            new_output = g.output(result, type_expr=getattr(old_output, "type", None))
            new_output.meta = copy.copy(old_output.meta)
        memo[id(self)] = g
        for old, new in val_map.items():
            memo[id(old)] = new
        return g

    @compatibility(is_backward_compatible=True)
    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda node: node) -> Node:
        """Insert a copy of a node, maybe of another graph; `arg_transform` takes the nodes in its arguments to new ones."""
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        if not isinstance(args, tuple):
            raise AssertionError(f"Expected args to be tuple, got {type(args)}")
        if not isinstance(kwargs, dict):
            raise AssertionError(f"Expected kwargs to be dict, got {type(kwargs)}")
        result = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        result.meta = copy.copy(node.meta)
        return result

    # ---- New nodes ------------------------------------------------------------------------------------------------------

    @compatibility(is_backward_compatible=True)
    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Insert a node. The name is made of `name`, or of the target."""
        if op not in _legal_ops:
            raise AssertionError(f"op {op!r} is not in _legal_ops")
        args = () if args is None else args
        kwargs = {} if kwargs is None else kwargs
        if not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        candidate = name if name is not None else self._target_to_str(target)
        unique = self._graph_namespace.create_name(candidate, None)
        node = Node(self, unique, op, target, args, kwargs, type_expr)
        for hook in getattr(self.owning_module, "_create_node_hooks", ()):
            hook(node)
        self._graph_namespace.associate_name_with_obj(unique, node)
        self._insert(node)
        self._find_nodes_lookup_table.insert(node)
        self._len += 1
        return node

    @compatibility(is_backward_compatible=True)
    def placeholder(
        self, name: str, type_expr: Any | None = None, default_value: Any = inspect.Signature.empty
    ) -> Node:
        """Insert an input. A name that begins with `*` or `**` takes further arguments, as in a signature."""
        args = () if default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    @compatibility(is_backward_compatible=True)
    def get_attr(self, qualified_name: str, type_expr: Any | None = None) -> Node:
        """Insert a node that takes the attribute `qualified_name` ("layer.weight") of the module."""
        owner = self.owning_module
        if owner and not _has_attribute(owner, qualified_name):
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to add the necessary "
                "Parameter, or nn.Module.register_buffer to add the necessary buffer",
                stacklevel=user_level(),
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    @compatibility(is_backward_compatible=True)
    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Insert a call of the submodule `module_name` ("layers.0")."""
        owner = self.owning_module
        if owner and owner.get_submodule(module_name) is None:
            warnings.warn(
                "Attempted to insert a call_module Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule",
                stacklevel=user_level(),
            )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    @compatibility(is_backward_compatible=True)
    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Insert a call of the method `method_name` of `args[0]`."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    @compatibility(is_backward_compatible=True)
    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any | None = None,
        name: str | None = None,
    ) -> Node:
        """Insert a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    @compatibility(is_backward_compatible=True)
    def output(self, result: Argument, type_expr: Any | None = None) -> Node:
        """Insert the node that gives back `result`. A graph has one, at its end."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def _target_to_str(self, target: Target | None) -> str:
        """A name for a node with this target."""
        if callable(target):
            name = getattr(target, "__name__", None) or type(target).__name__
        else:
            name = str(target)
            if _is_magic(name):
                name = name[2:-2]
        return _snake_case(name)

    # ---- Changes --------------------------------------------------------------------------------------------------------

    @compatibility(is_backward_compatible=True)
    def erase_node(self, to_erase: Node) -> None:
        """Take a node that nobody uses out of the graph."""
        if len(to_erase.users) > 0:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        if to_erase.graph != self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=user_level())
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", ()):
            hook(to_erase)
        self._find_nodes_lookup_table.remove(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        # The arguments go, so that their nodes do not count this one as a user.
        to_erase._update_args_kwargs(
            map_arg(to_erase.args, lambda each: None), map_arg(to_erase.kwargs, lambda each: None)
        )

    @compatibility(is_backward_compatible=True)
    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """A context manager: inside, new nodes go before `n`, or to the beginning of the graph."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    @compatibility(is_backward_compatible=True)
    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """A context manager: inside, new nodes go after `n`, or to the end of the graph."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    @compatibility(is_backward_compatible=True)
    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase nodes whose results nobody uses, unless they have effects. Returns whether there were any.

        `is_impure_node` says what has effects; without it `Node.is_impure` does.
        """
        self.lint()
        has_effects = is_impure_node or Node.is_impure
        before = len(self.nodes)
        for node in reversed(self.nodes):
            if not node.users and not has_effects(node):
                self.erase_node(node)
        return len(self.nodes) != before

    def _clear_nodes(self) -> None:
        for node in reversed(self.nodes):
            node.meta.clear()
            self.erase_node(node)

    # ---- Code -----------------------------------------------------------------------------------------------------------

    @compatibility(is_backward_compatible=False)
    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders, given the arguments of `forward`."""
        return self._codegen.process_inputs(*args)

    @compatibility(is_backward_compatible=False)
    def process_outputs(self, out: Any) -> Any:
        """What `forward` gives back, given the argument of the output."""
        return self._codegen.process_outputs(out)

    @compatibility(is_backward_compatible=False)
    def set_codegen(self, codegen: CodeGen) -> None:
        """Write code with another CodeGen."""
        self._codegen = codegen

    @compatibility(is_backward_compatible=False)
    def on_generate_code(
        self, make_transformer: Callable[[TransformCodeFunc | None], TransformCodeFunc]
    ) -> Any:
        """Change the lines of the body before they become a function, from now on or inside a `with`.

        `make_transformer` gets the function that changes them so far, or None, and returns the one to use.
        """
        old = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(old)

        class Restore:
            def __enter__(self) -> None:
                pass

            def __exit__(_, type: Any, value: Any, tb: Any) -> None:
                self._codegen._body_transformer = old

        return Restore()

    @compatibility(is_backward_compatible=True)
    def python_code(
        self,
        root_module: str,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        record_func: bool = False,
        additional_meta: list[str] | None = None,
    ) -> PythonCode:
        """The graph as the source of a function; `root_module` is the name of the module in it ("self").

        `verbose` adds the lines of the program and the shapes that passes noted.
        """
        namespace = _Namespace()
        with own_names(self.nodes, namespace):
            return self._python_code(
                root_module,
                namespace,
                verbose=verbose,
                include_stride=include_stride,
                include_device=include_device,
                colored=colored,
                expanded_def=expanded_def,
                record_func=record_func,
                additional_meta=additional_meta,
            )

    def _python_code(self, root_module: str, namespace: _Namespace, **options: Any) -> PythonCode:
        return self._codegen._gen_python_code(self.nodes, root_module, namespace, **options)

    def __str__(self) -> str:
        return "".join(["graph():", *(f"\n    {node.format_node()}" for node in self.nodes)])

    @compatibility(is_backward_compatible=True)
    def print_tabular(self) -> None:
        """Print the nodes as a table. Needs the package `tabulate`."""
        try:
            from tabulate import tabulate
        except ImportError:
            print(
                "`print_tabular` relies on the library `tabulate`, which could not be found on this machine. Run `pip "
                "install tabulate` to install the library."
            )
            raise
        rows = [[node.op, node.name, node.target, node.args, node.kwargs] for node in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))

    # ---- Checks ---------------------------------------------------------------------------------------------------------

    @compatibility(is_backward_compatible=True)
    def lint(self) -> None:
        """Raise RuntimeError unless the graph is in order.

        Each argument is computed before it is used and belongs to this graph, names are unique, and the module has what
        the nodes refer to.
        """
        seen_names: set[str] = set()
        seen: set[Node] = set()
        for node in self.nodes:
            if node.op not in _legal_ops:
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            if node not in self._find_nodes_lookup_table:
                raise RuntimeError(f"Node '{node}' is not added to the side table")
            for used in node._input_nodes:
                self._check_argument(used, node, seen)
            seen.add(node)
            if node.name in seen_names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen_names.add(node.name)
        self._check_targets()

    def _check_argument(self, used: Node, node: Node, seen: set[Node]) -> None:
        if used.graph is not self:
            raise RuntimeError(
                f"Argument '{used}' of Node '{node}' does not belong to this Graph, but was used as an argument! If you "
                "are copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() to remap values\n"
                f"{self}"
            )
        if used not in seen:
            raise RuntimeError(
                f"Argument '{used}' of Node '{node}' was used before it has been defined! Please check that Nodes in the "
                f"graph are topologically ordered\n{self}"
            )

    def _check_targets(self) -> None:
        for node in self.nodes:
            if node.op == "call_function" and not callable(node.target):
                raise ValueError(
                    f"Node {node} target {node.target} has type {type(node.target)} but a Callable is expected"
                )
            if node.op != "call_function" and not isinstance(node.target, str):
                raise ValueError(
                    f"Node {node} target {node.target} has type {type(node.target)} but a str is expected"
                )
            if node.op in ("get_attr", "call_module") and self.owning_module is not None:
                self._check_path(node)

    def _check_path(self, node: Node) -> None:
        """Whether the owning module has what a node refers to."""
        current: Any = self.owning_module
        parts = str(node.target).split(".")
        for place, part in enumerate(parts):
            if not hasattr(current, part):
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute {part} of "
                    f"{'.'.join(parts[:place])}"
                )
            current = getattr(current, part)
        from ..nn import Module

        if node.op == "call_module" and not isinstance(current, Module):
            raise RuntimeError(
                f"Node {node} target {node.target} {part} of {'.'.join(parts[:-1])} does not reference an nn.Module"
            )

    # ---- Sizes that are nodes -------------------------------------------------------------------------------------------

    @staticmethod
    def _get_tensor_meta_val(tensor_node: Node) -> Any:
        """The tensor that a pass noted in `meta` of a node."""
        return tensor_node.meta.get("val", tensor_node.meta.get("example_value"))

    def create_size_node(self, tensor_node: Node, dim: int) -> Node:
        """Insert the size of dim `dim` of a tensor."""
        return self._sized("size", tensor_node, (dim,), lambda value: value.size(dim))

    def create_stride_node(self, tensor_node: Node, dim: int) -> Node:
        """Insert the stride of dim `dim` of a tensor."""
        return self._sized("stride", tensor_node, (dim,), lambda value: value.stride(dim))

    def create_storage_offset_node(self, tensor_node: Node) -> Node:
        """Insert the storage offset of a tensor."""
        return self._sized("storage_offset", tensor_node, (), lambda value: value.storage_offset())

    def materialize_symints(self, values: Sequence[Any]) -> list[Any]:
        """Nodes for the symbolic sizes among `values`. weft's sizes are ints, and stay as they are."""
        return [self.materialize_symint(value) for value in values]

    def materialize_symint(self, value: Any) -> Any:
        """A node for a symbolic size; an int stays as it is."""
        return value

    def _sized(self, method: str, tensor_node: Node, args: tuple[int, ...], of: Callable[[Any], int]) -> Node:
        node = self.call_method(method, (tensor_node, *args))
        value = self._get_tensor_meta_val(tensor_node)
        if value is not None:
            node.meta["val"] = of(value)
        return node


def _has_attribute(module: Any, path: str) -> bool:
    for part in path.split("."):
        if not hasattr(module, part):
            return False
        module = getattr(module, part)
    return True
