"""Defines one layer of a recurrent network in one direction.

One product projects the inputs of all steps. Then each step is one product and one kernel, forward and backward, and the gradients
of the weights are products over all steps. Autograd records all of this as one node. If kernels cannot compute the layer, or if the
backward pass is itself recorded, the layer is composed of ops.

A sequence is [T, N, features], or packed: [rows, features], where step t has the next `sizes[t]` rows. Sequences are
sorted, the longest first, so the first `sizes[t]` sequences are the ones that reach step t.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.above import above
from ...core.autocast import open_contexts
from ...core.autocast import state as autocast
from ...core.dtype import bfloat16, float16, float32, float64
from ...core.grad_mode import enable_grad, mode, open_levels
from ...core.plans import PlanCache
from ...core.recording import needs_recording
from ...core.spec import Spec
from ...core.tensor import Tensor
from ...families.custom_vjp import CustomVjp
from ..assembly.joining import cat, stack
from ..linalg.matmul import MM, rows_of
from ..views.views import T
from .linear import linear
from .recurrent_cells import GRU, LSTM, RELU, TANH, Kind, Projections, State, Weights
from .recurrent_kernels import is_split
from .recurrent_time import backward, forward, wide


def layer(
    kind: Kind, sizes: tuple[int, ...], reverse: bool, input: Tensor, weights: Weights, initial: State
) -> tuple[Tensor, ...]:
    """The output and the final state, which has the shape of the initial one: [N, hidden] or [1, N, hidden]."""
    tensors = (input, *weights, *initial)
    specs = [None if each is None else each.spec for each in tensors]
    casting = open_contexts and autocast.enabled
    if not open_levels and not casting and _fits[kind, sizes, *specs]:
        saving = needs_recording(tensors)
        return _STEPS[kind](kind, sizes, reverse, saving, *tensors)[2 * saving :]
    return composed(kind, sizes, reverse, input, weights, initial)


def _check_fits(
    kind: Kind,
    sizes: tuple[int, ...],
    input: Spec,
    weight: Spec,
    own_weight: Spec,
    bias: Spec | None,
    own_bias: Spec | None,
    projection: Spec | None,
    *initial: Spec,
) -> bool:
    """Whether kernels can compute the layer. If not, ops compute it or raise the error."""
    given = (input, weight, own_weight, bias, own_bias, projection, *initial)
    specs = [each for each in given if each is not None]
    dtype, n_seen = input.dtype, own_weight.shape[-1]
    n_hidden = n_seen if projection is None else projection.shape[-1]
    width = kind.n_gates * n_hidden
    states = [(sizes[0], n_seen), (sizes[0], n_hidden)]
    return (
        dtype in (float16, bfloat16, float32, float64)
        and len(initial) == kind.n_states
        and all(each.dtype is dtype and each.device is input.device and not each.neg for each in specs)
        and input.device.backend.has_memory
        and len(weight.shape) == 2
        and tuple(weight.shape) == (width, input.shape[-1])
        and tuple(own_weight.shape) == (width, n_seen)
        and (bias is None) == (own_bias is None)
        and all(each is None or tuple(each.shape) == (width,) for each in (bias, own_bias))
        and (
            projection is None
            or kind is LSTM
            and tuple(projection.shape) == (n_seen, n_hidden)
            and n_seen <= n_hidden
        )
        and all(tuple(each.shape) in (own, (1, *own)) for each, own in zip(initial, states))
        and sum(sizes) * input.shape[-1] == input.numel
        and all(later <= size for size, later in zip(sizes, sizes[1:]))
        and min(sizes[-1], n_seen, input.shape[-1]) > 0
    )


_fits = PlanCache(_check_fits)


# ---- Composed of ops ----------------------------------------------------------------------------------------------


def composed(
    kind: Kind, sizes: tuple[int, ...], reverse: bool, input: Tensor, weights: Projections, initial: State
) -> tuple[Tensor, ...]:
    """Return the output and the final state, composed of ops."""
    projected = weights.of_input(input)
    packed = input.dim() == 2
    steps = list(zip(projected.split(sizes) if packed else projected.unbind(0), sizes))
    whole = tuple([each.reshape(each.shape[-2:]) for each in initial])
    outputs = []
    for own, size in reversed(steps) if reverse else steps:
        state = advance(kind, own, tuple([each[:size] for each in whole]), weights)
        outputs.append(state[0])
        if size < sizes[0]:
            state = tuple([cat((new, old[size:])) for new, old in zip(state, whole)])
        whole = state
    output = (cat if packed else stack)(outputs[::-1] if reverse else outputs)
    return output, *[each.reshape(first.shape) for each, first in zip(whole, initial)]


def advance(kind: Kind, projected: Tensor, state: State, weights: Projections) -> State:
    """One step; `projected` is the projection of the input."""
    own = weights.of_hidden(state[0])
    joined = kind.join(projected.chunk(kind.n_gates, 1), own.chunk(kind.n_gates, 1))
    hidden, *rest = kind.update(joined, state)
    if weights.projection is not None:
        hidden = linear(hidden, weights.projection)
    return hidden, *rest


def _composed_of(
    kind: Kind, sizes: tuple[int, ...], reverse: bool, saving: bool, input: Tensor, *tensors: Any
) -> tuple[Tensor, ...]:
    return composed(kind, sizes, reverse, input, Weights(*tensors[:5]), tensors[5:])


# ---- As one step ---------------------------------------------------------------------------------------------------


def _rule(
    ct,
    out,
    kind,
    sizes,
    reverse,
    saving,
    input,
    weight,
    own_weight,
    bias,
    own_bias,
    projection,
    *initial,
    wanted,
):
    if mode.enabled:
        weights = (weight, own_weight, bias, own_bias, projection)
        inputs = (kind, sizes, reverse, saving, input, *weights, *initial)
        return _pulled_back(_composed_of, inputs, ct[2:], wanted)
    joined, before = out[:2]
    of_projected, of_own, of_state, of_seen = backward(
        kind, sizes, reverse, joined, before, ct[2:], own_weight, projection, initial, wanted[10]
    )
    of_biases, of_projection = [None, None], None
    if wanted[7] or wanted[8]:
        of_bias = of_projected.sum(0)
        of_biases = [of_bias, of_own.sum(0) if is_split(kind) else of_bias.clone()]
    if wanted[9] and of_seen is not None:
        hidden, _ = kind.update(joined.chunk(kind.n_gates, 1), (None, before[1]))
        of_projection = MM(T(of_seen if ct[2] is None else of_seen + rows_of(ct[2])), wide(hidden))
    return [
        *[None] * 4,
        MM(of_projected, wide(weight)).view(input.spec.shape) if wanted[4] else None,
        MM(T(of_projected), rows_of(wide(input))) if wanted[5] else None,
        MM(T(of_own), wide(before[0][:, : own_weight.size(1)])) if wanted[6] else None,
        *of_biases,
        of_projection,
        *of_state,
    ]


def _pulled_back(
    function: Callable[..., Sequence[Tensor]],
    inputs: Sequence[Any],
    cts: Sequence[Any],
    wanted: Sequence[bool],
) -> list[Tensor | None]:
    """The cotangents of the inputs of a composed function, recorded, so that they can be differentiated again."""
    grad = above("autograd.backward").grad
    with enable_grad():
        # Views, because one input may have been computed from another, whose cotangent must not pass through it.
        own = [each.view_as(each) if isinstance(each, Tensor) else each for each in inputs]
        pairs = [(result, ct) for result, ct in zip(function(*own), cts) if ct is not None]
        outputs, given = zip(*pairs)
        sources = [each for each, is_wanted in zip(own, wanted) if is_wanted]
        found = iter(grad(outputs, sources, given, create_graph=True, allow_unused=True))
    return [next(found) if is_wanted else None for is_wanted in wanted]


def _step(kind: Kind) -> CustomVjp:
    def node_name(inputs: Sequence[Any], static: tuple) -> str:
        """Return the name of the last node of PyTorch's composition: of a cell, a sequence, or packed sequences."""
        if inputs[4].dim() == 3:
            return "StackBackward0"
        return "CatBackward0" if len(inputs[1]) > 1 else kind.node_name

    return CustomVjp(forward, joint=_rule, results=(0, 1), name=kind.name, node_name=node_name)


_STEPS = {kind: _step(kind) for kind in (TANH, RELU, GRU, LSTM)}
