"""The graph that autograd records: a node for each step, edges to where the cotangents of its inputs go.

A tensor's `_autograd` is where its own cotangent goes: the Node that made it, an Output of a node with several
results, or a Leaf. An edge is the same thing, or None for an input that needs no cotangent.

Nothing here points from an older object to a newer one, so there are no cycles: what is saved of a node's result
forgets which node made it, and is told again when it is unpacked. A node keeps the leaves among its inputs alive,
because programs ask a graph for them; a Leaf itself points to its tensor weakly.
"""

from __future__ import annotations

import itertools
import re
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.derivative import Derivative, keywords, nondifferentiable
from ..core.dtype import FLOAT
from ..core.grad_mode import open_levels
from ..core.recording import NO_RULE
from ..core.tensor import Tensor
from ..families.fusing import kernel_of
from ..utils.hooks import RemovableHandle
from . import anomaly
from .hooks import (  # noqa: F401 (public names of torch.autograd.graph)
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    increment_version,
    region_activation_memory_budget,
    register_multi_grad_hook,
    save_on_cpu,
    saved_tensors_hooks,
    set_override_stale_capture_stream,
    set_warn_on_accumulate_grad_stream_mismatch,
)
from .saved import RELEASED, SECOND_TIME, Saved, SavedOutputs, save, unpack

# Nodes in the order of their making: a node's inputs come from nodes with smaller numbers.
_order = itertools.count()
next_order = _order.__next__


class Leaf:
    """A tensor that collects its gradient; as a node it is where cotangents are added to `.grad`."""

    __slots__ = ("tensor", "lasting", "hooks", "after", "of_node", "__weakref__")

    def __init__(self, tensor: Tensor, lasting: bool = True):
        self.tensor = weakref.ref(tensor)
        # Nodes keep the tensor of a lasting leaf alive. The leaves inside a function's transform end with it.
        self.lasting = lasting
        self.hooks: dict | None = None  # of the tensor: on the whole gradient, before it is added
        self.after: dict | None = None  # on the tensor, when it has been added
        self.of_node: NodeHooks | None = None  # before and after the adding

    edges = ()
    next_functions = ()

    @property
    def variable(self) -> Tensor | None:
        return self.tensor()

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def register_hook(self, hook: Callable) -> RemovableHandle:
        """`hook((), grad_outputs)` runs when the gradient has been added to `.grad`."""
        return add_hook(self._node_hooks().after, hook)

    def register_prehook(self, hook: Callable) -> RemovableHandle:
        """`hook(grad_outputs)` runs before the gradient is added; what it returns replaces grad_outputs."""
        return add_hook(self._node_hooks().before, hook)

    def _node_hooks(self) -> NodeHooks:
        if self.of_node is None:
            self.of_node = NodeHooks()
        return self.of_node

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {id(self):#x}>"


Leaf.__name__ = Leaf.__qualname__ = "AccumulateGrad"


class Output:
    """One of the results of a node that has several."""

    __slots__ = ("node", "index")

    def __init__(self, node: Node, index: int):
        self.node = node
        self.index = index


class NodeHooks:
    """What users hang on a node; made when first needed."""

    __slots__ = ("tensor", "before", "after", "retained")

    def __init__(self):
        self.tensor: dict[int, dict] = {}  # result -> hooks on its cotangent
        self.before: dict = {}  # hooks on the cotangents of all results
        self.after: dict = {}  # hooks on the cotangents of inputs and results
        self.retained: dict[int, weakref.ref] = {}  # result -> the tensor that keeps its gradient


class Node:
    """One recorded step: how the cotangent of its result becomes those of its inputs."""

    __slots__ = (
        "op",
        "edges",
        "specs",
        "static",
        "saved",
        "result",
        "order",
        "hooks",
        "extra",
        "leaf_tensors_",
        "__weakref__",
    )

    op: Any
    edges: tuple  # per input
    specs: Sequence  # per input: its Spec, or None for what is no tensor
    static: tuple
    saved: Any  # [result, *inputs] as packed, or RELEASED
    result: Any  # the result's Spec; a tuple of them if there are several results
    order: int
    hooks: NodeHooks | None
    extra: dict | None  # what users attach, and where anomaly mode saw the step
    leaf_tensors_: Any  # keeps inputs alive that are leaves; set only if there are any

    # -- what users see ---------------------------------------------------------------------------------------------

    def name(self) -> str:
        return type(self).__name__

    @property
    def next_functions(self) -> tuple:
        return tuple((None, 0) if edge is None else endpoint(edge) for edge in self.edges)

    @property
    def metadata(self) -> dict:
        if self.extra is None:
            self.extra = {}
        return self.extra

    def _sequence_nr(self) -> int:
        return self.order

    def register_hook(self, hook: Callable) -> RemovableHandle:
        """`hook(grad_inputs, grad_outputs)` runs after this node; what it returns replaces grad_inputs."""
        return add_hook(node_hooks(self).after, hook)

    def register_prehook(self, hook: Callable) -> RemovableHandle:
        """`hook(grad_outputs)` runs before this node; what it returns replaces them."""
        return add_hook(node_hooks(self).before, hook)

    # -- what the engine asks ---------------------------------------------------------------------------------------

    def pull(self, ct: Any, edges: tuple, recording: bool) -> Sequence[Any]:
        """The cotangents of the inputs whose edge is not None, given that of the result (a tuple if there are several)."""
        saved = self.saved
        if saved is RELEASED:
            saved = self._as_if_saved()
        values = [None if entry is None else unpack(entry, self, recording) for entry in saved]
        rules: Derivative = self.op.derivative
        if rules is None:
            raise NotImplementedError(NO_RULE.format(self.op.name))
        if rules.joint is not None:
            return self._call(rules.joint, ct, values, edges)
        found: list = [None] * len(edges)
        for position, rule in enumerate(rules.rules):
            if edges[position] is not None and rule is not None:
                if rule.__code__.co_kwonlyargcount:
                    found[position] = self._call(rule, ct, values, edges)
                elif not recording and not open_levels:  # kernels know nothing of tangents
                    fast = rules.fused.get(position) or kernel_of(self.op, position)
                    found[position] = fast(ct, *values, *self.static)
                else:
                    found[position] = rule(ct, *values, *self.static)
        return found

    def pull_over(self, ct: Tensor, edges: tuple) -> Sequence[Any] | None:
        """As `pull`, but the cotangent that is found takes the memory of `ct`; None if it is not made by one kernel."""
        wanted = [position for position, edge in enumerate(edges) if edge is not None]
        if type(self).pull is not Node.pull or len(wanted) != 1 or self.saved is RELEASED:
            return None
        rules = self.op.derivative
        if rules is None or rules.joint or rules.rules[wanted[0]] is None:
            return None
        fast = rules.fused.get(wanted[0]) or kernel_of(self.op, wanted[0])
        over = getattr(fast, "over", None)
        if over is None:
            return None
        values = [None if entry is None else unpack(entry, self, False) for entry in self.saved]
        found: list = [None] * len(edges)
        found[wanted[0]] = over(ct, *values, *self.static)
        return found

    def _as_if_saved(self) -> list:
        """What takes the place of what was freed: a step that saved nothing can run again.

        Raises: RuntimeError if something was saved.
        """
        if self.op.derivative is not None:
            wanted = sum(1 << position for position, edge in enumerate(self.edges) if edge is not None)
            if self.op.derivative.needs(wanted, len(self.edges)) != (False, ()):
                raise RuntimeError(SECOND_TIME)
        return [None] * (1 + len(self.edges))

    def _call(self, rule: Any, ct: Any, values: Sequence[Any], edges: tuple) -> Any:
        names = keywords(rule)
        if not names:
            return rule(ct, *values, *self.static)
        known = {
            "specs": self.specs,
            "spec": self.result,
            "static": self.static,
            "wanted": tuple([edge is not None for edge in edges]),
        }
        static = () if "static" in names else self.static
        return rule(ct, *values, *static, **{name: known[name] for name in names})

    def output(self, index: int) -> Any:
        """Where cotangents of one of the results go."""
        return Output(self, index) if type(self.result) is tuple else self

    def release(self) -> None:
        """Forget what was saved: the node cannot run again."""
        self.saved = RELEASED

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


def original(entry: Any, node: Any) -> Any:
    """As `unpack`, but a leaf is the user's own tensor."""
    if type(entry) is Saved and type(entry.edge) is Leaf:
        tensor = entry.edge.tensor()
        if tensor is not None and tensor._storage is entry.storage and tensor.spec is entry.spec:
            unpack(entry, node, True)  # raises if it was overwritten
            return tensor
    return unpack(entry, node, True)


def endpoint(edge: Any) -> tuple[Any, int]:
    """The node an edge leads to, and which of its results the edge stands for."""
    return (edge.node, edge.index) if type(edge) is Output else (edge, 0)


def node_hooks(node: Node) -> NodeHooks:
    if node.hooks is None:
        node.hooks = NodeHooks()
    return node.hooks


def add_hook(hooks: dict, hook: Callable) -> RemovableHandle:
    """Put `hook` among `hooks`; the handle takes it out again."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


# ---- Recording ------------------------------------------------------------------------------------------------------

_new = object.__new__
_node_types: dict[tuple[str, type], type] = {}


def node_type(name: str, base: type = Node) -> type:
    """The class of nodes that users see under this name."""
    found = _node_types.get((name, base))
    if found is None:
        found = _node_types[name, base] = type(name, (base,), {"__slots__": ()})
    return found


def rename(result: Tensor, change: Callable[[str], str]) -> None:
    """Show the node that made `result` under another name, found from the one it has."""
    edge = result._autograd
    if isinstance(edge, (Node, Output)):
        node = endpoint(edge)[0]
        node.__class__ = node_type(change(type(node).__name__), type(node).__bases__[0])


def node_name(name: str) -> str:
    """`add` -> AddBackward0, `log_softmax` -> LogSoftmaxBackward0, `special.i0e` -> SpecialI0EBackward0."""
    words = re.sub("(^|[^a-z])([a-z])", lambda match: match[1] + match[2].upper(), name.lower())
    return re.sub("[^A-Za-z0-9]", "", words) + "Backward0"


_types_of_ops: dict[str, type] = {}


def type_for(op: Any, inputs: Sequence[Any], static: tuple) -> type:
    """The class of the op's nodes.

    `op.node_name`, if there is one, says what it is called: a string, or a function of (inputs, static arguments).
    """
    named = getattr(op, "node_name", None)
    if named is not None:
        return node_type(named if type(named) is str else named(inputs, static))
    found = _types_of_ops.get(op.name)
    if found is None:
        found = _types_of_ops[op.name] = node_type(node_name(op.name))
    return found


def new_node(op: Any, inputs: Sequence[Any], static: tuple, out: Any) -> Node:
    """A node with edges and saved inputs; `out` is the result as its rules shall see it, None if not known yet."""
    node: Node = _new(type_for(op, inputs, static))
    node.op = op
    edges: list = []
    specs: list = []
    saved: list = [None]
    leaf_tensors: Any = None
    wanted, bit = 0, 1
    for value in inputs:
        if isinstance(value, Tensor):
            edge = value._autograd
            edges.append(edge)
            specs.append(value.spec)
            saved.append(None)
            if edge is not None:
                wanted |= bit
                if type(edge) is Leaf and edge.lasting:
                    leaf_tensors = value if leaf_tensors is None else (leaf_tensors, value)
        else:
            edges.append(None)
            specs.append(None)
            saved.append(value)
        bit += bit
    node.edges = tuple(edges)
    node.specs = specs
    node.static = static
    node.saved = saved
    node.order = next_order()
    node.hooks = node.extra = None
    if leaf_tensors is not None:
        node.leaf_tensors_ = leaf_tensors
    rules = op.derivative
    if rules is not None:  # else backward will say so
        need = rules.needed.get((wanted, bit)) or rules.needs(wanted, len(edges))
        for position in need.inputs:
            value = inputs[position]
            if isinstance(value, Tensor):
                saved[position + 1] = save(value, edges[position])
        if need.out and out is not None:
            saved[0] = save_output(out, rules.results)
    if anomaly.tracing:
        anomaly.trace(node)
    return node


def save_output(out: Any, used: Sequence[int] | None = None) -> Any:
    """The result, or those of several that are `used`; the others arrive as None."""
    if isinstance(out, Tensor):
        return save(out, 0)
    return SavedOutputs(
        [save(each, index) if used is None or index in used else None for index, each in enumerate(out)]
    )


def record(op: Any, result: Any, inputs: Sequence[Any], static: tuple = ()) -> Any:
    """Make `result` (a tensor, or a tuple of them) the result of a recorded step.

    Results of integer dtypes, and those of nondifferentiable ops, are constants.
    """
    if op.derivative is nondifferentiable:
        return result
    if isinstance(result, Tensor):
        spec = result.spec
        if spec.dtype.category < FLOAT:
            return result
        node = new_node(op, inputs, static, result)
        node.result = spec
        result._autograd = node
        return result
    if not any(each.spec.dtype.category >= FLOAT for each in result):
        return result
    node = new_node(op, inputs, static, result)
    node.result = tuple([each.spec for each in result])
    for index, each in enumerate(result):
        if each.spec.dtype.category >= FLOAT:
            each._autograd = Output(node, index)
    return result


class GradientEdge(NamedTuple):
    """Where the cotangent of a tensor goes: a node, and which of its results."""

    node: Any
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of a tensor: `backward` and `grad` take it in place of the tensor.

    Raises: RuntimeError if it does not require grad.
    """
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require gradients"
        )
    return GradientEdge(*endpoint(tensor._autograd))
