"""One layer of a recurrent network in one direction.

The inputs of all steps are projected by one product. Then, for each step, there is one product and one kernel; backward
likewise, and the gradients of the weights are products over all steps. All of this is one step for autograd. Where it does
not apply, and where the backward pass is itself recorded, the layer is composed of ops.

A sequence is [T, N, features], or packed: [rows, features], where step t has the next `sizes[t]` rows. Sequences are
sorted, the longest first: those that are at step t are the first `sizes[t]`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from ..core.autocast import open_contexts
from ..core.device import CPU
from ..core.dtype import bfloat16, compute_type, float16, float32, float64
from ..core.grad_mode import enable_grad, mode, open_levels
from ..core.op import PlanCache, needs_recording
from ..core.spec import Spec, contiguous_spec
from ..core.tensor import Tensor, address, empty, make
from ..engine.kernel import Launch
from ..families.library import array, tensor_in
from ..families.map import COPY
from ..families.step import Step
from .joining import cat, stack
from .linear import linear
from .matmul import MM, rows_of
from .recurrent_cells import GRU, LSTM, RELU, TANH, Kind, State, Weights
from .recurrent_kernels import BACKWARD, FORWARD, is_split
from .views import T

# With so many steps it pays to transpose the weight of the hidden state first: BLAS is faster then.
MANY_STEPS = 4
# Multiplications of a product.
SMALL_PRODUCT = 1 << 18


def layer(
    kind: Kind, sizes: tuple[int, ...], reverse: bool, input: Tensor, weights: Weights, initial: State
) -> tuple[Tensor, ...]:
    """The output and the final state, which has the shape of the initial one: [N, hidden] or [1, N, hidden]."""
    tensors = (input, *weights, *initial)
    specs = [None if each is None else each.spec for each in tensors]
    if not open_levels and not open_contexts and _fits[kind, sizes, *specs]:
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
    """Whether kernels can compute the layer; what they cannot is for the ops to compute, or to refuse."""
    given = (input, weight, own_weight, bias, own_bias, projection, *initial)
    specs = [each for each in given if each is not None]
    dtype, n_seen = input.dtype, own_weight.shape[-1]
    n_hidden = n_seen if projection is None else projection.shape[-1]
    width = kind.n_gates * n_hidden
    states = [(sizes[0], n_seen), (sizes[0], n_hidden)]
    return (
        dtype in (float16, bfloat16, float32, float64)
        and all(each.dtype is dtype and each.device is CPU and not each.neg for each in specs)
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
        and 0 not in (sizes[-1], n_seen, input.shape[-1])
    )


_fits = PlanCache(_check_fits)


# ---- Composed of ops ----------------------------------------------------------------------------------------------


def composed(
    kind: Kind, sizes: tuple[int, ...], reverse: bool, input: Tensor, weights: Weights, initial: State
) -> tuple[Tensor, ...]:
    """The same by ops."""
    projected = linear(input, weights.inputs, weights.inputs_bias)
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


def advance(kind: Kind, projected: Tensor, state: State, weights: Weights) -> State:
    """One step; `projected` is what the input adds to the gates."""
    own = linear(state[0], weights.hidden, weights.hidden_bias)
    joined = kind.join(projected.chunk(kind.n_gates, 1), own.chunk(kind.n_gates, 1))
    hidden, *rest = kind.update(joined, state)
    if weights.projection is not None:
        hidden = linear(hidden, weights.projection)
    return hidden, *rest


def _composed_of(
    kind: Kind, sizes: tuple[int, ...], reverse: bool, saving: bool, input: Tensor, *tensors: Any
) -> tuple[Tensor, ...]:
    """`composed`, with the arguments of `_forward`."""
    return composed(kind, sizes, reverse, input, Weights(*tensors[:5]), tensors[5:])


# ---- By kernels ---------------------------------------------------------------------------------------------------


class _Blocks(NamedTuple):
    """Where the kernel of a step finds an operand: blocks of the rows of the step, one for each gate, say."""

    number: int
    distance: int  # from one block to the next, in bytes
    row: int  # from one row to the next; 0 for memory that all steps share


class _Plan:
    """A way through time for tensors of the same specs."""

    def __init__(
        self,
        sizes: tuple[int, ...],
        reverse: bool,
        operands: Sequence[_Blocks],
        launch: Callable[[int], Launch],
        work: int,
        specs: Sequence[Spec],
    ):
        starts = tuple(accumulate((0, *sizes[:-1])))
        order = slice(None, None, -1 if reverse else 1)
        self.sizes, self.starts = sizes[order], starts[order]
        self.launches = {size: launch(size) for size in set(sizes)}
        self.products = _products(work)
        self.made = [(each.device.backend.allocator(each.nbytes), each) for each in specs]
        self._operand = np.array([k for k, each in enumerate(operands) for _ in range(each.number)])
        blocks = [k * each.distance for each in operands for k in range(each.number)]
        rows = [each.row for each in operands for _ in range(each.number)]
        self._offsets = np.array(self.starts)[:, None] * np.array(rows) + np.array(blocks)

    def make(self) -> list[Tensor]:
        """New tensors: results, and those that hold what is on the way."""
        return [make(allocate(), 0, each) for allocate, each in self.made]

    def addresses(self, operands: Sequence[Tensor]) -> list[list[int]]:
        """The arguments of the kernels of all steps."""
        first = np.array([address(each) for each in operands])
        return (self._offsets + first[self._operand]).tolist()


class _Products(NamedTuple):
    """How products of matrices are computed."""

    view: Callable  # of tensors, as `multiply` takes them
    multiply: Callable  # (a, b, result)
    in_order: Callable[[Any], Any]  # contiguous


def _multiply(a: Tensor, b: Tensor, result: Tensor) -> None:
    MM.plans[a.spec, b.spec].run(result, a, b)


_SMALL = _Products(array, np.dot, np.ascontiguousarray)
_LARGE = _Products(lambda tensor: tensor, _multiply, lambda tensor: tensor.contiguous())


def _products(work: int) -> _Products:
    """For products of so many multiplications. NumPy is fast to call, but knows nothing of our threads."""
    return _SMALL if work < SMALL_PRODUCT else _LARGE


def _plan_forward(
    kind: Kind, sizes: tuple[int, ...], reverse: bool, saving: bool, input: Spec, hidden: int, n_biases: int
) -> _Plan:
    gates, states, rows = kind.n_gates, kind.n_states, sum(sizes)
    dtype, compute = input.dtype, compute_type(input.dtype)
    width, wide = hidden * dtype.itemsize, hidden * compute.itemsize
    state = [_Blocks(1, 0, 0)] * states
    joined = _Blocks(kind.n_joined, width, kind.n_joined * width)
    saved = [joined, _Blocks(states, rows * width, width)] if saving else []
    added = [_Blocks(gates, wide, gates * wide), _Blocks(gates, wide, 0)]
    biases = [_Blocks(gates, width, 0)] * n_biases
    shapes: list[tuple] = [(*input.shape[:-1], hidden)]
    if saving:
        shapes.append((states, rows, hidden))
        if is_split(kind) or dtype is not compute:  # else what is joined takes the memory of `projected`
            shapes.append((rows, kind.n_joined * hidden))
    on_the_way = [(rows, gates * hidden), (sizes[0], gates * hidden)]
    return _Plan(
        sizes,
        reverse,
        [*state, _Blocks(1, 0, width), *saved, *added, *biases, *state],
        lambda size: FORWARD[kind, dtype, size, hidden, n_biases > 0, saving],
        sizes[0] * gates * hidden * hidden,
        [
            *[contiguous_spec(each, compute) for each in on_the_way],
            *[contiguous_spec(each, dtype) for each in shapes],
        ],
    )


_forward_plans = PlanCache(_plan_forward)


def _forward(
    kind: Kind,
    sizes: tuple[int, ...],
    reverse: bool,
    saving: bool,
    input: Tensor,
    weight: Tensor,
    own_weight: Tensor,
    bias: Tensor | None,
    own_bias: Tensor | None,
    projection: Tensor | None,
    *initial: Tensor,
) -> tuple[Tensor, ...]:
    """The output and the final state; before them, if `saving`, what was joined and the old states of all steps."""
    n_hidden, n_features = weight.spec.shape[0] // kind.n_gates, weight.spec.shape[1]
    biases = [] if bias is None or own_bias is None else [bias.contiguous(), own_bias.contiguous()]
    plan = _forward_plans[kind, sizes, reverse, saving, input.spec, n_hidden, len(biases)]
    projected, own, output, *rest = plan.make()
    seen, *others = [_copy(each) for each in initial]
    state = [seen if projection is None else empty(others[0].spec), *others]
    saved = [] if not saving else [rest[1] if len(rest) > 1 else projected, rest[0]]
    addresses = plan.addresses([*state, output, *saved, projected, own, *biases, *state])
    # Arrays do not keep the memory of tensors alive: these names do.
    input, weight, own_weight = _wide(rows_of(input)), _wide(weight), _wide(own_weight)
    view, multiply, in_order = plan.products
    matrix, gates, hidden = view(own_weight).T, view(own), view(_rows(seen))
    matrix = in_order(matrix) if len(sizes) >= MANY_STEPS else matrix
    parts = {size: (hidden[:size], gates[:size], *launch) for size, launch in plan.launches.items()}
    if projection is not None:
        narrow = _wide(projection)
        narrowing, raw = view(narrow).T, view(_rows(state[0]))
        old = view(saved[1][0])[:, : len(narrow)] if saving else None  # a projected state is no wider
    with np.errstate(all="ignore"):
        view, project, _ = _products(projected.numel() * n_features)
        project(view(input), view(weight).T, view(projected))
        for size, start, operands in zip(plan.sizes, plan.starts, addresses):
            rows, product, entry, meta, count, _ = parts[size]
            multiply(rows, matrix, product)
            entry(*operands, meta, count)
            if projection is not None:
                if old is not None:
                    old[start : start + size] = rows
                multiply(raw[:size], narrowing, rows)
    if projection is not None:
        output = linear(output, projection)
    final = [seen, *others]
    if seen.spec.dtype is not output.spec.dtype:
        final = [each.to(output.spec.dtype) for each in final]
    return *saved, output, *final


def _rows(state: Tensor) -> Tensor:
    """[N, hidden] of [1, N, hidden]."""
    return state.view(state.spec.shape[-2:])


def _copy(tensor: Tensor) -> Tensor:
    """A contiguous copy in the compute type."""
    return COPY.write(empty(_in_order(tensor.spec)), tensor)


def _in_order(own: Spec) -> Spec:
    return contiguous_spec(own.shape, compute_type(own.dtype))


def _wide(tensor: Tensor) -> Tensor:
    """In the compute type."""
    dtype = tensor.spec.dtype
    return tensor if compute_type(dtype) is dtype else _copy(tensor)


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
) -> list[Tensor | None]:
    if mode.enabled:
        weights = (weight, own_weight, bias, own_bias, projection)
        inputs = (kind, sizes, reverse, saving, input, *weights, *initial)
        return _pulled_back(_composed_of, inputs, ct[2:], wanted)
    joined, before = out[:2]
    of_projected, of_own, of_state, of_seen = _through_time(
        kind, sizes, reverse, joined, before, ct[2:], own_weight, projection, initial, wanted[10]
    )
    of_biases, of_projection = [None, None], None
    if wanted[7] or wanted[8]:
        of_bias = of_projected.sum(0)
        of_biases = [of_bias, of_own.sum(0) if is_split(kind) else of_bias.clone()]
    if wanted[9] and of_seen is not None:
        hidden, _ = kind.update(joined.chunk(kind.n_gates, 1), (None, before[1]))
        of_projection = MM(T(of_seen if ct[2] is None else of_seen + rows_of(ct[2])), _wide(hidden))
    return [
        *[None] * 4,
        MM(of_projected, _wide(weight)).view(input.spec.shape) if wanted[4] else None,
        MM(T(of_projected), rows_of(_wide(input))) if wanted[5] else None,
        MM(T(of_own), _wide(before[0][:, : own_weight.size(1)])) if wanted[6] else None,
        *of_biases,
        of_projection,
        *of_state,
    ]


def _plan_backward(kind: Kind, sizes: tuple[int, ...], reverse: bool, before: Spec) -> _Plan:
    states, rows, hidden = before.shape
    dtype, gates = before.dtype, kind.n_gates
    compute = compute_type(dtype)
    width, wide = hidden * dtype.itemsize, hidden * compute.itemsize
    kinds_of_ct = 1 + is_split(kind)
    return _Plan(
        sizes,
        not reverse,
        [
            *[_Blocks(gates, wide, gates * wide)] * kinds_of_ct,
            *[_Blocks(1, 0, 0)] * (states + 1 + states),
            _Blocks(1, 0, width),
            _Blocks(kind.n_joined, width, kind.n_joined * width),
            _Blocks(states, rows * width, width),
        ],
        lambda size: BACKWARD[kind, dtype, size, hidden],
        sizes[0] * gates * hidden * hidden,
        [contiguous_spec((rows, gates * hidden), compute)] * kinds_of_ct,
    )


_backward_plans = PlanCache(_plan_backward)


def _through_time(
    kind: Kind,
    sizes: tuple[int, ...],
    reverse: bool,
    joined: Tensor,
    before: Tensor,
    cts: Sequence[Tensor | None],
    own_weight: Tensor,
    projection: Tensor | None,
    initial: State,
    to_the_end: bool,
) -> tuple[Tensor, Tensor, list[Tensor | None], Tensor | None]:
    """Cotangents of what inputs and hidden states add to the gates, [rows, gates * hidden], and of the initial state.

    The last result is what later steps add to the cotangents of projected states. `to_the_end`: whether the cotangent of
    the initial hidden state matters.
    """
    plan = _backward_plans[kind, sizes, reverse, before.spec]
    of_gates = plan.make()
    of_output, *of_final = cts
    if of_output is not None and projection is not None:
        of_output = MM(rows_of(of_output), projection)
    of_output = tensor_in(0, before[0].spec) if of_output is None else of_output.contiguous()
    of_state = [
        tensor_in(0, _in_order(first.spec)) if each is None else _copy(each)
        for each, first in zip(of_final, initial)
    ]
    own_weight = _wide(own_weight)
    view, multiply, _ = plan.products
    if projection is None:
        through = seen = tensor_in(0, of_state[0].spec)
        later = None
    else:
        seen, (through, of_state[0]) = of_state[0], (tensor_in(0, of_state[1].spec) for _ in range(2))
        widening = _wide(projection)
        later = empty(contiguous_spec((sum(sizes), len(widening)), widening.dtype))
        wider, wide_rows, later_rows = view(widening), view(_rows(through)), view(later)
    addresses = plan.addresses([*of_gates, *of_state, through, *of_state, of_output, joined, before])
    matrix, gates, products = view(own_weight), view(of_gates[-1]), view(_rows(seen))
    parts = {size: (products[:size], *launch) for size, launch in plan.launches.items()}
    end = -1 if to_the_end else plan.starts[-1]
    with np.errstate(all="ignore"):
        for size, start, operands in zip(plan.sizes, plan.starts, addresses):
            product, entry, meta, count, _ = parts[size]
            if projection is not None:
                later_rows[start : start + size] = product
                multiply(product, wider, wide_rows[:size])
            entry(*operands, meta, count)
            if start != end:
                multiply(gates[start : start + size], matrix, product)
    first = seen if projection is not None else of_state[0] + seen
    return of_gates[0], of_gates[-1], [first if to_the_end else None, *of_state[1:]], later


def _pulled_back(
    function: Callable[..., Sequence[Tensor]],
    inputs: Sequence[Any],
    cts: Sequence[Any],
    wanted: Sequence[bool],
) -> list[Tensor | None]:
    """The cotangents of the inputs of a composed function, recorded: they have derivatives themselves."""
    # Autograd stands above the ops: only a derivative of higher order asks for it.
    from ..autograd.backward import grad

    with enable_grad():
        # Not the tensors themselves: one may be made of another.
        own = [each.view_as(each) if isinstance(each, Tensor) else each for each in inputs]
        pairs = [(result, ct) for result, ct in zip(function(*own), cts) if ct is not None]
        outputs, given = zip(*pairs)
        sources = [each for each, is_wanted in zip(own, wanted) if is_wanted]
        found = iter(grad(outputs, sources, given, create_graph=True, allow_unused=True))
    return [next(found) if is_wanted else None for is_wanted in wanted]


def _step(kind: Kind) -> Step:
    step = Step(_forward, joint=_rule, results=(0, 1))
    step.name = kind.name

    def node_name(inputs: Sequence[Any], static: tuple) -> str:
        """As the last step of PyTorch's composition: of a cell, of a sequence, of packed sequences."""
        if inputs[4].dim() == 3:
            return "StackBackward0"
        return "CatBackward0" if len(inputs[1]) > 1 else kind.node_name

    step.node_name = node_name
    return step


_STEPS = {kind: _step(kind) for kind in (TANH, RELU, GRU, LSTM)}
