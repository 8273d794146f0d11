"""Faster modules for evaluation: batch normalization folded into convolutions, dropout taken out."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from ...nn import BatchNorm1d, BatchNorm2d, BatchNorm3d, Conv1d, Conv2d, Conv3d, Dropout, Module
from ...nn.utils.fusion import fuse_conv_bn_eval
from .._symbolic_trace import Tracer, symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Argument, Node

__all__ = [
    "UnionFind", "extract_subgraph", "fuse", "matches_module_pattern", "optimize_for_inference",
    "remove_dropout", "replace_node_module", "reset_modules",
]  # fmt: skip


def _parent_name(target: str) -> tuple[str, str]:
    """The path of the parent and the name in it.

    >>> _parent_name("a.b.c"), _parent_name("a")
    (('a.b', 'c'), ('', 'a'))
    """
    parent, _, name = target.rpartition(".")
    return parent, name


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """Whether the first input of `node` and `node` itself call modules of the two classes in `pattern`."""
    if len(node.args) == 0:
        return False
    for kind, each in zip(pattern, (node.args[0], node)):
        if not isinstance(each, Node) or each.op != "call_module":
            return False
        if not isinstance(each.target, str) or each.target not in modules:
            return False
        if type(modules[each.target]) is not kind:
            return False
    return True


def replace_node_module(node: Node, modules: dict[str, Any], new_module: Module) -> None:
    """Put another module into the place of the one that `node` calls."""
    if not isinstance(node.target, str):
        raise AssertionError(f"Expected str target, got {type(node.target)}")
    parent, name = _parent_name(node.target)
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: Module, inplace: bool = False, no_trace: bool = False) -> Module:
    """A module in which batch normalizations are part of the convolutions before them. `model` is in eval mode.

    >>> import weft as torch
    >>> model = torch.nn.Sequential(torch.nn.Conv2d(3, 3, 1), torch.nn.BatchNorm2d(3)).eval()
    >>> [type(each).__name__ for each in fuse(model).children()]
    ['Conv2d']
    """
    patterns = [(Conv1d, BatchNorm1d), (Conv2d, BatchNorm2d), (Conv3d, BatchNorm3d)]
    if not inplace:
        model = copy.deepcopy(model)
    fx_model: GraphModule = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(fx_model.named_modules())
    new_graph = copy.deepcopy(fx_model.graph)
    for pattern in patterns:
        for node in new_graph.nodes:
            if not matches_module_pattern(pattern, node, modules):
                continue
            conv_node: Any = node.args[0]
            if len(conv_node.users) > 1:  # others use the result of the convolution as well
                continue
            conv, bn = modules[conv_node.target], modules[str(node.target)]
            if not bn.track_running_stats:
                continue
            replace_node_module(conv_node, modules, fuse_conv_bn_eval(conv, bn))
            node.replace_all_uses_with(conv_node)
            new_graph.erase_node(node)
    return GraphModule(fx_model, new_graph)


def remove_dropout(model: Module) -> Module:
    """The module without dropout."""
    from ..interpreter import Transformer

    class DropoutRemover(Transformer):
        def call_module(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
            if isinstance(self.submodules[target], Dropout):
                if len(args) != 1:
                    raise AssertionError(f"Expected 1 arg for Dropout, got {len(args)}")
                return args[0]
            return super().call_module(target, args, kwargs)

    return DropoutRemover(symbolic_trace(model)).transform()


def extract_subgraph(
    orig_module: Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]
) -> GraphModule:
    """A GraphModule of these nodes, with these inputs and results."""
    new_graph = Graph()
    env: dict[Node, Node] = {}
    for node in inputs:
        env[node] = new_graph.placeholder(node.name)
    for node in nodes:
        env[node] = new_graph.node_copy(node, lambda each: env[each])
    new_graph.output([env[output] for output in outputs])
    new_graph.lint()
    return GraphModule(orig_module, new_graph)


def reset_modules(nodes: list[Node], modules: dict[str, Module], old_modules: dict[Module, Module]) -> None:
    """Put the old modules back that `old_modules` maps the present ones to."""
    for node in nodes:
        if node.op != "call_module":
            continue
        if not isinstance(node.target, str):
            raise AssertionError(f"Expected str target, got {type(node.target)}")
        current = modules[node.target]
        if current in old_modules:
            replace_node_module(node, modules, old_modules[current])


class UnionFind:
    """Groups of numbers that are joined."""

    def __init__(self, n: int) -> None:
        self.parent: list[int | None] = [None] * n
        self.size: list[int] = [0] * n

    def make_set(self, v: int) -> None:
        """Make `v` a group of its own."""
        self.parent[v] = v
        self.size[v] = 1

    def find(self, v: int) -> int:
        """The number that stands for the group of `v`."""
        parent = self.parent[v]
        if parent is None:
            raise AssertionError(f"Parent of {v} is None")
        while parent != v:
            v = parent
            parent = self.parent[v]
            assert parent is not None
        return v

    def join(self, a: int, b: int) -> Any:
        """Join the groups of two numbers."""
        a, b = self.find(a), self.find(b)
        if a == b:
            return a
        if self.size[a] < self.size[b]:
            a, b = b, a
        self.parent[b] = a
        self.size[a] += self.size[b]
        return None


def optimize_for_inference(
    model: Module, pass_config: dict[str, Any] | None = None, tracer: type[Tracer] = Tracer
) -> Module:
    """The module in eval mode without dropout and with batch normalization folded into convolutions.

    `pass_config` may switch off "conv_bn_fuse" and "remove_dropout". PyTorch's third step, "mkldnn_layout_optimize", is
    for a layout of its own, which weft's convolutions do not need.
    """
    config = {"conv_bn_fuse": True, "remove_dropout": True, "mkldnn_layout_optimize": {"heuristic": None}}
    config.update(pass_config or {})
    if config["conv_bn_fuse"]:
        model = fuse(model)
    if config["remove_dropout"]:
        model = remove_dropout(model)
    return GraphModule(model, tracer().trace(copy.deepcopy(model)))
