"""Runs the loop over time of a recurrent layer: a product and a kernel for each step, forward and backward.

`recurrent_kernels.py` makes the kernels. The steps are planned once for each combination of specs: which kernels run, and where their
operands lie. On the CPU all steps are one launch, which the workers share by sequences (`engine/steps.py`), and the weight of the
hidden state is copied once into the order in which the products read it (`engine/packed.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from ...core.device import device
from ...core.dtype import DType, compute_type, uint8
from ...core.plans import PlanCache
from ...core.spec import Spec, contiguous_spec, make_spec
from ...core.tensor import Tensor, address, empty, make
from ...engine.kernel import Launch
from ...engine.packed import Packed
from ...engine.steps import Operand, Steps
from ...families.map import COPY, FILL
from ..linalg.matmul import MM, rows_of
from ..views.views import T
from .linear import linear
from .recurrent_cells import Kind, State
from .recurrent_kernels import BACKWARD, COPIES, FORWARD, is_split

# Steps: from this many on, one launch of all steps, with a copied weight, costs less than a launch for each product and kernel.
MANY_STEPS = 4


# ---- Plans ---------------------------------------------------------------------------------------------------------


class _Blocks(NamedTuple):
    """Describes the place of an operand in a step: blocks within the rows of the step, such as one for each gate."""

    tensor: str
    row: int = 0  # bytes from one row to the next; 0 for memory that all steps share
    number: int = 1
    distance: int = 0  # bytes from one block to the next

    def operands(self, address: int) -> list[Operand]:
        """address: which one the tensor has."""
        return [Operand(address, self.row, k * self.distance) for k in range(self.number)]


class _Plan:
    """The launches of all steps, for tensors of the same specs. Each tensor has a name.

    made: the specs of the results and of the intermediate values. matrices: the weights that are copied, by the names of the copies.
    """

    def __init__(self, sizes: tuple[int, ...], reverse: bool, made: Mapping[str, Spec], where: device):
        starts = tuple(accumulate((0, *sizes[:-1])))
        order = slice(None, None, -1 if reverse else 1)
        self.sizes, self.starts, self.different = sizes[order], starts[order], set(sizes)
        self.where = where
        self.made = {name: (where.backend.allocator(each.nbytes), each) for name, each in made.items()}
        self.stages: list[tuple[Mapping[int, Launch], list[Operand]]] = []
        self.matrices: dict[str, tuple[str, Packed]] = {}
        self.grain, self.work = 1, 0
        self.names: dict[str, int] = {}

    def add(self, launches: Mapping[int, Launch], operands: Sequence[_Blocks]) -> None:
        """Add a launch to each step; `launches` has one for each size of a step."""
        found = [
            each
            for blocks in operands
            for each in blocks.operands(self.names.setdefault(blocks.tensor, len(self.names)))
        ]
        self.stages.append((launches, found))

    def multiply(self, result: _Blocks, a: _Blocks, weight: str, b: Spec) -> None:
        """Add a product to each step: rows of `a` times the matrix `weight`, whose spec is `b`."""
        where, (terms, columns) = self.where, b.shape
        pack = where.backend.extras.get("packed_products") if len(self.sizes) >= MANY_STEPS else None
        if pack is None:
            operands = {
                size: [contiguous_spec((size, width), b.dtype, where) for width in (terms, columns)]
                for size in self.different
            }
            multiply = where.backend.prepare_product
            found = Packed(0, None, {size: multiply(own, b, made) for size, (own, made) in operands.items()})
        else:
            found = pack(b.dtype, terms, columns, tuple(b.stride), self.different)
        copied = f"{weight} in panels" if found.copy else weight
        self.matrices[copied] = weight, found
        self.grain = max(self.grain, found.grain)
        self.work += sum(self.sizes) * terms * columns
        self.add(found.products, [result, a, _Blocks(copied)])

    def finish(self, to_the_end: bool = True) -> None:
        """Make one launch of all steps. Unless `to_the_end`, the last step ends before its last launch."""
        steps = Steps(self.sizes, self.starts, self.stages, left_out=not to_the_end)
        join = self.where.backend.extras.get("steps_as_one") if len(self.sizes) >= MANY_STEPS else None
        self.launch = (
            steps.one_by_one() if join is None else join(steps, len(self.names), self.grain, self.work)
        )

    def make(self) -> dict[str, Tensor]:
        """Make tensors for the results and the intermediate values."""
        return {name: make(allocate(), 0, each) for name, (allocate, each) in self.made.items()}

    def run(self, tensors: dict[str, Tensor]) -> None:
        """Run all steps, given the tensors, which must be contiguous."""
        for name, (weight, packed) in self.matrices.items():
            if packed.copy is not None:
                tensors[name] = empty(contiguous_spec((packed.nbytes,), uint8, self.where))
                _run(packed.copy, tensors[name], tensors[weight])
        _run(self.launch, *[tensors[name] for name in self.names])


def _run(launch: Launch, *tensors: Tensor) -> None:
    entry, meta, count, _ = launch
    assert entry is not None  # contiguous operands need no copies
    entry(*[address(each) for each in tensors], meta, count)


def _transposed(rows: int, columns: int, dtype: DType, where: device) -> Spec:
    return make_spec((columns, rows), (1, columns), dtype, where)


def _zeros(spec: Spec) -> Tensor:
    return FILL.write(empty(spec), 0)


# ---- Forwards ------------------------------------------------------------------------------------------------------


def _plan_forward(
    kind: Kind,
    sizes: tuple[int, ...],
    reverse: bool,
    saving: bool,
    input: Spec,
    hidden: int,
    narrow: int,
    n_biases: int,
) -> _Plan:
    """Plan the steps. hidden: the size of a state. narrow: the size of a projected state, or 0."""
    gates, states, rows, where = kind.n_gates, kind.n_states, sum(sizes), input.device
    dtype, compute = input.dtype, compute_type(input.dtype)
    width, wide_width = hidden * dtype.itemsize, hidden * compute.itemsize
    made = {
        "projected": contiguous_spec((rows, gates * hidden), compute, where),
        "own": contiguous_spec((sizes[0], gates * hidden), compute, where),
        "output": contiguous_spec((*input.shape[:-1], hidden), dtype, where),
    }
    if saving:
        made["before"] = contiguous_spec((states, rows, hidden), dtype, where)
        if is_split(kind) or dtype is not compute:  # else the pre-activations are stored over `projected`
            made["joined"] = contiguous_spec((rows, kind.n_joined * hidden), dtype, where)
    joined = "joined" if "joined" in made else "projected"
    plan = _Plan(sizes, reverse, made, where)
    seen = _Blocks("narrow" if narrow else "state 0")
    weight = _transposed(gates * hidden, narrow or hidden, compute, where)
    plan.multiply(_Blocks("own"), seen, "own weight", weight)
    state = [_Blocks(f"state {k}") for k in range(states)]
    saved = [
        _Blocks(joined, kind.n_joined * width, kind.n_joined, width),
        _Blocks("before", width, states, rows * width),
    ]
    plan.add(
        {size: FORWARD[kind, dtype, size, hidden, n_biases > 0, saving, where] for size in plan.different},
        [
            *state,
            _Blocks("output", width),
            *(saved if saving else []),
            _Blocks("projected", gates * wide_width, gates, wide_width),
            _Blocks("own", 0, gates, wide_width),
            *[_Blocks(f"bias {k}", 0, gates, width) for k in range(n_biases)],
            *state,
        ],
    )
    if narrow:
        if saving:
            strides = width, narrow * compute.itemsize
            copies = {size: COPIES[dtype, compute, size, narrow, strides, where] for size in plan.different}
            plan.add(copies, [_Blocks("before", width), seen])
        plan.multiply(seen, state[0], "projection", _transposed(narrow, hidden, compute, where))
    plan.finish()
    return plan


_forward_plans = PlanCache(_plan_forward, name="recurrent")


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
    """Return the output and the final state; before, if `saving`, the pre-activations and old states of all steps."""
    n_hidden = weight.spec.shape[0] // kind.n_gates
    narrow = 0 if projection is None else own_weight.spec.shape[1]
    biases = [] if bias is None or own_bias is None else [bias.contiguous(), own_bias.contiguous()]
    plan = _forward_plans[kind, sizes, reverse, saving, input.spec, n_hidden, narrow, len(biases)]
    tensors = plan.make()
    MM.write(tensors["projected"], rows_of(wide(input)), T(wide(weight)))
    state = final = [_copy(each) for each in initial]
    tensors["own weight"] = wide(own_weight).contiguous()
    if projection is not None:
        tensors["narrow"], tensors["projection"] = state[0], wide(projection).contiguous()
        state = [empty(state[1].spec), state[1]]
    tensors |= {f"state {k}": each for k, each in enumerate(state)}
    tensors |= {f"bias {k}": each for k, each in enumerate(biases)}
    plan.run(tensors)
    output = tensors["output"]
    if projection is not None:
        output = linear(output, projection)
    if final[0].spec.dtype is not output.spec.dtype:
        final = [each.to(output.spec.dtype) for each in final]
    saved = [tensors["joined" if "joined" in tensors else "projected"], tensors["before"]] if saving else []
    return *saved, output, *final


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


def _plan_backward(
    kind: Kind, sizes: tuple[int, ...], reverse: bool, before: Spec, narrow: int, to_the_end: bool
) -> _Plan:
    states, rows, hidden = before.shape
    dtype, gates, where = before.dtype, kind.n_gates, before.device
    compute = compute_type(dtype)
    width, wide_width = hidden * dtype.itemsize, hidden * compute.itemsize
    of_gates = contiguous_spec((rows, gates * hidden), compute, where)
    made = {"projected": of_gates, "own": of_gates} if is_split(kind) else {"own": of_gates}
    if narrow:
        made["later"] = contiguous_spec((rows, narrow), compute, where)
    plan = _Plan(sizes, not reverse, made, where)
    through, seen = _Blocks("through"), _Blocks("seen" if narrow else "through")
    if narrow:
        row = narrow * compute.itemsize
        copies = {size: COPIES[compute, compute, size, narrow, (row, row), where] for size in plan.different}
        plan.add(copies, [_Blocks("later", row), seen])
        plan.multiply(through, seen, "projection", contiguous_spec((narrow, hidden), compute, where))
    state = [_Blocks(f"state {k}") for k in range(states)]
    plan.add(
        {size: BACKWARD[kind, dtype, size, hidden, where] for size in plan.different},
        [
            *[_Blocks(name, gates * wide_width, gates, wide_width) for name in made if name != "later"],
            *state,
            through,
            *state,
            _Blocks("output", width),
            _Blocks("joined", kind.n_joined * width, kind.n_joined, width),
            _Blocks("before", width, states, rows * width),
        ],
    )
    own = _Blocks("own", gates * wide_width)
    plan.multiply(
        seen, own, "own weight", contiguous_spec((gates * hidden, narrow or hidden), compute, where)
    )
    plan.finish(to_the_end)
    return plan


_backward_plans = PlanCache(_plan_backward, name="recurrent_backward")


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
    """Return the cotangents of the projections of inputs and hidden states, [rows, gates * hidden], and of the state.

    The last result is the part of the cotangents of projected states that comes from later steps. `to_the_end`: whether the
    cotangent of the initial hidden state is needed.
    """
    narrow = 0 if projection is None else own_weight.spec.shape[1]
    plan = _backward_plans[kind, sizes, reverse, before.spec, narrow, to_the_end]
    of_output, *of_final = cts
    if of_output is not None and projection is not None:
        of_output = MM(rows_of(of_output), projection)
    of_state = [
        _zeros(_in_order(first.spec)) if each is None else _copy(each)
        for each, first in zip(of_final, initial)
    ]
    tensors = plan.make()
    tensors["joined"], tensors["before"] = joined, before
    tensors["own weight"] = wide(own_weight).contiguous()
    tensors["output"] = _zeros(before[0].spec) if of_output is None else of_output.contiguous()
    if projection is None:
        seen = tensors["through"] = _zeros(of_state[0].spec)
    else:
        tensors["projection"] = wide(projection).contiguous()
        seen = tensors["seen"] = of_state[0]
        tensors["through"], of_state[0] = (_zeros(of_state[1].spec) for _ in range(2))
    tensors |= {f"state {k}": each for k, each in enumerate(of_state)}
    plan.run(tensors)
    first = seen if projection is not None else of_state[0] + seen
    of_own = tensors["own"]
    of_initial = [first if to_the_end else None, *of_state[1:]]
    return tensors.get("projected", of_own), of_own, of_initial, tensors.get("later")
