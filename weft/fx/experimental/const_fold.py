"""Computing what does not depend on the inputs once, before the first call."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from ...core.tensor import Tensor
from ...nn import Module, Parameter, ParameterList
from ...ops.creation.creation import zeros
from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule, _copy_attr
from ..node import Node, map_arg
from ..passes.split_module import split_module

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """A GraphModule whose constant part is computed at the first call, or by `run_folding`."""

    def __init__(
        self,
        root: Module,
        graph: Graph,
        const_subgraph: Graph | None = None,
        fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: str = "cuda",
    ) -> None:
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args)

    def run_folding(self) -> None:
        """Compute the constant part."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("Folding has already been run")
        self.has_folding_been_run = True
        results = self.const_subgraph_module()

        def as_parameter(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            trains = value.dtype.is_floating_point and value.requires_grad
            return Parameter(value.detach(), requires_grad=trains)

        if isinstance(results, tuple):
            delattr(self, self.fx_const_folded_attrs_name)
            setattr(
                self, self.fx_const_folded_attrs_name, ParameterList([as_parameter(each) for each in results])
            )
        else:
            setattr(self, self.fx_const_folded_attrs_name, as_parameter(results))


def get_unique_attr_name_in_module(mod_traced: GraphModule, name: str) -> str:
    """`name`, or with a number at its end, so that the module has no such attribute."""
    name = re.sub("[^0-9a-zA-Z_]+", "_", name)
    if name[0].isdigit():
        name = f"_{name}"
    while hasattr(mod_traced, name):
        match = re.match(r"(.*)_(\d+)$", name)
        name = f"{name}_1" if match is None else f"{match[1]}_{int(match[2]) + 1}"
    return name


def split_const_subgraphs(
    module: Module | GraphModule,
    skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: str = "cpu",
) -> FoldedGraphModule:
    """A FoldedGraphModule that does the same as `module`; nodes for which `skip_folding_node_fn` holds stay where they are.

    >>> import weft as torch
    >>> class Scaled(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.weight = torch.nn.Parameter(torch.ones(2))
    ...     def forward(self, x):
    ...         return x * (self.weight + 1)
    >>> folded = split_const_subgraphs(Scaled())
    >>> print(folded.code.strip())
    def forward(self, x):
        _fx_const_folded_attrs = self._FX_CONST_FOLDED_ATTRS
        mul = x * _fx_const_folded_attrs;  x = _fx_const_folded_attrs = None
        return mul
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant: set[Node] = set()
    for node in traced.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        if node.op != "get_attr" and not set(node.all_input_nodes) <= constant:
            continue
        if skip_folding_node_fn and skip_folding_node_fn(node):
            continue
        if node.op != "get_attr" and node.is_impure():
            continue
        constant.add(node)
    if not any(node.op != "get_attr" for node in constant):
        return FoldedGraphModule(traced, traced.graph, device_for_folded_attrs=device_for_folded_attrs)

    split = split_module(traced, module, lambda node: 0 if node in constant else 1)
    name = get_unique_attr_name_in_module(split, "_FX_CONST_FOLDED_ATTRS")
    const_graph = _closed(split, "submod_0")
    _replace_call(split, name)
    if hasattr(split, "submod_1"):
        _inline_module(split, "submod_1")
    split.graph.eliminate_dead_code()
    root = GraphModule(split, split.graph)
    for each in const_graph.nodes:
        if each.op in ("get_attr", "call_module"):
            _copy_attr(
                split if hasattr(split, str(each.target).partition(".")[0]) else traced,
                root,
                str(each.target),
            )
    return FoldedGraphModule(root, root.graph, const_graph, name, device_for_folded_attrs)


def _closed(split: GraphModule, name: str) -> Graph:
    """The graph of a submodule that takes attributes, with these attributes taken inside."""
    submodule: Any = getattr(split, name)
    call = next(node for node in split.graph.nodes if node.op == "call_module" and node.target == name)
    graph = Graph()
    env: dict[Node, Node] = {}
    given = iter(call.args)
    for node in submodule.graph.nodes:
        if node.op == "placeholder":
            source: Any = next(given)
            env[node] = graph.get_attr(str(source.target))
        elif node.op == "output":
            graph.output(_mapped(node.args[0], env))
        else:
            env[node] = graph.node_copy(node, lambda each: env[each])
            if node.op == "call_module":
                env[node].target = str(node.target)
                setattr(split, str(node.target), getattr(submodule, str(node.target)))
    return graph


def _mapped(value: Any, env: dict[Node, Node]) -> Any:
    return map_arg(value, lambda each: env[each])


def _replace_call(split: GraphModule, name: str) -> None:
    """Take the folded attribute where the constant submodule was called."""
    call = next(node for node in split.graph.nodes if node.op == "call_module" and node.target == "submod_0")
    setattr(split, name, Parameter(zeros(1), requires_grad=False))
    with split.graph.inserting_before(call):
        folded = split.graph.get_attr(name)
    constant: Any = split.submod_0
    computed = constant.graph.output_node().args[0]
    if isinstance(computed, Node):  # what is known about the only folded value is known about the attribute
        folded.meta = computed.meta.copy()
    call.replace_all_uses_with(folded)
    split.graph.erase_node(call)
    for node in list(split.graph.nodes):
        if node.op == "get_attr" and not node.users and node is not folded:
            split.graph.erase_node(node)


def _inline_module(gm: GraphModule, inline_mod_name: str, run_dce: bool = True) -> dict[Node, Node]:
    """Put the nodes of a submodule into the graph, in place of its call."""
    inner: Any = dict(gm.named_modules())[inline_mod_name]
    call = next(
        node for node in gm.graph.nodes if node.op == "call_module" and node.target == inline_mod_name
    )
    env: dict[Node, Any] = {}
    given = iter(call.args)
    with gm.graph.inserting_before(call):
        for node in inner.graph.nodes:
            if node.op == "placeholder":
                env[node] = next(given)
            elif node.op == "output":
                _replace_results(gm, call, _mapped(node.args[0], env))
            else:
                env[node] = gm.graph.node_copy(node, lambda each: env[each])
                if node.op in ("call_module", "get_attr"):
                    setattr(gm, str(node.target), getattr(inner, str(node.target)))
    gm.graph.erase_node(call)
    if run_dce:
        gm.graph.eliminate_dead_code()
    return env


def _replace_results(gm: GraphModule, call: Node, results: Any) -> None:
    if isinstance(results, Node):
        call.replace_all_uses_with(results)
        return
    for user in list(call.users):
        if user.target is operator.getitem:
            user.replace_all_uses_with(results[user.args[1]])
            gm.graph.erase_node(user)
