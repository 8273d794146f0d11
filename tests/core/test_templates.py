"""Templates: one plan for calls with many sizes gives what PyTorch gives, and what the planning code makes for each."""

import gc
import math
import tracemalloc

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

import weft
from weft.core.plans import PLANS_PER_OP, PlanCache
from weft.core.spec import contiguous_spec
from weft.core.templates import MOST_TEMPLATES, PLANNED_FIRST, template
from weft.engine.kernel import sharing_words
from weft.ops.elementwise.arithmetic import ADD
from weft.ops.linalg.matmul import MATMUL

# ---- Random sizes ----------------------------------------------------------------------------------------------------------

# Each call gets two tensors of the same shape, or one that broadcasts to the other.
CALLS = {
    "add": lambda t, a, b: a + b,
    "number": lambda t, a, b: 2.5 * a - 1,
    "compare": lambda t, a, b: a < b,
    "in place": lambda t, a, b: a.clone().mul_(b) if b.numel() <= a.numel() else a,
    "where": lambda t, a, b: t.where(a > b, a, b),
    "cast": lambda t, a, b: a.to(t.int32),
    "copy": lambda t, a, b: (a.clone(), a.contiguous(), a.t().contiguous() if a.dim() == 2 else a),
    "sum": lambda t, a, b: (a.sum(), a.sum(-1), a.sum(0, keepdim=True)),
    "mean": lambda t, a, b: (a.mean(), a.mean(-1)),
    "var": lambda t, a, b: a.var(-1, correction=0),
    "amax": lambda t, a, b: a.amax(-1) if a.shape[-1] else a,
    "argmax": lambda t, a, b: a.argmax(0) if a.shape[0] else a,
    "cumsum": lambda t, a, b: (a.cumsum(0), a.cumsum(-1)),
    "sort": lambda t, a, b: a.sort(dim=-1, stable=True),
    "softmax": lambda t, a, b: (a.softmax(-1), a.log_softmax(0)),
    "extrema": lambda t, a, b: (a.max(-1).values, a.min(0).indices) if a.numel() else a,
    "prod": lambda t, a, b: (a.prod(0), a.logsumexp(-1)),
    "cummax": lambda t, a, b: (a.cumprod(0), *a.cummax(-1)),
    "rms_norm": lambda t, a, b: t.nn.functional.rms_norm(a, a.shape[-1:]) if a.numel() else a,
    "batch_norm": lambda t, a, b: norms(t, a) if a.dim() > 1 and a.shape[0] > 1 and a.numel() else a,
    "layer_norm": lambda t, a, b: t.nn.functional.layer_norm(a, a.shape[-1:]) if a.shape[-1] else a,
    "linear": lambda t, a, b: t.nn.functional.linear(a, a.reshape(-1, a.shape[-1])) if a.numel() else a,
    "products": lambda t, a, b: (t.bmm(a, a.transpose(1, 2)), a @ a[0].t()) if a.dim() == 3 and a.shape[0] else a,
    "product with a vector": lambda t, a, b: (a @ a[0], a[:, 0] @ a) if a.dim() == 2 and a.numel() else a,
    "product": lambda t, a, b: a @ a.transpose(-1, -2) if a.dim() > 1 else a @ a,
    "cat": lambda t, a, b: (t.cat([a, a]), t.cat([a, a, a], -1), t.stack([a, a])),
    "pad": lambda t, a, b: t.nn.functional.pad(a, (1, 2)),
    "views": lambda t, a, b: (a[1:], a[..., ::2], a[:, None] if a.dim() > 1 else a[None], a.flatten(), a.unsqueeze(-1)),
    "narrow": lambda t, a, b: a.narrow(-1, a.shape[-1] // 2, a.shape[-1] - a.shape[-1] // 2),
    "chunk": lambda t, a, b: a.chunk(3),
    "flip": lambda t, a, b: (a.flip(0), a.roll(1, -1)),
    "max_pool": lambda t, a, b: (
        t.nn.functional.max_pool1d(a, 2), t.nn.functional.max_pool2d(a, (2, 3), 2, 1)
    ) if a.dim() == 3 and a.numel() and min(a.shape[1:]) > 2 else a,
    "avg_pool": lambda t, a, b: gradients(
        t, lambda x, y: t.nn.functional.avg_pool2d(x, (2, 3), 2, 1, ceil_mode=True).sin().sum(), a, b
    ) if a.dim() == 3 and a.numel() and min(a.shape[1:]) > 2 else a,
    "interpolate": lambda t, a, b: gradients(
        t, lambda x, y: t.nn.functional.interpolate(x[None], scale_factor=2).sin().sum(), a, b
    ) if a.dim() == 3 and a.numel() else a,
    "borders": lambda t, a, b: tuple(
        t.nn.functional.pad(a, (1, 2), mode=mode) for mode in ("reflect", "replicate", "circular")
    ) if a.dim() > 1 and a.numel() and a.shape[-1] > 2 else a,
    "selection": lambda t, a, b: (a.topk(2, -1).values, t.argsort(a, dim=0, descending=True, stable=True))
    if a.numel() and a.shape[-1] > 1 else a,
    "conv": lambda t, a, b: gradients(
        t, lambda x, y: (t.nn.functional.conv1d(x, y[:, :, :2], stride=2, padding=1).sin().sum()), a, a[: a.shape[0] // 2 + 1]
    ) if a.dim() == 3 and a.numel() and a.shape[2] > 1 else a,
    "conv_transpose": lambda t, a, b: gradients(
        t, lambda x, y: t.nn.functional.conv_transpose1d(x, y, stride=2, dilation=2).sin().sum(), a, a[0, :, None, :3]
    ) if a.dim() == 3 and a.numel() else a,
    "arange": lambda t, a, b: (t.arange(a.numel()), t.arange(0.5, a.shape[0], 0.25), t.linspace(0, 1, a.shape[0])),
    "tril": lambda t, a, b: a.tril() if a.dim() > 1 else a,
    "index_select": lambda t, a, b: a.index_select(0, t.arange(a.shape[0]).flip(0)),
    "index": lambda t, a, b: a[t.arange(a.shape[0]) // 2] if a.shape[0] else a,
    "gather": lambda t, a, b: a.gather(-1, t.zeros_like(a, dtype=t.int64)) if a.shape[-1] else a,
    "index_add": lambda t, a, b: a.index_add(0, t.arange(a.shape[0]), a),
    "scatter_add": lambda t, a, b: a.scatter_add(0, t.zeros_like(a, dtype=t.int64), a) if a.shape[0] else a,
    "masked_fill": lambda t, a, b: a.masked_fill(a > 0, 7.0),
    "mse": lambda t, a, b: t.nn.functional.mse_loss(a, a + 1),
    "attention": lambda t, a, b: t.nn.functional.scaled_dot_product_attention(a, a, a) if a.dim() == 3 and a.numel() else a,
    "causal": lambda t, a, b: t.nn.functional.scaled_dot_product_attention(a, a, a, is_causal=True) if a.dim() == 3 and a.numel() else a,
    "expand": lambda t, a, b: (a.unsqueeze(0).expand(3, *a.shape) + b).sum(0),
    "gradient": lambda t, a, b: gradients(t, lambda x, y: ((x * y).exp().sum(-1) / 3).mean(), a, b),
    "gradients of norms": lambda t, a, b: gradients(
        t, lambda x, y: (t.nn.functional.layer_norm(x, x.shape[-1:]) * y).sum() + norms(t, x)[0].exp().sum(), a, b
    ) if a.dim() > 1 and a.shape[0] > 1 and a.numel() else a,
    "gradient of a layer": lambda t, a, b: gradients(
        t, lambda x, y: t.nn.functional.linear(x, x.detach().reshape(-1, x.shape[-1])).relu().sum(), a, b
    ) if a.numel() else a,
}  # fmt: skip


def norms(t, x):
    """Batch norm in training, and the running statistics that it updates."""
    mean, variance = t.zeros(x.shape[1]), t.ones(x.shape[1])
    return t.nn.functional.batch_norm(x, mean, variance, training=True), mean, variance


def gradients(t, function, *inputs):
    leaves = [each.clone().requires_grad_() for each in inputs]
    return t.autograd.grad(function(*leaves), leaves, allow_unused=True)


def values(t, shape):
    count = 1
    for size in shape:
        count *= size
    return ((t.arange(count) * 37 % 101).to(t.float32) / 50 - 1).reshape(shape)


# Operands with strides of each kind; those of `t` are contiguous by chance where a size is 1.
LAYOUTS = {
    "contiguous": values,
    "transposed": lambda t, shape: values(t, shape[::-1]).permute(*reversed(range(len(shape)))),
    "part": lambda t, shape: values(t, (*shape[:-1], 2 * shape[-1] + 1))[..., 1::2],
    "rows of a part": lambda t, shape: values(t, (shape[0] + 2, *shape[1:]))[1:-1],
    "expanded": lambda t, shape: values(t, (1, *shape[1:])).expand(shape),
}
_sizes = st.sampled_from([0, 1, 1, 2, 2, 3, 4, 5, 7, 8, 16, 17, 33])


@st.composite
def shapes(draw):
    """Some shapes of one rank, and for each the dims in which the other operand has size 1."""
    rank = draw(st.integers(1, 3))
    shape = st.tuples(*[_sizes] * rank)
    ones = draw(st.lists(st.booleans(), min_size=rank, max_size=rank))
    return [(each, ones) for each in draw(st.lists(shape, min_size=PLANNED_FIRST + 2, max_size=9))]


def outcome(module, call, layout, shape, ones):
    """The results as tensors of PyTorch with their strides, or the class of the error."""
    try:
        a = LAYOUTS[layout](module, shape)
        b = LAYOUTS[layout](module, tuple(1 if one else size for one, size in zip(ones, shape)))
        found = CALLS[call](module, a, b)
    except (RuntimeError, IndexError, ValueError) as error:
        return type(error)
    found = found if isinstance(found, (tuple, list)) else (found,)
    return [None if each is None else (each.tolist(), tuple(each.shape), str(each.dtype), each.stride()) for each in found]  # fmt: skip


def agree(mine, theirs):
    if not isinstance(theirs, list) or not isinstance(mine, list):
        return mine is theirs
    return len(mine) == len(theirs) and all(map(_same, mine, theirs))


def _same(mine, theirs):
    if mine is None or theirs is None:
        return mine is theirs
    close = torch.allclose(
        *(torch.tensor(each[0], dtype=torch.float64) for each in (mine, theirs)), 1e-4, 1e-5, True
    )
    # PyTorch's strides of dims of size 1, and of tensors without elements, are left over from its computation.
    free = 0 in theirs[1]
    strides = [[s for s, n in zip(each[3], each[1]) if n > 1] for each in (mine, theirs)]
    return mine[1:3] == theirs[1:3] and close and (free or strides[0] == strides[1])


@settings(max_examples=200)
@given(st.sampled_from(sorted(CALLS)), st.sampled_from(sorted(LAYOUTS)), shapes())
@example(
    "add",
    "transposed",
    [((n, m), (False, False)) for n, m in ((3, 4), (5, 2), (2, 7), (6, 5), (1, 6), (6, 1), (4, 4))],
)
@example("sum", "part", [((n,), (True,)) for n in (2, 3, 4, 5, 6, 1, 0, 40_000)])
@example(
    "expand", "contiguous", [((n, m), (n % 2 == 0, m % 2 == 0)) for n in range(2, 5) for m in range(2, 5)]
)
def test_calls_with_many_sizes_give_what_pytorch_gives(call, layout, cases):
    for shape, ones in cases:
        mine, theirs = (outcome(module, call, layout, shape, ones) for module in (weft, torch))
        assert agree(mine, theirs), (shape, ones, mine, theirs)


@pytest.mark.parametrize("call", sorted(CALLS))
def test_each_call_at_one_layout_and_many_sizes(call):
    """Sizes that meet thresholds of kernels: panels, lanes, and the sizes from which workers share a loop."""
    for shape in [
        (2, 3),
        (3, 2),
        (4, 5),
        (5, 4),
        (7, 9),
        (64, 3),
        (3, 64),
        (130, 70),
        (300, 200),
        (1, 5),
        (5, 1),
    ]:
        mine, theirs = (
            outcome(module, call, "contiguous", shape, (False, False)) for module in (weft, torch)
        )
        assert agree(mine, theirs), shape


# ---- Random programs -------------------------------------------------------------------------------------------------------

# Each step makes a matrix of n x m of two others. Values stay between -1 and 1, because a program takes the tanh of each.
STEPS = {
    "add": lambda t, a, b: a + 2 * b,
    "mul": lambda t, a, b: a * b - b,
    "where": lambda t, a, b: t.where(a > b, a, b * 0.5),
    "masked_fill": lambda t, a, b: a.masked_fill(b > 0.5, 0.25),
    "in place": lambda t, a, b: (a * 1.0).mul_(b).add_(a),
    "softmax": lambda t, a, b: a.softmax(-1) * b,
    "log_softmax": lambda t, a, b: a.log_softmax(0) + b,
    "layer_norm": lambda t, a, b: t.nn.functional.layer_norm(a, a.shape[-1:], b[0]) if len(a) else b,
    "gelu": lambda t, a, b: t.nn.functional.gelu(a) - b,
    "rows": lambda t, a, b: a - b.mean(0, keepdim=True),
    "columns": lambda t, a, b: a / (1 + b.sum(1, keepdim=True) ** 2),
    "amax": lambda t, a, b: a.amax(1, keepdim=True) * b if a.shape[1] else b,
    "cumsum": lambda t, a, b: a.cumsum(0) - b,
    "product": lambda t, a, b: a @ b.t() @ a / (1 + a.numel()),
    "linear": lambda t, a, b: t.nn.functional.linear(a, b.t() @ b, b.sum(0)) / (1 + len(b)),
    "attention": lambda t, a, b: t.nn.functional.scaled_dot_product_attention(a[None, None], b[None, None], a[None, None])[0, 0] if a.numel() else b,
    "transposed": lambda t, a, b: a.t().contiguous().t() + b.t().clone().t(),
    "reshaped": lambda t, a, b: a.reshape(-1).view(a.shape[1], a.shape[0]).t() * b,
    "cat": lambda t, a, b: t.cat([a, b])[len(a) // 2 :][: len(a)],
    "stack": lambda t, a, b: t.stack([a, b], 1).mean(1),
    "chunks": lambda t, a, b: t.cat(a.chunk(2)[::-1]) - b,
    "pad": lambda t, a, b: t.nn.functional.pad(a[:, 1:], (1, 0)) + b if a.shape[1] else b,
    "expand": lambda t, a, b: a[:1].expand(a.shape) * b if len(a) else b,
    "index_select": lambda t, a, b: a.index_select(0, t.arange(len(a)).flip(0)) + b,
    "index": lambda t, a, b: a[t.arange(len(a)) // 2] * b,
    "gather": lambda t, a, b: a.gather(1, t.zeros(a.shape, dtype=t.int64)) + b if a.shape[1] else b,
    "index_add": lambda t, a, b: a.index_add(0, t.arange(len(a)) // 2, b),
}  # fmt: skip
PRECISION = {"float32": (1e-2, 1e-3), "float64": (1e-6, 1e-8)}  # of values and gradients after several steps

_programs = st.lists(
    st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 7), st.integers(0, 7)), min_size=2, max_size=6
)
_matrices = st.lists(st.tuples(_sizes, _sizes), min_size=PLANNED_FIRST + 3, max_size=10)


def run_program(t, program, dtype, shape):
    """What the last step makes, and the gradients of the inputs; the class of the error if there is one."""
    inputs = [(each * 0.7).to(getattr(t, dtype)) for each in (values(t, shape), values(t, shape).flip(0))]
    inputs = [each.detach().requires_grad_() for each in inputs]
    made = list(inputs)
    try:
        for step, first, second in program:
            made.append(STEPS[step](t, made[first % len(made)], made[second % len(made)]).tanh())
        (made[-1] * made[-2]).sum().backward()
    except (RuntimeError, IndexError, ValueError) as error:
        return type(error)
    return [None if each is None else (each.tolist(), tuple(each.shape), str(each.dtype)) for each in
            (made[-1], *[each.grad for each in inputs])]  # fmt: skip


@settings(max_examples=80)
@given(_programs, st.sampled_from(sorted(PRECISION)), _matrices)
def test_random_programs_with_many_sizes_give_what_pytorch_gives(program, dtype, shapes):
    for shape in shapes:
        mine, theirs = (run_program(module, program, dtype, shape) for module in (weft, torch))
        if not isinstance(mine, list) or not isinstance(theirs, list):
            assert mine is theirs, shape
            continue
        for own, other in zip(mine, theirs, strict=True):
            assert (own is None) == (other is None), shape
            if own is not None:
                assert own[1:] == other[1:], shape
                found, expected = (torch.tensor(each[0], dtype=torch.float64) for each in (own, other))
                assert torch.allclose(found, expected, *PRECISION[dtype], True), (shape, found, expected)


# ---- Large sizes -----------------------------------------------------------------------------------------------------------

BIG = [(2**31 + 3,), (2**33,), (2**40 + 1,), (2**50,), (2**57,)]
ON_META = {
    "add": lambda t, a: a + a,
    "part": lambda t, a: a[5:] * 2,
    "sum": lambda t, a: a.sum(0),
    "view": lambda t, a: a.view(1, -1).t(),
    "cat": lambda t, a: t.cat([a, a]),
    "cast": lambda t, a: a.to(t.float64),
    "broadcast": lambda t, a: a[:3, None] + a,
    "stack": lambda t, a: t.stack([a, a, a], 1),
    "sort": lambda t, a: a.sort().values,
    "conv1d": lambda t, a: t.nn.functional.conv1d(a[None, None], a.new_empty(2, 1, 3), padding=1),
    "new dims": lambda t, a: a[:, None, None][1:, 0],
    "rows": lambda t, a: a[:, None][a.new_zeros(3, dtype=t.int64), 0],
}


@pytest.mark.parametrize("call", sorted(ON_META))
def test_sizes_beyond_32_bits_on_meta(call):
    for shape in [(2,), (3,), (4,), (5,), (6,), *BIG]:
        found = []
        for module in (weft, torch):
            try:
                result = ON_META[call](module, module.empty(shape, device="meta"))
                found.append((tuple(result.shape), result.stride(), str(result.dtype)))
            except RuntimeError as error:
                found.append(type(error))
        assert found[0] == found[1], shape


# ---- What a cache keeps ----------------------------------------------------------------------------------------------------


def spec_of(*sizes):
    return contiguous_spec(sizes, weft.float32)


def test_new_sizes_do_not_run_the_planning_code():
    runs = []

    def plan(a, b):
        runs.append(a)
        return a.numel * 2 + b.shape[0]

    cache = PlanCache(plan)
    kept = [spec_of(size, 4) for size in range(2, 40)]
    assert [cache[each, each] for each in kept] == [size * 8 + size for size in range(2, 40)]
    assert len(runs) == PLANNED_FIRST + 1


def test_a_guard_that_fails_leads_to_another_template():
    cache = PlanCache(lambda a: "large" if a.numel >= 100 else "small")
    kept = [spec_of(size) for size in (*range(2, 20), *range(200, 220))]
    assert [cache[each,] for each in kept] == ["small"] * 18 + ["large"] * 20
    (kind,) = cache.kinds.values()
    assert len(kind.templates) == 2 and kind.reason is None


def test_planning_code_that_needs_values_runs_for_each_key():
    cache = PlanCache(lambda a: list(range(a.shape[0])))
    kept = [spec_of(size) for size in range(2, 12)]
    assert [len(cache[each,]) for each in kept] == list(range(2, 12))
    (kind,) = cache.kinds.values()
    assert not kind.templates and "value of a size" in kind.reason


def test_a_divisor_that_may_be_0_is_left_to_the_planning_code():
    def plan(a):
        if a.shape[0] < 8:
            return "short"
        return "many" if 100 // (a.shape[0] // 8) > 20 else "few"

    cache = PlanCache(plan)
    kept = [spec_of(size) for size in (*range(20, 30), *range(60, 70), *range(2, 8))]
    assert [cache[each,] for each in kept] == ["many"] * 10 + ["few"] * 10 + ["short"] * 6


def test_the_oldest_template_makes_room():
    cache = PlanCache(lambda a: next((k for k in range(2, 20) if a.shape[0] == k), "other"))
    for rows in range(2, 20):
        kept = [spec_of(rows, columns) for columns in range(20, 60)]
        assert [cache[each,] for each in kept] == [rows] * len(kept)
        (kind,) = cache.kinds.values()
        assert kind.templates[0](kept[:1]) == rows and len(kind.templates) <= MOST_TEMPLATES


def test_an_op_whose_calls_are_of_many_kinds_waits_for_more_of_them():
    cache = PlanCache(lambda a: a.numel)
    many = [
        contiguous_spec((2,) * dims + (1,) * ones, weft.float32) for dims in range(9) for ones in range(9)
    ]
    for each in many:
        cache[each,]
    kept = [spec_of(size, size + 1) for size in range(2, 2 + PLANNED_FIRST + 1)]
    for each in kept:
        cache[each,]
    assert not any(kind.templates for kind in cache.kinds.values())


def test_whether_workers_share_a_loop_is_no_decision_of_a_template():
    make = template(ADD.plans.plan, (spec_of(4, 5),) * 2, False)
    for rows in (6, 20_000):  # a larger result is deferred
        key = (spec_of(rows, 5),) * 2
        assert sharing_words(make(key).entry) == sharing_words(ADD.plans.plan(*key).entry)


def test_equal_sizes_by_chance_get_a_template_of_their_own():
    cache = PlanCache(lambda a: "square" if a.shape[0] == a.shape[1] else "other")
    kept = [spec_of(n, m) for n in range(2, 8) for m in range(2, 8)]
    assert [cache[each,] for each in kept] == [
        "square" if n == m else "other" for n in range(2, 8) for m in range(2, 8)
    ]


def test_a_template_made_for_a_square_matrix_serves_other_matrices():
    runs = []

    def plan(a, b):
        runs.append(a)
        return a.numel, b.shape[-1]

    cache = PlanCache(plan)
    squares = [(spec_of(n, n), spec_of(n)) for n in range(2, 8)]
    others = [(spec_of(n, n + 1), spec_of(n + 1)) for n in range(2, 8)]
    for a, b in squares + others:
        assert cache[a, b] == (a.numel, b.numel)
    assert len(runs) == PLANNED_FIRST + 1


def test_a_further_template_is_not_made_for_a_single_call():
    cache = PlanCache(lambda a: "large" if a.numel >= 100 else "small")
    kept = [spec_of(size) for size in (*range(2, 20), 200)]
    assert [cache[each,] for each in kept] == ["small"] * 18 + ["large"]
    (kind,) = cache.kinds.values()
    assert len(kind.templates) == 1


def test_a_spec_without_symbols_stays_the_interned_one():
    cache = PlanCache(lambda a, b: (a, b.numel, contiguous_spec((1, 1), weft.float32)))
    one = spec_of(1, 1)
    for size in range(2, 12):
        assert cache[one, spec_of(size)][0] is one
        assert cache[one, spec_of(size)][2] is one


class Loose:
    """A plan without slots, whose attributes no template can write."""

    def __init__(self, size):
        self.size = size


def test_a_plan_that_cannot_be_written_is_planned_each_time():
    cache = PlanCache(lambda a: Loose(1))
    for size in range(2, 12):
        assert cache[spec_of(size),].size == 1
    (kind,) = cache.kinds.values()
    assert not kind.templates and "Loose" in kind.reason


class Part:
    """A part of a plan without sizes, which a plan may change later."""

    __slots__ = ("record",)

    def __init__(self):
        self.record = None


def test_plans_of_one_template_share_nothing_that_can_be_changed():
    cache = PlanCache(lambda a: (Part(), [], {}, a.numel))
    kept = [spec_of(size) for size in range(2, 12)]
    plans = [cache[each,] for each in kept]
    for made in zip(*plans):
        assert len({id(each) for each in made}) == len(kept)


@pytest.mark.parametrize("op", [ADD, MATMUL])
def test_a_template_makes_the_plan_of_the_planning_code(op):
    make = template(
        op.plans.plan, (spec_of(4, 5), spec_of(5, 4)) if op is MATMUL else (spec_of(4, 5),) * 2, False
    )
    for n, m in ((6, 7), (5, 9), (8, 11)):
        key = (spec_of(n, m), spec_of(m, n)) if op is MATMUL else (spec_of(n, m),) * 2
        made, planned = make(key), op.plans.plan(*key)
        assert made.spec is planned.spec and made.count == planned.count
        assert type(made) is type(planned)


def test_a_million_sizes_take_no_memory():
    """Here 20,000, of which the last half must not take more than the first."""
    data = weft.zeros(40_000)

    def run(sizes):
        for size in sizes:
            part = data[:size]
            part + part
            part.sum()

    run(range(2, 10_000))
    tracemalloc.start()
    run(range(10_000, 15_000))
    gc.collect()
    first = tracemalloc.get_traced_memory()[0]
    run(range(15_000, 30_000))
    gc.collect()
    last = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert last - first < 1 << 20
    assert len(ADD.plans) <= PLANS_PER_OP


def test_templates_of_all_static_arguments_compile_without_a_warning(recwarn):
    statics = (2, True, None, (), (3, "sum"), "mean", 0.5, 2j, ADD)
    plans = PlanCache(lambda spec, *values: (spec.numel, *values))
    for rows in range(5, 15):
        assert plans[spec_of(rows, 3), *statics] == (3 * rows, *statics)
    assert any(kind.templates for kind in plans.kinds.values()) and not recwarn.list


def test_a_static_argument_may_be_nan():
    plans = PlanCache(lambda spec, value: (spec.numel, value))
    for rows in range(5, 15):
        assert plans[spec_of(rows, 3), math.nan] == (3 * rows, math.nan)


def plan_of(plans, *sizes):
    return plans[tuple(spec_of(*each) for each in sizes)]


def test_sizes_that_are_equal_by_chance_are_not_traced():
    """The planning code compares two sizes. A template of a key where they are equal would hold for such keys alone."""
    plans = PlanCache(lambda a: a.shape[0] == a.shape[1])
    for rows in (5, 6, 7, 9):
        assert plan_of(plans, (rows, 9)) is (rows == 9)
    (kind,) = plans.kinds.values()
    assert not kind.templates
    for rows in (10, 11):
        assert not plan_of(plans, (rows, 9))
    assert len(kind.templates) == 1
    for rows in range(20, 30):  # now they are equal each time
        assert plan_of(plans, (rows, rows))
    assert len(kind.templates) == 2


def test_parts_of_plans_wait_for_templates_of_the_whole():
    inner = PlanCache(lambda a: a.numel)
    outer = PlanCache(lambda a: inner[(a,)])
    for rows in range(2, 12):
        assert outer[(spec_of(rows, 3),)] == 3 * rows
    assert [len(kind.templates) for kind in outer.kinds.values()] == [1]
    assert not any(kind.templates for kind in inner.kinds.values())
    for rows in range(12, 20):  # asked for alone
        assert inner[(spec_of(rows, 3),)] == 3 * rows
    assert any(kind.templates for kind in inner.kinds.values())
