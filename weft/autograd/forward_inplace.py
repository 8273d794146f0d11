"""In-place operations in forward mode: the target, its base and the other views of the base get new tangents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..core.derivative import nondifferentiable
from ..core.dtype import FLOAT
from ..core.grad_mode import mode
from ..core.restoring import contextmanager
from ..core.tensor import Tensor
from ..ops.creation.creation import zeros_like
from . import inplace
from .dual import DUAL, at_outer_levels, set_tangents, tangents
from .forward import keep_tangents, push
from .graph import Leaf


class _Write(NamedTuple):
    """An in-place operation between `start_inplace` and `finish_inplace`, while a level of forward mode is open."""

    node: Any  # the node that records the operation for backward; None if backward does not need it
    op: Any
    inputs: Sequence[Any]  # with the values before the write
    static: tuple
    tangents: list[dict[int, Tensor]]  # of the inputs
    levels: list[int]


def start_inplace(op: Any, target: Tensor, inputs: Sequence[Any], static: tuple) -> Any:
    """As `inplace.start_inplace`."""
    by_input = [tangents(x) for x in inputs]
    levels = sorted(set(tangents(target)).union(*by_input))
    with _unmarked((target, *inputs)):
        node = None
        if mode.reverse and any(isinstance(x, Tensor) and x._autograd is not None for x in (target, *inputs)):
            node = inplace.start_inplace(op, target, inputs, static)
        inplace.check_write(target)
        if not levels or target.spec.dtype.category < FLOAT:
            return node
        before = inplace.copy_overwritten(inputs, range(len(inputs)), target)
    for old, x, own in zip(before, inputs, by_input, strict=True):
        if old is not x:
            set_tangents(old, own)
    return _Write(node, op, before, static, by_input, levels)


def finish_inplace(write: Any, target: Tensor, inputs: Sequence[Any]) -> None:
    """As `inplace.finish_inplace`."""
    if type(write) is not _Write:
        inplace.finish_inplace(write, target, inputs)
        return
    if write.node is not None:
        with _unmarked((target, *inputs)):
            inplace.finish_inplace(write.node, target, inputs)
    for level in (
        write.levels
    ):  # outermost first, because an inner level sees values with the tangents of the outer levels
        if write.op.derivative is nondifferentiable:
            tangent = zeros_like(target.detach())
        else:
            input_tangents = [each.get(level) for each in write.tangents]
            (tangent,) = push(
                write.op,
                [at_outer_levels(target, level)],
                True,
                write.inputs,
                write.static,
                input_tangents,
                level,
            )
        _set_tangent(target, level, tangent)
    if write.node is not None:
        keep_tangents(write.node, [target], write.inputs)


def rebase_history(target: Tensor, result: Tensor) -> None:
    """As `inplace.rebase_history`."""
    by_level = tangents(result)
    if not by_level and not tangents(target):
        inplace.rebase_history(target, result)
        return
    if target._base is not None or result.spec.dtype is not target.spec.dtype:
        target.copy_(result)
        return
    with _unmarked((target, result)):
        inplace.rebase_history(target, result)
    for level in {**tangents(target), **by_level}:
        tangent = by_level.get(level)
        if tangent is None:
            tangent = zeros_like(target.detach())
        _set_tangent(target, level, tangent)


def take_grad_fn_of(target: Tensor, result: Tensor) -> None:
    """Give the target the grad_fn and the tangents of a result."""
    target._autograd = result._autograd
    set_tangents(target, tangents(result))


def _set_tangent(target: Tensor, level: int, tangent: Tensor) -> None:
    """Set the tangent of the target, and update the tangents of its base and of all other views of the base.

    A base without a tangent gets one, unless one of its views has a tangent already: then `make_dual` made this view, or a
    view that it is a view of, and only the views below `make_dual` have tangents.
    """
    base = target._base
    if base is None:
        base, whole = target, tangent
    # A view is registered only if its base has a node or tangents when the view is made.
    edge = base._autograd
    unknown = (edge is None or type(edge) is Leaf) and inplace.is_aliased(base, 1 if base is target else 2)
    views = inplace.views_of(base, unknown)
    dual_views = []
    if base is not target:
        if not any(view is target for view in views):
            views.append(target)
        before = tangents(base).get(level)
        whole = inplace.cotangent_like(base.spec, before)
        if before is None:
            dual_views = [view for view in views if level in tangents(view)]
        for view in dual_views:
            _region(whole, view, base).copy_(tangents(view)[level])
        _region(whole, target, base).copy_(tangent)
    if dual_views:
        views = [*dual_views, target]
    else:
        set_tangents(base, {**tangents(base), level: whole})
    if views and base is target:
        whole = inplace.cotangent_like(base.spec, whole)
    for view in views:
        set_tangents(view, {**tangents(view), level: _region(whole, view, base)})


def _region(whole: Tensor, view: Tensor, base: Tensor) -> Tensor:
    """The part of `whole`, a tensor like `base`, that lies where `view` lies in `base`."""
    return inplace.REGION(whole, view.spec, view._byte_offset - base._byte_offset)


@contextmanager
def _unmarked(tensors: Sequence[Any]) -> Iterator[None]:
    """Within this context, tensors with the DUAL mark look to reverse mode like tensors that do not require grad."""
    marked = [x for x in tensors if isinstance(x, Tensor) and x._autograd is DUAL]
    for x in marked:
        x._autograd = None
    try:
        yield
    finally:
        for x in marked:
            if x._autograd is None:
                x._autograd = DUAL
