"""Splitting a graph module into submodules that are called one after the other."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from .._compatibility import compatibility
from .._lazy_graph_module import _make_graph_module
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg

__all__ = ["Partition", "split_module", "split_module_simple"]


@compatibility(is_backward_compatible=True)
class Partition:
    """The nodes that go into one submodule, and what flows into it and out of it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.submod_name = f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph: Graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n outputs: {self.outputs},\n "
            f"partitions depended on: {self.dependencies},\n partition dependents: {self.dependents}"
        )


@compatibility(is_backward_compatible=True)
def split_module(
    m: GraphModule,
    root_m: Any,
    split_callback: Callable[[Node], int],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """A GraphModule with a submodule `submod_N` for each number N that `split_callback(node)` gives.

    `qualname_map` gets the old path of each attribute by its new one. `keep_original_order` calls the submodules in the
    order in which their first nodes stand; otherwise, in an order in which each comes after those that it depends on.

    >>> import weft as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    >>> split = split_module(traced, traced, lambda node: 0 if node.target is torch.relu else 1)
    >>> print(split.code.strip())
    def forward(self, x):
        submod_0 = self.submod_0(x);  x = None
        submod_1 = self.submod_1(submod_0);  submod_0 = None
        return submod_1
    """
    splitting = _Splitting(m, partition_affix, late_attributes=bool(keep_original_order))
    splitting.assign(split_callback)
    for name in splitting.sorted_names(bool(keep_original_order)):
        splitting.add_inputs(splitting.partitions[name], keep_original_input_name)
    splitting.copy_nodes(bool(keep_original_node_name), qualname_map)
    return splitting.assemble(tuple_return)


@compatibility(is_backward_compatible=False)
def split_module_simple(
    m: GraphModule, node_to_partition: dict[Node, int], partition_affix: str | None = None
) -> GraphModule:
    """`split_module` with the number of each node in a dict."""
    return split_module(m, m, lambda node: node_to_partition[node], partition_affix=partition_affix)


class _Splitting:
    """The state of one `split_module`."""

    def __init__(self, module: GraphModule, affix: str | None, late_attributes: bool) -> None:
        self.module = module
        self.affix = affix
        self.late_attributes = (
            late_attributes  # an attribute is taken just before the first submodule that gets it
        )
        self.partitions: dict[str, Partition] = {}
        self.partition_of: dict[Node, str] = {}
        self.nodes = {node.name: node for node in module.graph.nodes}
        self.order: list[str] = []
        self.graph = Graph()
        self.attributes: dict[str, Any] = {}
        self.values: dict[
            str, Node
        ] = {}  # name of a node of the old graph -> its value in the new outer graph

    def assign(self, split_callback: Callable[[Node], int]) -> None:
        """Give each call its partition; inputs and attributes stay outside and are passed in."""
        for node in self.module.graph.nodes:
            if node.op == "placeholder" or node.op == "get_attr" and not self.late_attributes:
                self._keep_outside(node)
            elif node.op == "get_attr":
                continue
            elif node.op != "output":
                name = str(split_callback(node))
                self.partitions.setdefault(name, self._partition(name)).node_names.append(node.name)
                self.partition_of[node] = name
        for node in self.module.graph.nodes:
            for used in node.all_input_nodes:
                self._note_use(used, None if node.op == "output" else node)

    def _partition(self, name: str) -> Partition:
        partition = Partition(name)
        if self.affix is not None:
            partition.submod_name = f"submod_{self.affix}_{name}"
        return partition

    def _keep_outside(self, node: Node) -> None:
        if node.op == "placeholder":
            default = node.args[0] if node.args else inspect.Signature.empty
            new = self.graph.placeholder(str(node.target), type_expr=node.type, default_value=default)
        else:
            new = self.graph.get_attr(str(node.target))
            self.attributes[str(node.target)] = _attribute(self.module, str(node.target))
        new.meta = node.meta.copy()
        self.values[node.name] = new

    def _note_use(self, used: Node, user: Node | None) -> None:
        """Note that a value crosses from one partition to another, or to the end of the graph."""
        source = self.partition_of.get(used)
        target = self.partition_of[user] if user is not None else None
        if source == target:
            return
        if source is not None:
            self.partitions[source].outputs.setdefault(used.name)
            if target is not None:
                self.partitions[source].dependents.setdefault(target)
        if target is not None:
            self.partitions[target].inputs.setdefault(used.name)
            if source is not None:
                self.partitions[target].dependencies.setdefault(source)

    def sorted_names(self, keep_order: bool) -> list[str]:
        """The partitions, each after those that it depends on. Raises: RuntimeError if they go round in a circle."""
        ready = [name for name, each in self.partitions.items() if not each.dependencies]
        waiting = {name: dict(each.dependencies) for name, each in self.partitions.items()}
        found: list[str] = []
        while ready:
            name = ready.pop()
            found.append(name)
            for dependent in self.partitions[name].dependents:
                waiting[dependent].pop(name)
                if not waiting[dependent]:
                    ready.append(dependent)
        if len(found) != len(self.partitions):
            raise RuntimeError("cycle exists between partitions!")
        self.order = list(self.partitions) if keep_order else found
        return self.order

    def add_inputs(self, partition: Partition, keep_name: bool) -> None:
        for place, name in enumerate(partition.inputs):
            old = self.nodes[name]
            new = partition.graph.placeholder(name if keep_name else f"arg_{place}", type_expr=old.type)
            new.meta = old.meta.copy()
            partition.environment[old] = new

    def copy_nodes(self, keep_name: bool, qualname_map: dict[str, str] | None) -> None:
        for node in self.module.graph.nodes:
            if node not in self.partition_of:
                continue
            partition = self.partitions[self.partition_of[node]]
            target: Any = node.target
            if node.op == "call_module":
                flat = target.replace(".", "_")
                partition.targets[flat] = _attribute(self.module, target)
                if qualname_map is not None:
                    qualname_map[f"{partition.submod_name}.{flat}"] = target
                target = flat
            new = partition.graph.create_node(
                node.op,
                target,
                map_arg(node.args, lambda each, env=partition.environment: env[each]),  # type: ignore[misc]
                map_arg(node.kwargs, lambda each, env=partition.environment: env[each]),  # type: ignore[misc]
                name=node.name if keep_name else None,
                type_expr=node.type,
            )
            new.meta = node.meta.copy()
            partition.environment[node] = new

    def assemble(self, tuple_return: bool) -> GraphModule:
        """Close the partitions, and call them one after the other."""
        for name in self.order:
            self._take_attributes(self.partitions[name].inputs)
            self._call(self.partitions[name], tuple_return)
        self._take_attributes(each.name for each in self.module.graph.output_node().all_input_nodes)
        for node in self.module.graph.nodes:
            if node.op == "output":
                result = self.graph.output(map_arg(node.args[0], lambda each: self.values[each.name]))
                result.meta = node.meta.copy()
        return _make_graph_module(self.attributes, self.graph)

    def _take_attributes(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.values and self.nodes[name].op == "get_attr":
                self._keep_outside(self.nodes[name])

    def _call(self, partition: Partition, tuple_return: bool) -> None:
        results = [partition.environment[self.nodes[name]] for name in partition.outputs]
        is_single = len(results) == 1 and not tuple_return
        partition.graph.output(results[0] if is_single else tuple(results))
        self.attributes[partition.submod_name] = _make_graph_module(partition.targets, partition.graph)
        call = self.graph.call_module(
            partition.submod_name, tuple(self.values[name] for name in partition.inputs)
        )
        if is_single:
            self.values[next(iter(partition.outputs))] = call
            return
        from ..proxy import Proxy

        proxy = Proxy(call)
        for place, name in enumerate(partition.outputs):
            self.values[name] = proxy[place].node  # type: ignore[index]


def _attribute(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part)
    return module
