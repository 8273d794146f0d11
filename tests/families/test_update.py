"""Updates in one kernel: the bits of the composition, whatever the dtypes and strides."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.families.traced import Traced
from weft.families.update import FusedUpdate
from weft.ops.elementwise.arithmetic import ADDCMUL, LERP, MUL
from weft.ops.elementwise.pointwise import OPS
from weft.ops.indexing.masking import WHERE

lerp, addcmul, mul, sqrt, sign = LERP, ADDCMUL, MUL, OPS["sqrt"], OPS["sign"]


def rule(options, source, first, second, weight, scale):
    """Every op rounds; `options` chooses among two expressions."""
    second = lerp(second, source, weight)
    step = sqrt(mul(second, second)) if options == "root" else sign(second)
    return addcmul(first, step, source, scale), second


def bits(tensor):
    return tensor.contiguous().view(weft.uint8).numpy().tobytes()


@given(
    dtype=st.sampled_from(["float16", "bfloat16", "float32", "float64"]),
    options=st.sampled_from(["root", "sign"]),
    layout=st.sampled_from(["plain", "transposed", "stepped", "expanded source"]),
    seed=st.integers(0, 1000),
)
def test_same_bits_as_the_composition(dtype, options, layout, seed):
    random = np.random.default_rng(seed)

    def tensor(expanded=False):
        values = weft.from_numpy(random.normal(size=(6, 10))).to(getattr(weft, dtype))
        if expanded:
            return values[:1].expand(6, 10)
        return {"transposed": values.t().contiguous().t(), "stepped": values.repeat(1, 2)[:, ::2]}.get(
            layout, values
        )

    source, first, second = tensor(layout == "expanded source"), tensor(), tensor()
    expected = rule(options, source, first, second, 0.3, -0.01)
    update = FusedUpdate(rule)
    update(options, source, (first, second), (0.3, -0.01))
    assert len(update.plans) == 1 and None not in update.plans.values()
    assert bits(first) == bits(expected[0]) and bits(second) == bits(expected[1])


def test_versions_count_and_plans_are_kept():
    update = FusedUpdate(rule)
    source, first, second = weft.ones(3), weft.ones(3), weft.ones(3)
    for _ in range(3):
        update("sign", source, (first, second), (0.5, 1.0))
    assert (source._version, first._version, second._version) == (0, 3, 3)
    assert first.tolist() == [4.0, 4.0, 4.0] and len(update.plans) == 1


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (1 << 17,)])
def test_shapes(shape):
    source, first, second = weft.ones(shape), weft.zeros(shape), weft.zeros(shape)
    FusedUpdate(rule)("sign", source, (first, second), (0.5, 2.0))
    assert np.array_equal(first.numpy(), np.full(shape, 2.0)) and np.array_equal(
        second.numpy(), np.full(shape, 0.5)
    )


def test_source_in_the_memory_of_a_target_is_read_first():
    memory = weft.arange(6.0)
    source, first, second = memory[2:], memory[:4], weft.zeros(4)
    FusedUpdate(rule)("sign", source, (first, second), (1.0, 10.0))
    assert first.tolist() == [20.0, 31.0, 42.0, 53.0]


def test_integers_are_left_to_the_ops():
    whole = weft.arange(3)
    with pytest.raises(NotImplementedError, match="lerp"):
        FusedUpdate(rule)("sign", whole, (whole.clone(), whole.clone()), (0.5, 2.0))


def test_repeated_targets_are_refused():
    with pytest.raises(RuntimeError, match="more than one element"):
        FusedUpdate(rule)("sign", weft.ones(3), (weft.ones(1).expand(3), weft.ones(3)), (0.5, 2.0))


def test_a_source_that_overlaps_the_target_is_read_before_the_target_is_written():
    for lib in (torch, weft):
        memory = lib.arange(9.0)
        parameter = lib.nn.Parameter(memory[1:])
        parameter.grad = memory[:-1]
        lib.optim.SGD([parameter], lr=0.5, momentum=0.9).step()
        assert memory.tolist() == [0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5]


def test_other_devices_are_named():
    with pytest.raises(RuntimeError, match="same device"):
        FusedUpdate(rule)("sign", weft.ones(3, device="meta"), (weft.ones(3), weft.ones(3)), (0.5, 2.0))


def test_traced_values_compare_and_choose():
    seen = []

    def clipped(options, source, target, limit):
        seen.append(type(source) is Traced)
        large = source > 1.0
        return (OPS["maximum"](WHERE(large, limit, source), target),)

    target = weft.zeros(3)
    FusedUpdate(clipped)((), weft.tensor([-1.0, 0.5, 7.0]), (target,), (2.0,))
    assert seen == [True] and target.tolist() == [0.0, 0.5, 2.0]


def average(options, source, target, number):
    return (target - source.sum() * number,)


def choice(options, source, target, number):
    return (target - source if number > 0 else target,)


@pytest.mark.parametrize("rule, used", [(average, "sum.run"), (choice, "the value of a tensor or a number")])
def test_a_rule_that_is_no_kernel_says_why(rule, used):
    with pytest.raises(NotImplementedError, match=f"the rule {rule.__name__} .* because it uses {used}"):
        FusedUpdate(rule)((), weft.ones(2), (weft.ones(2),), (0.5,))


@pytest.mark.parametrize("composed", [False, True])
@pytest.mark.parametrize("values", ["target - source", "(target - source, source)"])
def test_a_rule_returns_a_tuple_of_values_for_the_targets(values, composed):
    update = FusedUpdate(eval(f"lambda options, source, target: {values}"))
    with pytest.raises(TypeError, match="must return a tuple of 1 values"):
        (update.compose if composed else update)((), weft.ones(2), (weft.ones(2),), ())
