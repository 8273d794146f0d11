"""The graph that autograd records: a node for each recorded operation, with an edge for each input.

`tensor._autograd` is the edge along which backward sends the cotangent of the tensor: the Node whose result the tensor is, an
Output of a node with several results, or a Leaf. The edges of a node are the edges of its inputs, or None for an input that
needs no cotangent.

No object refers to a newer one, so there are no reference cycles. In particular, a node that saves its own result does not
store the edge of the result; unpacking sets it. A node keeps the leaves among its inputs alive, because programs access them
through the graph. A Leaf refers to its tensor weakly.
"""

from __future__ import annotations

import functools
import itertools
import re
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.derivative import Derivative, keywords, nondifferentiable
from ..core.dtype import FLOAT
from ..core.grad_mode import mode, open_levels
from ..core.recording import NO_RULE
from ..core.spec import Spec
from ..core.tensor import Tensor
from ..families.fusing import kernel_of
from . import anomaly
from .handles import RemovableHandle
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

__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
    "get_gradient_edge", "increment_version", "region_activation_memory_budget",
    "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
    "set_override_stale_capture_stream", "set_warn_on_accumulate_grad_stream_mismatch",
]  # fmt: skip

_new = object.__new__

# Numbers nodes in the order of recording, so the inputs of a node come from nodes with smaller numbers.
_order = itertools.count()
next_order = _order.__next__


# Bytes of a cotangent. From this size on, reusing its memory for the cotangent of the input saves more (the allocation and
# cache misses) than the check costs whether other code holds it.
LARGE = 1 << 16


class Leaf:
    """The edge of a leaf tensor. It adds cotangents to the `.grad` of the tensor."""

    __slots__ = ("tensor", "lasting", "hooks", "after", "of_node", "__weakref__")

    def __init__(self, tensor: Tensor, lasting: bool = True):
        self.tensor = weakref.ref(tensor)
        # Nodes keep the tensor of a lasting leaf alive. The leaves of a transform in `func/` end with the transform.
        self.lasting = lasting
        self.hooks: dict | None = None  # hooks on the complete gradient, before it is added to `.grad`
        self.after: dict | None = None  # hooks on the tensor, after the gradient is added
        self.of_node: Notes | None = None  # hooks on the node

    _edges = ()
    next_functions = ()

    @property
    def variable(self) -> Tensor | None:
        return self.tensor()

    @property
    def metadata(self) -> dict:
        return self._node_hooks().metadata

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def register_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook((), grad_outputs)` after the gradient is added to `.grad`."""
        return add_hook(self._node_hooks().after, hook)

    def register_prehook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(grad_outputs)` before the gradient is added. A result that is not None replaces grad_outputs."""
        return add_hook(self._node_hooks().before, hook)

    def _node_hooks(self) -> Notes:
        if self.of_node is None:
            self.of_node = Notes()
        return self.of_node

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {id(self):#x}>"


Leaf.__name__ = Leaf.__qualname__ = "AccumulateGrad"


class Output:
    """The edge of one result of a node with several results."""

    __slots__ = ("node", "index")

    def __init__(self, node: Node, index: int):
        self.node = node
        self.index = index


class Notes:
    """The hooks and metadata that users attach to a node. Created when the first one is attached."""

    __slots__ = ("tensor", "before", "after", "retained", "metadata")

    def __init__(self):
        self.tensor: dict[int, dict] = {}  # result -> hooks on its cotangent
        self.before: dict = {}  # hooks on the cotangents of all results
        self.after: dict = {}  # hooks on the cotangents of inputs and results
        self.retained: dict[int, weakref.ref] = {}  # result -> the tensor that keeps its gradient
        self.metadata: dict = {}  # what users store, and the stack that anomaly mode stores


class NodeSpec:
    """The metadata of a recorded operation. All nodes that one plan records share one NodeSpec."""

    __slots__ = ("op", "inputs", "static", "result", "large", "pull", "quick_pull")

    op: Any
    inputs: tuple  # per input: its Spec, or None for an input that is not a tensor
    static: tuple
    result: Any  # the Spec of the result; a tuple of them if there are several results
    large: bool  # whether there is one result, whose cotangent is worth overwriting
    pull: (
        Callable | None
    )  # (node, ct, edges): runs the rules when nothing records them; see `recorders.puller`
    quick_pull: Callable | None  # `pull`, unless the step is large

    @classmethod
    def of(cls, op: Any, inputs: tuple, static: tuple, result: Any) -> NodeSpec:
        spec = _new(cls)
        spec.op = op
        spec.inputs = inputs
        spec.static = static
        spec.result = result
        spec.large = type(result) is Spec and result.nbytes >= LARGE
        spec.pull = spec.quick_pull = None
        return spec


class Node:
    """One recorded operation. It computes the cotangents of the inputs from the cotangent of the result.

    Internal attributes have names with a leading underscore, because the nodes of a `torch.autograd.Function` are the
    `ctx` on which users set attributes.
    """

    __slots__ = ("_spec", "_edges", "_saved", "_order", "_notes", "_leaves", "__weakref__")

    _spec: NodeSpec
    _edges: tuple  # per input
    _saved: Any  # (result, *inputs) as packed, or RELEASED
    _order: int
    _notes: Notes | None
    _leaves: Any  # keeps those inputs alive that are leaves

    # Whether the node runs in a pass although no cotangent has reached it.
    takes_nothing = False

    # -- for users ---------------------------------------------------------------------------------------------

    def __call__(self, *cts: Tensor) -> Any:
        """The cotangents of the inputs for those of the differentiable results; a tuple if there are several. Hooks do not run.

        Raises: TypeError for another number of cotangents.
        """
        result = self._spec.result
        specs = result if type(result) is tuple else (result,)
        positions = [k for k, spec in enumerate(specs) if spec.dtype.category >= FLOAT]
        if len(cts) != len(positions):
            raise TypeError(f"expected {len(positions)} arguments, got {len(cts)} instead")
        given: list[Any] = [None] * len(specs)
        for position, ct in zip(positions, cts, strict=True):
            given[position] = ct
        pulled = self._pull(tuple(given) if type(result) is tuple else given[0], self._edges, mode.enabled)
        found = tuple([ct for ct, spec in zip(pulled, self._spec.inputs, strict=True) if spec is not None])
        return found[0] if len(found) == 1 else found

    def name(self) -> str:
        return type(self).__name__

    @property
    def next_functions(self) -> tuple:
        return tuple((None, 0) if edge is None else endpoint(edge) for edge in self._edges)

    @property
    def metadata(self) -> dict:
        return notes_of(self).metadata

    def _sequence_nr(self) -> int:
        return self._order

    def register_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after this node. A result that is not None replaces grad_inputs."""
        return add_hook(notes_of(self).after, hook)

    def register_prehook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(grad_outputs)` before this node. A result that is not None replaces them."""
        return add_hook(notes_of(self).before, hook)

    # -- for the engine ---------------------------------------------------------------------------------------

    def _pull(self, ct: Any, edges: tuple, recording: bool) -> Sequence[Any]:
        """The cotangents of the inputs whose edge is not None. `ct` is that of the result, or a tuple for several results."""
        spec = self._spec
        if spec.pull is not None and not recording and not open_levels:
            return spec.pull(self, ct, edges)
        values = self._values(recording)
        op, static = spec.op, spec.static
        rules: Derivative = op.derivative
        if rules is None:
            raise NotImplementedError(NO_RULE.format(op.name))
        if rules.joint is not None:
            return self._call(rules.joint, ct, values, edges)
        cotangents: list = [None] * len(edges)
        for position, rule in enumerate(rules.rules):
            if edges[position] is not None and rule is not None:
                if rule.__code__.co_kwonlyargcount:
                    cotangents[position] = self._call(rule, ct, values, edges)
                elif not recording and not open_levels:  # fused kernels compute no tangents
                    fast = rules.fused.get(position) or kernel_of(op, position)
                    cotangents[position] = fast(ct, *values, *static)
                else:
                    cotangents[position] = rule(ct, *values, *static)
        return cotangents

    def _pull_over(self, ct: Tensor, edges: tuple) -> Sequence[Any] | None:
        """As `_pull`, but reuses the memory of `ct` for the result. None unless one kernel computes the cotangent."""
        positions = [position for position, edge in enumerate(edges) if edge is not None]
        if type(self)._pull is not Node._pull or len(positions) != 1 or self._saved is RELEASED:
            return None
        spec = self._spec
        rules = spec.op.derivative
        if rules is None or rules.joint or rules.rules[positions[0]] is None:
            return None
        fast = rules.fused.get(positions[0]) or kernel_of(spec.op, positions[0])
        over = getattr(fast, "over", None)
        if over is None:
            return None
        cotangents: list = [None] * len(edges)
        cotangents[positions[0]] = over(ct, *self._values(False), *spec.static)
        return cotangents

    def _values(self, recording: bool) -> Sequence[Any]:
        """The arguments of rules: the saved tensors, numbers, and None for tensors that were not saved."""
        saved = self._saved
        if saved is RELEASED:
            saved = self._as_if_saved()
        return [None if entry is None else unpack(entry, self, recording) for entry in saved]

    def _as_if_saved(self) -> Sequence[Any]:
        """Placeholders for the saved values of a released node that saved nothing, because it can run again.

        Raises: RuntimeError if the node had saved a value.
        """
        edges, rules = self._edges, self._spec.op.derivative
        if rules is not None:
            wanted = sum(1 << position for position, edge in enumerate(edges) if edge is not None)
            if rules.needs(wanted, len(edges)) != (False, ()):
                raise RuntimeError(SECOND_TIME)
        return [None] * (1 + len(edges))

    def _call(self, rule: Any, ct: Any, values: Sequence[Any], edges: tuple) -> Any:
        spec = self._spec
        names = keywords(rule)
        if not names:
            return rule(ct, *values, *spec.static)
        known = {
            "specs": spec.inputs,
            "spec": spec.result,
            "static": spec.static,
            "wanted": tuple([edge is not None for edge in edges]),
        }
        static = () if "static" in names else spec.static
        return rule(ct, *values, *static, **{name: known[name] for name in names})

    def _output(self, index: int) -> Any:
        """The edge of one of the results."""
        return Output(self, index) if type(self._spec.result) is tuple else self

    def _release(self) -> None:
        """Drop the saved values, so that the node cannot run again."""
        self._saved = RELEASED

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


def original(entry: Any, node: Any) -> Any:
    """As `unpack`, but for a leaf it returns the tensor of the user."""
    if type(entry) is Saved and type(entry.edge) is Leaf:
        tensor = entry.edge.tensor()
        if tensor is not None and tensor._storage is entry.storage and tensor.spec is entry.spec:
            unpack(entry, node, True)  # raises if the tensor was modified in place
            return tensor
    return unpack(entry, node, True)


def endpoint(edge: Any) -> tuple[Any, int]:
    """The node of an edge, and the index of the result."""
    return (edge.node, edge.index) if type(edge) is Output else (edge, 0)


def notes_of(node: Node) -> Notes:
    """The Notes of a node. Creates them if there are none."""
    if node._notes is None:
        node._notes = Notes()
    return node._notes


def add_hook(hooks: dict, hook: Callable) -> RemovableHandle:
    """Add `hook` to `hooks`, and return a handle that removes it."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


# ---- Recording ------------------------------------------------------------------------------------------------------

_node_types: dict[tuple[str, type], type] = {}


def node_type(name: str, base: type = Node) -> type:
    """The class of nodes with this name."""
    cls = _node_types.get((name, base))
    if cls is None:
        cls = _node_types[name, base] = type(name, (base,), {"__slots__": ()})
    return cls


def rename(result: Tensor, change: Callable[[str], str]) -> None:
    """Change the name of the grad_fn of `result` to `change(name)`."""
    edge = result._autograd
    if isinstance(edge, (Node, Output)):
        node = endpoint(edge)[0]
        node.__class__ = node_type(change(type(node).__name__), type(node).__bases__[0])


def rename_after(result: Tensor, name: str) -> None:
    """Name the grad_fn of `result` after a function, or give it this name if it is one of a node."""
    rename(result, lambda _: name if name[:1].isupper() else node_name(name))


@functools.cache
def node_name(name: str) -> str:
    """`add` -> AddBackward0, `log_softmax` -> LogSoftmaxBackward0, `special.i0e` -> SpecialI0EBackward0."""
    words = re.sub("(^|[^a-z])([a-z])", lambda match: match[1] + match[2].upper(), name.lower())
    return re.sub("[^A-Za-z0-9]", "", words) + "Backward0"


_types_of_ops: dict[str, type] = {}


def type_for(op: Any, inputs: Sequence[Any], static: tuple) -> type:
    """The class of the op's nodes: named as `op.node_name` says, else after the op."""
    named = op.node_name
    if named is not None:
        return node_type(named if type(named) is str else named(inputs, static))
    cls = _types_of_ops.get(op.name)
    if cls is None:
        cls = _types_of_ops[op.name] = node_type(node_name(op.name))
    return cls


def new_node(op: Any, inputs: Sequence[Any], static: tuple, out: Any, result: Any) -> Node:
    """A node with edges and saved inputs; `result` is the Spec of its result, or a tuple of them.

    `out` is the result for its rules, None if it is not computed yet.
    """
    node: Node = _new(type_for(op, inputs, static))
    edges: list = []
    specs: list = []
    saved: list = [None]
    leaves: Any = None
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
                    leaves = value, leaves
        else:
            edges.append(None)
            specs.append(None)
            saved.append(value)
        bit += bit
    node._spec = NodeSpec.of(op, tuple(specs), static, result)
    node._edges = tuple(edges)
    node._order = next_order()
    node._notes = None
    node._leaves = leaves
    rules = op.derivative
    if rules is not None:  # without rules, backward raises an error
        need = rules.needed.get((wanted, bit)) or rules.needs(wanted, len(edges))
        for position in need.inputs:
            value = inputs[position]
            if isinstance(value, Tensor):
                saved[position + 1] = save(value, edges[position])
        if need.out and out is not None:
            saved[0] = save_output(out, rules.results)
    node._saved = tuple(saved)
    if anomaly.tracing:
        anomaly.trace(node)
    return node


def save_output(out: Any, used: Sequence[int] | None = None) -> Any:
    """Save the result, or the results whose positions are in `used`. Rules get None for the others."""
    if isinstance(out, Tensor):
        return save(out, 0)
    return SavedOutputs(
        [save(each, index) if used is None or index in used else None for index, each in enumerate(out)]
    )


def record(op: Any, result: Any, inputs: Sequence[Any], static: tuple = ()) -> Any:
    """Record an operation: make a new node the grad_fn of `result`, which is a tensor or a tuple of tensors.

    Results with integer dtypes and results of nondifferentiable ops get no grad_fn.
    """
    if op.derivative is nondifferentiable:
        return result
    if isinstance(result, Tensor):
        spec = result.spec
        if spec.dtype.category >= FLOAT:
            result._autograd = new_node(op, inputs, static, result, spec)
        return result
    if not any(each.spec.dtype.category >= FLOAT for each in result):
        return result
    node = new_node(op, inputs, static, result, tuple([each.spec for each in result]))
    for index, each in enumerate(result):
        if each.spec.dtype.category >= FLOAT:
            each._autograd = Output(node, index)
    return result


class GradientEdge(NamedTuple):
    """The edge of a tensor in the public interface: a node and the index of a result."""

    node: Any
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The GradientEdge of a tensor, which `backward` and `grad` accept in place of the tensor.

    Raises: RuntimeError if it does not require grad.
    """
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require gradients"
        )
    return GradientEdge(*endpoint(tensor._autograd))
