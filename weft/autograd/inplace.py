"""Recorded in-place operations: the target becomes the result of a new node, and so does the base of a view.

An in-place operation on a view counts as an operation on its base (`CopySlices`). Backward takes the cotangent of the view out
of the cotangent of the base, and replaces this region by the cotangent that the rule returns. All other views of the base get
a new grad_fn (`AsStridedBackward0`), whose input is the new base.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

from ..core import outputs
from ..core.derivative import Derivative, nondifferentiable
from ..core.dispatch import watchers
from ..core.grad_mode import detours, mode
from ..core.op import Op
from ..core.plans import PlanCache
from ..core.recording import new_recorder, unrecorded
from ..core.spec import Spec, make_spec
from ..core.tensor import Tensor, empty, make
from ..families.custom_vjp import CustomVjp
from ..families.map import COPY, FILL
from ..families.view import View
from ..ops.assembly.filling import ZERO
from ..ops.creation.creation import zeros, zeros_like
from ..ops.views.views import AS_STRIDED
from .dual import Dual
from .graph import (
    SECOND_TIME,
    Leaf,
    Node,
    NodeSpec,
    Output,
    endpoint,
    new_node,
    next_order,
    node_type,
    notes_of,
    save_output,
)
from .recorders import readers_of_first
from .saved import RELEASED, Saved, short_name


def check_write(target: Tensor) -> None:
    """Raises: RuntimeError for leaves that require grad and for views of them."""
    if not mode.reverse:
        return
    base = target._base
    reason = None if base is None else target.__dict__.get("_unwritable")
    if reason is not None:
        if reason in (MANY, CUSTOM):
            reason = f"Output {target.output_nr} of {short_name(target.grad_fn)} {reason}"  # type: ignore[attr-defined]
        raise RuntimeError(reason)
    if type(target._autograd) is Leaf:
        raise RuntimeError(LEAF.format("a leaf"))
    if base is not None and type(base._autograd) is Leaf:
        raise RuntimeError(VIEW_OF_LEAF)


LEAF = (
    "{} Variable that requires grad is being used in an in-place operation.\nWrite under torch.no_grad(), or into a "
    "clone()"
)
VIEW_OF_LEAF = LEAF.format("a view of a leaf")


class Overwrite(Node):
    """An in-place operation that does not read its target. The old value of the target gets a cotangent of zero."""

    __slots__ = ()

    def _pull(self, ct: Any, edges: tuple, recording: bool) -> Sequence[Any]:
        zero = None if edges[-1] is None else zeros_like(ct)
        return [*Node._pull(self, ct, edges[:-1], recording), zero]


class ConstantWrite(Node):
    """An in-place nondifferentiable operation. Every input, the old target included, gets a cotangent of zero.

    Without this node the target would keep the grad_fn of the values that the operation has overwritten.
    """

    __slots__ = ()

    def _pull(self, ct: Any, edges: tuple, recording: bool) -> Sequence[Any]:
        return [
            None if edge is None else zeros(spec.shape, dtype=spec.dtype, device=spec.device)
            for edge, spec in zip(edges, self._spec.inputs, strict=True)
        ]


def start_inplace(step: Any, target: Tensor, inputs: Sequence[Any], static: tuple) -> Node | None:
    """The node for an in-place operation that is about to run; None if the dtype of the target is not differentiable."""
    check_write(target)
    if target.spec.dtype.category < 2:
        return None
    rules, read, needs_out = step.derivative, inputs, False
    if rules is not None:
        need = rules.needs(_wanted(inputs), len(inputs))
        read, needs_out = copy_overwritten(inputs, need.inputs, target), need.out
    node = new_node(step, read, static, None, target.spec)
    if needs_out:
        node._saved = (_LATER, *node._saved[1:])
    if not any(x is target for x in inputs) and target._autograd is not None:
        node._edges = (*node._edges, target._autograd)
        node._spec.inputs = (*node._spec.inputs, target.spec)
        node.__class__ = node_type(type(node).__name__, Overwrite)
    elif rules is nondifferentiable:
        node.__class__ = node_type(type(node).__name__, ConstantWrite)
    return node


# Placeholder for the result in `node._saved`, until the operation has run.
_LATER = object()


def copy_overwritten(inputs: Sequence[Any], needed: Iterable[int], target: Tensor) -> Sequence[Any]:
    """The inputs, with copies of those inputs that the rules need and that share memory with the target."""
    storage = target._storage
    for position in needed:
        value = inputs[position]
        if isinstance(value, Tensor) and value._storage is storage:
            copy = make(value._storage, value._byte_offset, value.spec).clone()
            copy._autograd = value._autograd
            inputs = (*inputs[:position], copy, *inputs[position + 1 :])
    return inputs


def finish_inplace(node: Node, target: Tensor, inputs: Sequence[Any]) -> None:
    """The operation has run: make `node` the grad_fn of the target."""
    saved = 0
    if node._saved and node._saved[0] is _LATER:
        out = save_output(target)
        node._saved = (out, *node._saved[1:])
        saved = int(type(out) is Saved)
    own = [k for k, x in enumerate(inputs) if x is target]
    if isinstance(node, Overwrite):
        own.append(len(node._edges) - 1)
    rebase(target, node, own, saved)


def can_record_after(plan: Any, op: Any, target: Tensor, inputs: Sequence[Any]) -> bool:
    """Whether the recorder of the plan can record an in-place operation after it has run, by `record_after`.

    If not, `start_inplace` must make the node before: for a view, or if a rule needs a value that is overwritten.
    """
    if target._base is not None or detours or watchers or op.derivative is nondifferentiable:
        return False
    if plan.record is None:
        plan.readers = readers_of_first(op, inputs)
        new_recorder(plan, op, target, inputs)
    for position in plan.readers:
        if inputs[position]._autograd is not None:
            return False
    storage = target._storage
    for value in inputs[1:]:
        # The recorder raises if it must save memory of inference mode. That must not happen after the operation has run.
        if isinstance(value, Tensor) and (
            value._storage is storage or type(value._storage.version) is not int
        ):
            return False
    return True


def record_after(plan: Any, target: Tensor, inputs: Sequence[Any]) -> None:
    """Make the node of an in-place operation that has run, and make it the grad_fn of the target."""
    before = target._autograd
    aliased = before is None and is_aliased(target, 1)
    plan.record(target, *inputs)
    _follow(target, before, aliased)


# By the op of a write that does not read its target: the op that is recorded after the write, with the target as the last input.
_OVERWRITES: dict[Any, Op] = {
    COPY.as_write: Op(
        "copy_",
        Derivative(lambda ct, out, source, target: ct, lambda ct, out, source, target: zeros_like(ct)),
        "CopyBackwards",
    ),
    FILL.as_write: Op("fill_", Derivative(lambda ct, out, target: zeros_like(ct)), "FillBackward2"),
    ZERO: Op("zero_", Derivative(lambda ct, out, target: zeros_like(ct))),
}


def can_overwrite(target: Tensor) -> bool:
    """Whether `record_overwrite` may record a write into this tensor. If not, `start_inplace` must do so before the write."""
    if type(target) is not Tensor or target._base is not None or detours or watchers or not mode.reverse:
        return False
    return target._autograd is None or isinstance(target._autograd, Node)


class _Overwriter:
    """The recorder of overwrites with the same metadata, as a plan keeps it."""

    record: Any = None


@PlanCache
def _overwriters(op: Any, target: Spec, source: Spec | None) -> _Overwriter:
    return _Overwriter()


def record_overwrite(op: Any, target: Tensor, source: Tensor | None = None) -> None:
    """Make the node of a write that has run and has not read its target, and make it the grad_fn of the target."""
    before = target._autograd
    aliased = before is None and is_aliased(target, 1)
    inputs = (target,) if source is None else (source, target)
    plan = _overwriters[op, target.spec, None if source is None else source.spec]
    record = plan.record or new_recorder(plan, _OVERWRITES[op], target, inputs)
    record(target, *inputs)
    _follow(target, before, aliased)


def rebase(target: Tensor, edge: Any, own: Sequence[int] = (), saved: int = 0) -> None:
    """Make `edge` the grad_fn of `target`.

    own: the positions of the target among the inputs of the node.
    saved: how many values the node has saved in the memory of the target.
    """
    base = target._base
    if base is None:
        _set_edge(target, edge, 1 + saved)
        return
    if not isinstance(edge, Node):
        raise NotImplementedError("a write to a view by a function with several results")
    if target._autograd is None:
        _register(base, target)
    _set_edge(base, CopySlices.of(edge, list(own), base, target), 2 + saved)


def _set_edge(base: Tensor, edge: Any, known: int) -> None:
    """Set the edge of a tensor that is not a view, and update its views. `known` counts the known users of its memory."""
    before = base._autograd
    aliased = (before is None or type(before) is Leaf) and is_aliased(base, known)
    base._autograd = edge
    _follow(base, before, aliased)


def _follow(base: Tensor, before: Any, aliased: bool) -> None:
    """Let `retain_grad` and the views of a tensor follow it from the edge `before` to its new edge."""
    # Asked here, too, because few tensors have notes, and a call would take longer than the question.
    if isinstance(before, (Node, Output)) and endpoint(before)[0]._notes is not None:
        _move_retained(before, base._autograd)
    if aliased or base._views is not None:
        _refresh(base, aliased)


def _move_retained(before: Any, edge: Any) -> None:
    """`retain_grad` means the gradient of the new value from now on."""
    if isinstance(before, (Node, Output)):
        old, index = endpoint(before)
        if old._notes is not None and index in old._notes.retained:
            new, position = endpoint(edge)
            notes_of(new).retained[position] = old._notes.retained.pop(index)


def rebase_history(target: Tensor, result: Tensor) -> None:
    """Write `result` into `target`, which takes over the grad_fn of the result if their dtypes are equal."""
    check_write(target)
    if (
        target._base is not None
        or result.spec.dtype is not target.spec.dtype
        or type(result._autograd) is Leaf
    ):
        outputs.copy_values(target, result)
        return
    with unrecorded():
        outputs.copy_values(target, result)
    rebase(target, result._autograd)


def _wanted(inputs: Sequence[Any]) -> int:
    """The inputs that need a cotangent, as bits."""
    wanted, bit = 0, 1
    for value in inputs:
        if isinstance(value, Tensor) and value._autograd is not None:
            wanted |= bit
        bit += bit
    return wanted


class CopySlices(Node):
    """The node of an in-place operation on a view; its result is the base."""

    __slots__ = ("inner", "own", "view", "start")

    inner: Node  # the operation on the view
    own: list[int]  # the positions of the view among the inputs of `inner`
    view: Spec
    start: int  # bytes from the start of the base to the start of the view

    @classmethod
    def of(cls, inner: Node, own: list[int], base: Tensor, view: Tensor) -> CopySlices:
        node: CopySlices = object.__new__(cls)
        edges, specs = inner._edges, inner._spec.inputs
        others = [k for k in range(len(edges)) if k not in own]
        node._edges = (base._autograd, *[edges[k] for k in others])
        node._spec = NodeSpec.of(inner._spec.op, (base.spec, *[specs[k] for k in others]), (), base.spec)
        node._saved = ()
        # A new number, because backward may also reach `inner`, through its saved result.
        node._order = next_order()
        node._notes = None
        if inner._notes is not None:
            notes_of(node).metadata.update(inner._notes.metadata)
        node._leaves = inner._leaves
        node.inner, node.own, node.view = inner, own, view.spec
        node.start = (
            view._byte_offset - base._byte_offset if view.spec.numel else 0
        )  # an empty view may start anywhere
        if not 0 <= node.start <= _bytes(base.spec) - _bytes(view.spec):
            raise NotImplementedError("a recorded write to memory outside of what the view's base shows")
        return node

    def _pull(self, ct: Any, edges: tuple, recording: bool) -> Sequence[Any]:
        if self._saved is RELEASED:
            raise RuntimeError(SECOND_TIME)
        inner, own = self.inner, self.own
        whole = cotangent_like(self._spec.result, ct)
        part = REGION(whole, self.view, self.start)
        others = [k for k in range(len(inner._edges)) if k not in own]
        asked = list(inner._edges)
        for position, k in enumerate(others):
            asked[k] = edges[position + 1]
        if isinstance(inner, Overwrite):  # the overwritten values of the view get no gradient
            asked[-1] = None
        cotangents = inner._pull(part.clone(), tuple(asked), recording)
        result = [cotangents[k] for k in others]
        if edges[0] is None:
            return [None, *result]
        before = None
        for k in own:
            if cotangents[k] is not None:
                before = cotangents[k] if before is None else before + cotangents[k]
        part.copy_(before) if before is not None else part.zero_()
        return [whole, *result]

    def _release(self) -> None:
        # The inner node itself may still be alive, because others use its saved result.
        self._saved = self.inner = RELEASED


def cotangent_like(base: Spec, ct: Tensor | None = None) -> Tensor:
    """A copy of `ct`, or zeros, with the strides of the base, so that a view lies at the same place in both."""
    own, dense = _memory[base,]
    if ct is not None and dense:
        return empty(own).copy_(ct)
    whole = zeros(base.span, dtype=base.dtype, device=base.device)
    whole = make(whole._storage, 0, own)
    return whole if ct is None else whole.copy_(ct)


@PlanCache
def _memory(base: Spec) -> tuple[Spec, bool]:
    return make_spec(base.shape, base.stride, base.dtype, base.device), base.is_dense


def _bytes(spec: Spec) -> int:
    return spec.span * spec.dtype.itemsize


def _region(spec: Spec, view: Spec, start: int) -> tuple[Spec, int]:
    return view, start // view.dtype.itemsize


def _region_back(ct, out, a, view, start, *, specs):
    repeated = [dim for dim, step in enumerate(view.stride) if step == 0]
    if repeated:
        ct = ct.sum(repeated, keepdim=True)
        view = make_spec(ct.shape, view.stride, view.dtype, view.device, view.conj, view.neg)
    return _EMBEDDED(ct, specs[0], view, start)


def _embedded(part, base: Spec, view: Spec, start: int):
    """Zeros with the layout of a base, and `part` in the place of a view of it."""
    whole = cotangent_like(base)
    COPY.write(make(whole._storage, whole._byte_offset + start, view), part.detach())
    return whole


_EMBEDDED = CustomVjp(
    _embedded,
    lambda ct, out, part, base, view, start: REGION(cotangent_like(base, ct), view, start),
    inputs=1,
    name="region_backward",
)


# The view with metadata `view` that begins `start` bytes after the first element of its base.
REGION: View = View(_region, _region_back, node_name="AsStridedBackward0")


# ---- The other views of a base ------------------------------------------------------------------------------------


def _register(base: Tensor, view: Tensor) -> None:
    if base._views is None:
        base._views = []
    views = base._views
    views.append(weakref.ref(view))
    # Drop dead references when the length reaches a power of two, so that the cost per view stays constant.
    if len(views) > 64 and len(views) & (len(views) - 1) == 0:
        views[:] = [each for each in views if each() is not None]


def recorded_view(view: Tensor, input: Tensor, several: bool = False) -> None:
    """Prepare a new view for in-place operations on its base.

    `several`: the view is one of the results of an op such as `split`.
    """
    assert view._base is not None
    if not (mode.enabled and mode.reverse):
        if type(input._autograd) is Dual:
            return
        # As in PyTorch, the view requires grad and has no path to its base.
        view._autograd = Leaf(view)
        view._unwritable, view._unconnected = _unrecorded_reason(), True  # type: ignore[attr-defined]
        return
    if several:
        view._unwritable = MANY  # type: ignore[attr-defined]
    elif input._base is not None:
        reason = input.__dict__.get("_unwritable")
        if reason is None and type(input._autograd) is Leaf:
            reason = VIEW_OF_LEAF
        if reason is not None:
            view._unwritable = reason  # type: ignore[attr-defined]
    base = view._base  # as in `note_view`, which would take 7 bytecodes more
    if view._autograd is not None and type(base._autograd) is not Leaf:
        _register(base, view)


def note_view(view: Tensor) -> None:
    """Let in-place operations on the base of a view refresh the view."""
    base: Any = view._base
    if view._autograd is not None and type(base._autograd) is not Leaf:
        _register(base, view)


# The errors for in-place operations on such views while grad mode is on.
UNRECORDED = (
    "A view was created in {1} mode and is being modified inplace {2}. Given that this use case is "
    "ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace either "
    "both inside the {0} block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be "
    "tracked)."
)


def _unrecorded_reason() -> str:
    if mode.inference:
        return UNRECORDED.format("inference_mode", "inference", "in normal mode")
    return UNRECORDED.format("no_grad", "no_grad", "with grad mode enabled")


MANY = (
    "is a view and is being modified inplace. This view is the output of a function that returns multiple views. Such "
    "functions do not allow the output views to be modified inplace. You should replace the inplace operation by an "
    "out-of-place one."
)
CUSTOM = (
    "is a view and is being modified inplace. This view was created inside a custom Function (or because an input was "
    "returned as-is) and the autograd logic to handle view+inplace would override the custom backward associated with "
    "the custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the "
    "output of the custom Function."
)


def is_aliased(base: Tensor, known: int) -> bool:
    """Whether more than `known` tensors use the memory of the base. For a base that had no edge so far."""
    return sys.getrefcount(base._storage) > known + 1  # the call to getrefcount holds a reference as well


def _refresh(base: Tensor, search: bool) -> None:
    """Give all views of `base` a new grad_fn whose input is the current value of the base."""
    for view in views_of(base, search):
        before, view._autograd = view._autograd, _as_strided_node(base, view)
        _move_retained(before, view._autograd)


def views_of(base: Tensor, search: bool) -> list[Tensor]:
    """The registered views of a base; with `search`, all its views."""
    views = [each() for each in base._views or ()]
    if search:
        # Views of a leaf, and of a base that did not require grad yet, are not registered, because that would cost time.
        known = {id(each) for each in views}
        for each in gc.get_referrers(base):
            if isinstance(each, Tensor) and each._base is base and id(each) not in known:
                views.append(each)
                _register(base, each)
    return [view for view in views if view is not None and view._base is base]


def _as_strided_node(base: Tensor, view: Tensor) -> Any:
    spec, whole, start = view.spec, base.spec, view._byte_offset - base._byte_offset
    if type(spec) is not Spec:  # a view with names
        spec = make_spec(spec.shape, spec.stride, spec.dtype, spec.device, spec.conj, spec.neg)
    if spec.dtype is whole.dtype and spec.conj is whole.conj and spec.neg is whole.neg:
        node = new_node(
            AS_STRIDED, (base,), (spec.shape, spec.stride, start // spec.dtype.itemsize), None, spec
        )
    else:
        node = new_node(REGION, (base,), (spec, start), None, spec)
    return node
