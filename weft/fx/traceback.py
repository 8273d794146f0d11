"""What is known of a node while it is carried out: graphs that are traced from it take it over.

>>> import weft as torch
>>> with annotate({"stage": 1}), preserve_node_meta():
...     get_current_meta()
{'custom': {'stage': 1}}
"""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import traceback
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, NamedTuple

from ._compatibility import compatibility
from .graph import Graph
from .node import Node

__all__ = [
    "NodeSource", "NodeSourceAction", "annotate", "annotate_fn", "format_stack", "get_current_meta",
    "get_current_replay_node", "get_graph_provenance_json", "has_preserved_node_meta", "preserve_node_meta",
    "reset_grad_fn_seq_nr", "set_current_meta", "set_current_replay_node", "set_grad_fn_seq_nr",
    "set_stack_trace",
]  # fmt: skip

current_meta: dict[str, Any] = {}
current_replay_node: Node | None = None
should_preserve_node_meta = False


@compatibility(is_backward_compatible=False)
class NodeSourceAction(Enum):
    """What a pass did to make a node."""

    CREATE = "create"
    REPLACE = "replace"


@compatibility(is_backward_compatible=False)
class NodeSource:
    """Which node a node was made from, by which pass."""

    class NodeInfo(NamedTuple):
        """What identifies a node."""

        name: str
        target: str
        graph_id: int

    pass_name: str
    action: list[NodeSourceAction]
    from_node: list[NodeSource]
    node_info: NodeInfo | None

    def __init__(
        self,
        node: Node | None,
        pass_name: str = "",
        action: NodeSourceAction | list[NodeSourceAction] | None = None,
    ) -> None:
        self.pass_name = pass_name
        if action is None:
            action = []
        elif not isinstance(action, list):
            action = [action]
        if not all(isinstance(each, NodeSourceAction) for each in action):
            raise AssertionError(f"Expected a list of NodeSourceAction, got {action}")
        self.action = action
        self.node_info = None
        self.from_node = []
        if node is not None:
            self.node_info = self.NodeInfo(node.name, str(node.target), id(node.graph))
            self.from_node = copy.deepcopy(node.meta.get("from_node", []))

    @property
    def name(self) -> str:
        return self.node_info.name if self.node_info else ""

    @property
    def target(self) -> str:
        return self.node_info.target if self.node_info else ""

    @property
    def graph_id(self) -> int:
        return self.node_info.graph_id if self.node_info else -1

    def __repr__(self) -> str:
        return self.print_readable()

    def _get_action_string(self) -> str:
        return "+".join(each.name.lower() for each in self.action)

    def print_readable(self, indent: int = 0) -> str:
        """The chain of sources, one line each."""
        if indent > 9:
            return ""
        lines = [
            f"{' ' * indent * 4}(name={self.name}, pass_name={self.pass_name}, action={self._get_action_string()}, "
            f"graph_id={self.graph_id})"
        ]
        lines += [each.print_readable(indent + 1) for each in self.from_node]
        return "\n".join(lines) + "\n" if indent == 0 else "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "name": self.name,
            "target": self.target,
            "graph_id": self.graph_id,
            "pass_name": self.pass_name,
            "action": self._get_action_string(),
            "from_node": [each.to_dict() for each in self.from_node],
        }

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, NodeSource) else False

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_dict(), sort_keys=True))

    @classmethod
    def _from_dict(cls, d: dict[str, Any] | None) -> NodeSource | None:
        if d is None:
            return None
        if not isinstance(d, dict):
            raise AssertionError(f"Expected a dict, got {type(d)}")
        source = cls(None, d.get("pass_name", ""))
        source.action = [NodeSourceAction[each.upper()] for each in d.get("action", "").split("+") if each]
        if d.get("name"):
            source.node_info = cls.NodeInfo(d["name"], d.get("target", ""), d.get("graph_id", -1))
        source.from_node = [each for each in map(cls._from_dict, d.get("from_node", [])) if each is not None]
        return source


@compatibility(is_backward_compatible=False)
@contextlib.contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Inside, new nodes take over the notes of the node that is being carried out."""
    global should_preserve_node_meta, current_meta
    outer_flag, outer_meta = should_preserve_node_meta, current_meta.copy()
    try:
        should_preserve_node_meta = enable
        yield
    finally:
        should_preserve_node_meta = outer_flag
        current_meta = outer_meta


@compatibility(is_backward_compatible=False)
def has_preserved_node_meta() -> bool:
    """Whether a `preserve_node_meta` is around."""
    return should_preserve_node_meta


@compatibility(is_backward_compatible=False)
def set_stack_trace(stack: list[str]) -> None:
    """Note the lines of the program for the nodes to come."""
    if should_preserve_node_meta and stack:
        current_meta["stack_trace"] = "".join(stack)


@compatibility(is_backward_compatible=False)
@contextlib.contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Inside, new nodes have these items in `meta["custom"]`."""
    global current_meta
    had = "custom" in current_meta
    outer = current_meta.get("custom", {})
    try:
        current_meta["custom"] = {**outer, **annotation_dict}
        yield
    finally:
        if had:
            current_meta["custom"] = outer
        else:
            current_meta.pop("custom", None)


@compatibility(is_backward_compatible=False)
def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[Callable], Callable]:
    """Decorator: call the function inside of `annotate`."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def annotated(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return function(*args, **kwargs)

        return annotated

    return decorate


@compatibility(is_backward_compatible=False)
def set_grad_fn_seq_nr(seq_nr: int) -> None:
    """Note which step of backward the nodes to come belong to."""
    if should_preserve_node_meta:
        numbers = current_meta.get("grad_fn_seq_nr", [])
        current_meta["grad_fn_seq_nr"] = [*numbers, seq_nr]
        current_meta["in_grad_fn"] = current_meta.get("in_grad_fn", 0) + 1


@compatibility(is_backward_compatible=False)
def reset_grad_fn_seq_nr() -> None:
    """Undo the last `set_grad_fn_seq_nr`."""
    if not should_preserve_node_meta:
        return
    level = current_meta.get("in_grad_fn", 0)
    if level <= 1:
        current_meta.pop("in_grad_fn", None)
        current_meta.pop("grad_fn_seq_nr", None)
    else:
        current_meta["in_grad_fn"] = level - 1
        current_meta["grad_fn_seq_nr"] = current_meta["grad_fn_seq_nr"][:-1]


@compatibility(is_backward_compatible=False)
def format_stack() -> list[str]:
    """The lines of the program: those of the node that is being carried out, or those of the call."""
    if should_preserve_node_meta:
        return [current_meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


@compatibility(is_backward_compatible=False)
@contextlib.contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """Inside, `node` is being carried out: new nodes take over its notes."""
    global current_meta
    if not (should_preserve_node_meta and node.meta):
        yield
        return
    outer = current_meta
    try:
        current_meta = node.meta.copy()
        current_meta["from_node"] = [NodeSource(node, pass_name, NodeSourceAction.CREATE)]
        yield
    finally:
        current_meta = outer


@compatibility(is_backward_compatible=False)
def get_current_meta() -> dict[str, Any]:
    """The notes that new nodes take over."""
    return current_meta


@compatibility(is_backward_compatible=False)
@contextlib.contextmanager
def set_current_replay_node(node: Node) -> Iterator[None]:
    """Inside, `node` of another graph is carried out again."""
    global current_replay_node
    outer, current_replay_node = current_replay_node, node
    try:
        yield
    finally:
        current_replay_node = outer


@compatibility(is_backward_compatible=False)
def get_current_replay_node() -> Node | None:
    """The node of `set_current_replay_node`."""
    return current_replay_node


@compatibility(is_backward_compatible=False)
def get_graph_provenance_json(graph: Graph) -> dict[str, Any]:
    """For each call of the graph, by name, the nodes that it was made from."""
    return {
        node.name: [each.to_dict() for each in node.meta.get("from_node", [])]
        for node in graph.nodes
        if node.op == "call_function"
    }
