"""The loop over time of a recurrent layer: a product and a kernel for each step, forward and backward.

`recurrent_kernels.py` makes the kernels. The addresses of the operands of all steps are planned once for each combination of
specs, so that almost no time passes between kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from ...core.device import CPU, device
from ...core.dtype import compute_type
from ...core.plans import PlanCache
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor, address, empty, make
from ...engine.kernel import Launch
from ...families.array_op import array
from ...families.map import COPY, FILL
from ..linalg.matmul import MM, rows_of
from .linear import linear
from .recurrent_cells import Kind, State
from .recurrent_kernels import BACKWARD, FORWARD, is_split

# Steps: from this many on, transposing the weight of the hidden state first costs less than it saves in BLAS.
MANY_STEPS = 4
# Multiplications: below this, NumPy computes a product, because it is faster to call; above, the product uses our threads.
SMALL_PRODUCT = 1 << 18


# ---- Plans ---------------------------------------------------------------------------------------------------------


class _Blocks(NamedTuple):
    """The place of an operand of the kernel of a step: blocks within the rows of the step, for example one for each gate."""

    number: int
    distance: int  # bytes from one block to the next
    row: int  # bytes from one row to the next; 0 for memory that all steps share


class _Plan:
    """The kernels and the addresses of all steps, for tensors of the same specs."""

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
        self.products = _products(work, specs[0].device)
        self.made = [(each.device.backend.allocator(each.nbytes), each) for each in specs]
        self._operand = np.array([k for k, each in enumerate(operands) for _ in range(each.number)])
        blocks = [k * each.distance for each in operands for k in range(each.number)]
        rows = [each.row for each in operands for _ in range(each.number)]
        self._offsets = np.array(self.starts)[:, None] * np.array(rows) + np.array(blocks)

    def make(self) -> list[Tensor]:
        """New tensors for the results and the intermediate values."""
        return [make(allocate(), 0, each) for allocate, each in self.made]

    def addresses(self, operands: Sequence[Tensor]) -> list[list[int]]:
        """The arguments of the kernels of all steps."""
        first = np.array([address(each) for each in operands])
        return (self._offsets + first[self._operand]).tolist()


class _Products(NamedTuple):
    """A way to compute matrix products."""

    view: Callable  # makes the operands of `multiply` from tensors
    multiply: Callable  # (a, b, result)
    in_order: Callable[[Any], Any]  # makes an operand contiguous


def _multiply(a: Tensor, b: Tensor, result: Tensor) -> None:
    MM.write(result, a, b)


_SMALL = _Products(array, np.dot, np.ascontiguousarray)
_LARGE = _Products(lambda tensor: tensor, _multiply, lambda tensor: tensor.contiguous())


def _products(work: int, where: device) -> _Products:
    """For products of `work` multiplications. A call of NumPy is cheap, but does not use our threads or other devices."""
    return _SMALL if work < SMALL_PRODUCT and where is CPU else _LARGE


def _zeros(spec: Spec) -> Tensor:
    return FILL.write(empty(spec), 0)


# ---- Forwards ------------------------------------------------------------------------------------------------------


def _plan_forward(
    kind: Kind, sizes: tuple[int, ...], reverse: bool, saving: bool, input: Spec, hidden: int, n_biases: int
) -> _Plan:
    gates, states, rows = kind.n_gates, kind.n_states, sum(sizes)
    dtype, compute = input.dtype, compute_type(input.dtype)
    width, wide_width = hidden * dtype.itemsize, hidden * compute.itemsize
    state = [_Blocks(1, 0, 0)] * states
    joined = _Blocks(kind.n_joined, width, kind.n_joined * width)
    saved = [joined, _Blocks(states, rows * width, width)] if saving else []
    added = [_Blocks(gates, wide_width, gates * wide_width), _Blocks(gates, wide_width, 0)]
    biases = [_Blocks(gates, width, 0)] * n_biases
    shapes: list[tuple] = [(*input.shape[:-1], hidden)]
    if saving:
        shapes.append((states, rows, hidden))
        if is_split(kind) or dtype is not compute:  # else the pre-activations are stored over `projected`
            shapes.append((rows, kind.n_joined * hidden))
    on_the_way = [(rows, gates * hidden), (sizes[0], gates * hidden)]
    return _Plan(
        sizes,
        reverse,
        [*state, _Blocks(1, 0, width), *saved, *added, *biases, *state],
        lambda size: FORWARD[kind, dtype, size, hidden, n_biases > 0, saving, input.device],
        sizes[0] * gates * hidden * hidden,
        [
            *[contiguous_spec(each, compute, input.device) for each in on_the_way],
            *[contiguous_spec(each, dtype, input.device) for each in shapes],
        ],
    )


_forward_plans = PlanCache(_plan_forward)


def forward(
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
    """The output and the final state; before them, if `saving`, the pre-activations and the old states of all steps."""
    n_hidden, n_features = weight.spec.shape[0] // kind.n_gates, weight.spec.shape[1]
    biases = [] if bias is None or own_bias is None else [bias.contiguous(), own_bias.contiguous()]
    plan = _forward_plans[kind, sizes, reverse, saving, input.spec, n_hidden, len(biases)]
    projected, own, output, *rest = plan.make()
    seen, *others = [_copy(each) for each in initial]
    state = [seen if projection is None else empty(others[0].spec), *others]
    saved = [] if not saving else [rest[1] if len(rest) > 1 else projected, rest[0]]
    addresses = plan.addresses([*state, output, *saved, projected, own, *biases, *state])
    input, weight, own_weight = wide(rows_of(input)), wide(weight), wide(own_weight)
    view, multiply, in_order = plan.products
    matrix, gates, hidden = view(own_weight).T, view(own), view(_rows(seen))
    matrix = in_order(matrix) if len(sizes) >= MANY_STEPS else matrix
    parts = {size: (hidden[:size], gates[:size], *launch) for size, launch in plan.launches.items()}
    if projection is not None:
        narrow = wide(projection)
        narrowing, raw = view(narrow).T, view(_rows(state[0]))
        old = view(saved[1][0])[:, : len(narrow)] if saving else None  # a projected state is not wider
    with np.errstate(all="ignore"):
        view, project, _ = _products(projected.numel() * n_features, input.spec.device)
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
    wanted = _in_order(tensor.spec)
    return COPY(tensor) if tensor.spec is wanted else COPY.write(empty(wanted), tensor)


def _in_order(spec: Spec) -> Spec:
    return contiguous_spec(spec.shape, compute_type(spec.dtype), spec.device)


def wide(tensor: Tensor) -> Tensor:
    """The tensor converted to its compute type."""
    dtype = tensor.spec.dtype
    return tensor if compute_type(dtype) is dtype else _copy(tensor)


# ---- Backwards -----------------------------------------------------------------------------------------------------


def _plan_backward(kind: Kind, sizes: tuple[int, ...], reverse: bool, before: Spec) -> _Plan:
    states, rows, hidden = before.shape
    dtype, gates = before.dtype, kind.n_gates
    compute = compute_type(dtype)
    width, wide_width = hidden * dtype.itemsize, hidden * compute.itemsize
    kinds_of_ct = 1 + is_split(kind)
    return _Plan(
        sizes,
        not reverse,
        [
            *[_Blocks(gates, wide_width, gates * wide_width)] * kinds_of_ct,
            *[_Blocks(1, 0, 0)] * (states + 1 + states),
            _Blocks(1, 0, width),
            _Blocks(kind.n_joined, width, kind.n_joined * width),
            _Blocks(states, rows * width, width),
        ],
        lambda size: BACKWARD[kind, dtype, size, hidden, before.device],
        sizes[0] * gates * hidden * hidden,
        [contiguous_spec((rows, gates * hidden), compute, before.device)] * kinds_of_ct,
    )


_backward_plans = PlanCache(_plan_backward)


def backward(
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
    """The cotangents of the projections of inputs and of hidden states, [rows, gates * hidden], and of the initial state.

    The last result is the part of the cotangents of projected states that comes from later steps. `to_the_end`: whether the
    cotangent of the initial hidden state is needed.
    """
    plan = _backward_plans[kind, sizes, reverse, before.spec]
    of_gates = plan.make()
    of_output, *of_final = cts
    if of_output is not None and projection is not None:
        of_output = MM(rows_of(of_output), projection)
    of_output = _zeros(before[0].spec) if of_output is None else of_output.contiguous()
    of_state = [
        _zeros(_in_order(first.spec)) if each is None else _copy(each)
        for each, first in zip(of_final, initial)
    ]
    own_weight = wide(own_weight)
    view, multiply, _ = plan.products
    if projection is None:
        through = seen = _zeros(of_state[0].spec)
        later = None
    else:
        seen, (through, of_state[0]) = of_state[0], (_zeros(of_state[1].spec) for _ in range(2))
        widening = wide(projection)
        later = empty(contiguous_spec((sum(sizes), len(widening)), widening.dtype, widening.device))
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
