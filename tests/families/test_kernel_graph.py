import pytest
import torch

import weft
from weft.core import view_rules
from weft.engine.scalar import exp
from weft.families.kernel_graph import KernelGraph
from weft.families.map import Map, same_dtype
from weft.ops.elementwise.arithmetic import ADD, MUL, SUB
from weft.ops.indexing.advanced_indexing import PUT
from weft.ops.indexing.gather import GATHER
from weft.ops.linalg.matmul import MATMUL
from weft.ops.reductions.reduction import SUM
from weft.ops.reductions.softmax import SUM_PRODUCTS

SCALED = Map("scaled", same_dtype, lambda a, total, factor, shift: a / total * factor + shift)
EXP = Map("exp", same_dtype, exp)


def _build(graph, dims):
    x, shift = graph.inputs
    powers = graph.map(EXP, x)
    (total,) = graph.reduce(SUM, powers, dims=dims)
    return [total, graph.map(SCALED, powers, total, graph.numbers[0], shift or 0.5)]


PROGRAM = KernelGraph("scaled_powers", 2, _build, numbers=(float,))


def test_kernels_run_one_after_the_other():
    x = weft.randn(3, 4).t()
    for shift in (weft.ones(3), None):
        for factor in (2.0, 3.0):
            total, result = PROGRAM((x, shift), ((0,),), (factor,))
            expected = x.exp() / x.exp().sum(0, keepdim=True) * factor + (0.5 if shift is None else shift)
            assert weft.allclose(result, expected) and result.stride() == x.stride()
            assert weft.allclose(total, x.exp().sum(0, keepdim=True))
    assert len(PROGRAM.plans) == 2


def test_programs_run_without_memory():
    total, result = PROGRAM((weft.empty(3, 4, device="meta"), None), ((1,),), (1.0,))
    assert total.shape == (3, 1) and result.shape == (3, 4) and result.is_meta


def _build_centered(graph):
    (x,) = graph.inputs
    (total,) = graph.reduce(SUM, graph.reshape(x, (x.spec.shape.numel(),)), dims=(0,))
    return [graph.map(SUB, x, total)]


CENTERED = KernelGraph("centered", 1, _build_centered)
RECORDED = KernelGraph("centered", 1, _build_centered, derivative=lambda ct, out, x: ct - ct.sum())


def test_a_program_is_one_step_or_without_a_derivative_the_steps_it_is_made_of():
    for graph, steps in ((CENTERED, "SubBackward0"), (RECORDED, "CenteredBackward0")):
        x = weft.randn(2, 3, requires_grad=True)
        y = graph((x,))
        assert y.grad_fn.name() == steps
        (y * y).sum().backward()
        expected = x.detach().clone().requires_grad_()
        ((expected - expected.sum()) ** 2).sum().backward()
        assert weft.allclose(x.grad, expected.grad)


def _build_counter(graph):
    x, total = graph.inputs
    graph.write(ADD, total, total, x)
    return [graph.to(x, weft.float64)]


def test_writes_into_inputs_count_as_such():
    graph = KernelGraph("counter", 2, _build_counter)
    x, total = weft.ones(2), weft.zeros(2)
    found = graph((x, total))
    assert found.dtype is weft.float64 and total.tolist() == [1.0, 1.0]
    assert total._version == 1 and x._version == 0


def _build_taken(graph):
    x, index = graph.inputs
    taken = graph.gather(GATHER, x, (index,), 0)
    zeros = graph.map(MUL, x, 0.0)
    graph.scatter(GATHER.scatter, zeros, (index,), taken, 0)
    return [taken, zeros]


def test_indices_are_checked():
    def check_indices(x, index):
        raise IndexError("there")

    graph = KernelGraph("taken", 2, _build_taken, check_indices=check_indices)
    x = weft.tensor([1.0, 2.0, 3.0])
    taken, put = graph((x, weft.tensor([2, 0])))
    assert taken.tolist() == [3.0, 1.0] and put.tolist() == [1.0, 0.0, 3.0]
    with pytest.raises(IndexError, match="there"):
        graph((x, weft.tensor([2, 3])))


def _build_products(graph, rule):
    """a, or a view of it, times the last two columns of its own transpose plus a constant."""
    (a,) = graph.inputs
    a = graph.view(rule, a, 0, 1)
    columns = graph.view(view_rules.slice, graph.view(view_rules.t, a), 1, 1, 3, 1)
    shifted = graph.map(ADD, columns, graph.constant(SHIFT))
    return [graph.matmul(MATMUL, a, shifted)]


SHIFT = weft.tensor([1, 0])
PRODUCTS = KernelGraph("products", 1, _build_products)


@pytest.mark.parametrize("dtype", [weft.float32, weft.complex128, weft.bfloat16, weft.int64])
@pytest.mark.parametrize("step", [1, 2])
def test_products_of_views(dtype, step):
    a = weft.arange(24).view(4, 6).to(dtype)[:, ::step]
    for rule, x in ((view_rules.transpose, a.t()), (lambda own, *dims: view_rules.alias(own), a)):
        result = PRODUCTS((a,), (rule,))
        assert result.dtype is dtype
        assert weft.equal(result, x @ (x.t()[:, 1:3] + SHIFT))


def _build_missing(graph):
    x, index = graph.inputs
    return [graph.gather(GATHER, x, (index,), 0)]


def _check_missing(x, index):
    GATHER(x, (index,), 0)


def test_indices_into_a_dimension_without_elements_are_checked():
    """No kernel runs then, so none can meet the bad index."""
    graph = KernelGraph("missing", 2, _build_missing, check_indices=_check_missing)
    for index in ([0], [-1], [0, 5]):
        with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
            graph((weft.ones(0), weft.tensor(index)))
    assert graph((weft.ones(0), weft.tensor([], dtype=weft.int64))).tolist() == []
    assert graph((weft.ones(2), weft.tensor([], dtype=weft.int64))).tolist() == []


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_of_no_classes(reduction):
    for lib in (torch, weft):
        scores = lib.ones(3, 0, requires_grad=True)
        for name in ("nll_loss", "cross_entropy"):
            loss = getattr(lib.nn.functional, name)
            with pytest.raises(IndexError, match="out of bounds"):
                loss(scores, lib.tensor([0, 1, 2]), reduction=reduction)
            with pytest.raises(IndexError, match="out of bounds"):
                loss(scores, lib.tensor([-100, -100, 0]), lib.ones(0), reduction=reduction)


# ---- Operands that do not fit are refused where the plan is made ------------------------------------------------------


def _write(graph):
    target, value = graph.inputs
    copied = graph.map(ADD, target, 0.0)
    graph.write(ADD, copied, copied, value)
    return [copied]


def _put(graph):
    target, index, value = graph.inputs
    whole = graph.map(ADD, target, 0.0)
    graph.scatter(PUT, whole, [index], value, (0,))
    return [whole]


def _view(graph, sizes, strides, offset):
    return [graph.map(ADD, graph.view(view_rules.as_strided, graph.inputs[0], sizes, strides, offset), 0.0)]


def _take(graph, dim):
    x, index = graph.inputs
    return [graph.gather(GATHER, x, [index], dim)]


def _multiplied(graph):
    return [graph.matmul(MATMUL, *graph.inputs)]


def _sum_of_products(graph):
    a, b = graph.inputs
    return graph.reduce(SUM_PRODUCTS, a, b, dims=(1,))


@pytest.mark.parametrize("value", [(3,), (2, 1, 4), (1, 2, 4), (5, 4), (0,), (2, 3)])
def test_a_program_refuses_operands_that_do_not_broadcast(value):
    for build in (_write, _sum_of_products):
        with pytest.raises(RuntimeError):
            KernelGraph("refused", 2, build)((weft.ones(2, 4), weft.ones(value)))


@pytest.mark.parametrize("value", [(2,), (2, 1), (3, 5), (0, 4), (1, 3, 4)])
def test_a_program_refuses_values_that_do_not_fit_what_indices_point_at(value):
    index = weft.tensor([0, 2, 1])
    with pytest.raises(RuntimeError):
        KernelGraph("refused", 3, _put)((weft.ones(3, 4), index, weft.ones(value)))


@pytest.mark.parametrize(
    "place", [((2,), (1,), 5), ((4,), (2,), 0), ((2,), (1,), -1), ((), (), 6), ((3, 3), (2, 1), 0)]
)
def test_a_program_refuses_views_that_reach_outside(place):
    with pytest.raises(RuntimeError, match="reaches the elements"):
        KernelGraph("refused", 1, _view)((weft.ones(6),), place)
    assert KernelGraph("allowed", 1, _view)((weft.ones(6),), ((2, 3), (3, 1), 0)).shape == (2, 3)


def test_a_program_refuses_indices_and_matrices_that_do_not_fit():
    for index in (weft.zeros(1, 2, 2, dtype=weft.int64), weft.zeros(3, 2, dtype=weft.int64)):
        with pytest.raises(RuntimeError):
            KernelGraph("refused", 2, _take)((weft.ones(2, 2), index), (1,))
    with pytest.raises(RuntimeError):
        KernelGraph("refused", 2, _multiplied)((weft.ones(2, 3), weft.ones(2, 3)))


def _build_parts(graph):
    """Views of views, each of which begins behind the start of the one before."""
    (x,) = graph.inputs
    part = graph.view(view_rules.slice, graph.view(view_rules.slice, x, 0, 1, 6, 1), 0, 2, 4, 1)
    made = graph.map(ADD, x, 100)
    other = graph.view(view_rules.select, graph.view(view_rules.slice, made, 0, 2, 6, 1), 0, 1)
    return [graph.map(ADD, part, 0), graph.map(ADD, other, 0)]


def test_views_of_views():
    part, other = KernelGraph("parts", 1, _build_parts)((weft.arange(6),))
    assert part.tolist() == [3, 4] and other.item() == 103


def test_tracebacks_show_the_source_of_a_plan():
    graph = KernelGraph("refusing", 1, lambda graph: [graph.map(EXP, graph.inputs[0])])
    graph((weft.ones(2),))
    (plan,) = graph.plans.values()
    with pytest.raises(AttributeError) as caught:
        plan.run((None,), ())
    assert str(caught.traceback[-1].statement).strip() == "input0 = x0._storage.ptr + x0._byte_offset"
