"""Forward mode: each recorded operation also computes the tangents of its results.

No op states a forward derivative. Its backward rule maps the cotangent of the result to the cotangent of an input, and this
map is linear. So forward mode records the rule on a dummy cotangent and runs backward through the rule, with the tangent of
the input as the cotangent. The gradient of the dummy is the tangent of the result.
Source: Townsend 2017, "A new trick for calculating Jacobian vector products".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.batched import beneath
from ..core.derivative import nondifferentiable
from ..core.dtype import FLOAT
from ..core.grad_mode import enable_grad, mode
from ..core.tensor import Tensor, make
from ..ops.creation.creation import full, zeros_like
from . import engine, graph
from .dual import DUAL, at_outer_levels, set_tangents, tangents
from .graph import Leaf
from .saved import Packed, Saved, SavedDual, SavedOutputs


def record(op: Any, result: Any, inputs: Sequence[Any], static: tuple = ()) -> Any:
    """As `graph.record`. The results get tangents if an input has a tangent."""
    by_input = [tangents(x) for x in inputs]
    levels = sorted(set().union(*by_input))
    bare = [_without_mark(x) if isinstance(x, Tensor) and x._autograd is DUAL else x for x in inputs]
    if mode.reverse and any(map(_requires_grad, bare)):
        result = graph.record(op, result, bare, static)
    if not levels or op.derivative is nondifferentiable:
        return result
    results = [result] if isinstance(result, Tensor) else list(result)
    # Outermost first, because an inner level sees values with the tangents of the outer levels.
    for level in levels:
        input_tangents = [each.get(level) for each in by_input]
        outs = [at_outer_levels(each, level) for each in results]
        pushed = push(op, outs, isinstance(result, Tensor), inputs, static, input_tangents, level)
        for each, tangent in zip(results, pushed, strict=True):
            if tangent is not None:
                set_tangents(each, {**tangents(each), level: tangent})
    node = _node_of(results)
    if node is not None:
        keep_tangents(node, results, inputs)
    return result


def push(
    op: Any,
    outs: list,
    single: bool,
    inputs: Sequence[Any],
    static: tuple,
    input_tangents: Sequence[Any],
    level: int,
) -> list:
    """The tangents of the results, from the tangents of the inputs (None for zero).

    The tangents require grad only if an input or a tangent of an input does. Without this check the rule of
    `logcumsumexp`, which takes the logarithm of the cotangent, would record tangents as functions of the dummy cotangent.
    """
    if mode.reverse and any(map(_requires_grad, (*inputs, *input_tangents))):
        return _push(op, outs, single, inputs, static, input_tangents, level)
    with enable_grad():
        pushed = _push(op, outs, single, inputs, static, input_tangents, level)
    return [t if t is None else _unrecorded(t) for t in pushed]


def _requires_grad(value: Any) -> bool:
    return isinstance(value, Tensor) and value._autograd is not None and value._autograd is not DUAL


def _unrecorded(tensor: Tensor) -> Tensor:
    return set_tangents(make(tensor._storage, tensor._byte_offset, tensor.spec), tangents(tensor))


def _push(
    op: Any,
    outs: list,
    single: bool,
    inputs: Sequence[Any],
    static: tuple,
    input_tangents: Sequence[Any],
    level: int,
) -> list:
    values = [at_outer_levels(x, level) if isinstance(x, Tensor) else x for x in inputs]
    differentiable = [k for k, out in enumerate(outs) if out.spec.dtype.category >= FLOAT]
    dummies: list = [None] * len(outs)
    for k in differentiable:
        spec = outs[k].spec
        dummies[k] = full(spec.shape, op.derivative.seed, dtype=spec.dtype, device=spec.device)
        dummies[k]._autograd = Leaf(dummies[k], lasting=False)
    if not differentiable:
        return [None] * len(outs)
    marked = [make(x._storage, x._byte_offset, x.spec) if isinstance(x, Tensor) else x for x in values]
    for x, tangent in zip(marked, input_tangents, strict=True):
        if tangent is not None:
            x._autograd = DUAL  # in place of an edge, because rules run only for inputs that have an edge
    specs = outs[0].spec if single else tuple([out.spec for out in outs])
    node = graph.new_node(op, marked, static, outs[0] if single else tuple(outs), specs)
    node._saved = (outs[0] if single else tuple(outs), *values)
    cts = node._pull(dummies[0] if single else tuple(dummies), node._edges, True)
    pairs = []
    for position, tangent in enumerate(input_tangents):
        ct = cts[position] if tangent is not None else None
        if ct is not None and ct.requires_grad:
            pairs.append((engine.fitted(ct, node._spec.inputs[position], node, position), tangent))
        elif ct is not None and bool(
            beneath(ct != 0).any()
        ):  # the rule computes its result without recording it
            raise NotImplementedError(f"forward mode through {op.name}")
    zero = [None if each is None else zeros_like(each.detach()) for each in dummies]
    if not pairs:
        return zero
    edges = [dummies[k]._autograd for k in differentiable]
    pushed = engine.run(
        [(ct._autograd, tangent) for ct, tangent in pairs],
        wanted=edges,
        keep_graph=True,
        create_graph=True,
        accumulate=False,
    )
    return [
        None if each is None else pushed.get(each._autograd, blank)
        for each, blank in zip(dummies, zero, strict=True)
    ]


def _without_mark(tensor: Tensor) -> Tensor:
    return make(tensor._storage, tensor._byte_offset, tensor.spec)


def _node_of(results: Sequence[Tensor]) -> Any:
    for each in results:
        if each._autograd is not None and each._autograd is not DUAL:
            return graph.endpoint(each._autograd)[0]
    return None


def keep_tangents(node: Any, results: Sequence[Tensor], inputs: Sequence[Any]) -> None:
    """Store the tangents of the saved values in the node, so that forward mode can differentiate the backward pass."""
    out, *saved = node._saved
    if type(out) is SavedOutputs:
        out = SavedOutputs(map(_with_tangents, out, results))
    else:
        out = _with_tangents(out, results[0])
    node._saved = (out, *map(_with_tangents, saved, inputs))


def _with_tangents(entry: Any, value: Any) -> Any:
    by_level = tangents(value)
    return SavedDual(entry, by_level) if by_level and isinstance(entry, (Saved, Packed)) else entry
