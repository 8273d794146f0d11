"""A function traced into one kernel gives the bits of its ops run one by one, and what one kernel cannot do is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.core.spec import contiguous_spec
from weft.core.tensor import empty
from weft.families.elements import store_as
from weft.families.traced import NoKernel, Traced, tracing

DTYPES = "float32 float64 bfloat16 float16 int64 int32 uint8 bool complex64".split()
COUNT = 7

UNARY = (
    "exp log sin cos tanh sigmoid sqrt rsqrt reciprocal square neg abs sign sgn floor trunc frac relu erf expm1 log1p isnan "
    "isfinite signbit logical_not bitwise_not conj detach positive"
).split()
BINARY = (
    "__add__ __sub__ __mul__ __truediv__ __radd__ __rsub__ __rmul__ __rtruediv__ __lt__ __le__ __gt__ __ge__ __eq__ __ne__ "
    "__and__ __or__ __xor__ maximum minimum atan2 hypot copysign logical_and logical_xor xlogy"
).split()
STEPS = {
    **{name: (1, lambda a, name=name: getattr(a, name)()) for name in UNARY},
    **{name: (2, lambda a, b, name=name: getattr(a, name)(b)) for name in BINARY},
    "where": (3, lambda a, b, c: a.where(b > 0, c)),
    "masked_fill": (2, lambda a, b: a.masked_fill(b == 0, 0)),
    "square by pow": (1, lambda a: a**2),
    "power": (2, lambda a, b: a.abs() ** b),
    "clamp": (1, lambda a: a.clamp(-1, 2)),
    "lerp": (3, lambda a, b, c: weft.lerp(a, b, c)),
    "addcmul": (3, lambda a, b, c: weft.addcmul(a, b, c, value=2)),
    "scaled": (2, lambda a, b: weft.add(a, b, alpha=3)),
}
NUMBERS = (0.1, 2, -1.5, 0, 3, True)


@st.composite
def expressions(draw):
    """Inputs as (dtype, shape), and steps as (name, positions of operands); a position from -1 down is a number."""
    inputs = draw(
        st.lists(st.tuples(st.sampled_from(DTYPES), st.sampled_from([(), (COUNT,)])), min_size=1, max_size=3)
    )
    steps = []
    for k in range(draw(st.integers(1, 6))):
        name = draw(st.sampled_from(sorted(STEPS)))
        count = STEPS[name][0]
        first = draw(st.integers(0, len(inputs) + k - 1))
        rest = [draw(st.integers(-len(NUMBERS), len(inputs) + k - 1)) for _ in range(count - 1)]
        steps.append((name, (first, *rest)))
    return inputs, steps


def run(steps, values):
    """The values of all steps; a step that raises gives its first operand instead."""
    values = list(values)
    for name, positions in steps:
        operands = [values[k] if k >= 0 else NUMBERS[k] for k in positions]
        try:
            values.append(STEPS[name][1](*operands))
        except (TypeError, RuntimeError, NotImplementedError):
            values.append(operands[0])
    return values


def launched(value, operands):
    """The result of the kernel that a traced value describes."""
    spec = contiguous_spec((COUNT,), value.spec.dtype)
    strides = [spec.byte_stride, *((each.element_size() if each.shape else 0,) for each in operands)]
    launch = spec.device.backend.prepare(
        [store_as(value.value, spec)], [each.dtype for each in operands], [], spec.shape, strides
    )
    result = empty(spec)
    addresses = [each._storage.ptr + each._byte_offset for each in (result, *operands)]
    launch.entry(*addresses, launch.meta, launch.count)
    return result


def bits(tensor):
    tensor = weft.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    array = (
        tensor.contiguous().float().numpy()
        if tensor.dtype in (weft.bfloat16, weft.float16)
        else tensor.numpy()
    )
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return array.tobytes()


@settings(max_examples=40)  # each compiles a kernel or two
@given(expressions(), st.integers(0, 1000))
def test_one_kernel_has_the_bits_of_its_ops(expression, seed):
    inputs, steps = expression
    random = np.random.default_rng(seed)
    operands = [
        weft.from_numpy(np.asarray(random.normal(size=shape) * 3)).to(getattr(weft, dtype))
        for dtype, shape in inputs
    ]
    expected = run(steps, operands)
    with tracing():
        traced = run(steps, [Traced.load(k, each.spec) for k, each in enumerate(operands)])
    for a, b in zip(expected[len(operands) :], traced[len(operands) :], strict=True):
        assert b.spec.dtype is a.dtype and bool(b.spec.shape) is bool(a.shape)
        assert bits(launched(b, operands)) == bits(a.expand(COUNT))


def traced(function, *tensors):
    with tracing():
        return function(*[Traced.load(k, each.spec) for k, each in enumerate(tensors)])


def test_a_traced_result_may_be_an_operand_of_the_next_kernel():
    a = weft.linspace(-2, 2, COUNT).bfloat16()
    inner = traced(lambda a: a * 1.7, a)
    with tracing():
        outer = inner.exp() + inner
    b = a * 1.7
    assert bits(launched(outer, [a])) == bits(b.exp() + b)


def test_a_traced_value_knows_its_op_and_inputs():
    result = traced(lambda a, b: (a * b).sigmoid(), weft.ones(3), weft.ones(()))
    (product,) = result.inputs
    assert (result.op.name, product.op.name) == ("sigmoid", "mul")
    assert [each.spec.shape for each in product.inputs] == [(1,), ()]


@pytest.mark.parametrize(
    "function",
    [
        lambda a: a if a > 0 else -a,
        lambda a: a.item(),
        lambda a: a * a.shape[0],
        lambda a: a.sum(),
        lambda a: a.reshape(-1),
        lambda a: a + weft.ones(3),
        lambda a: a.add_(1),
        lambda a: a.cumsum(0),
        lambda a: weft.special.zeta(a, a),
        lambda a: a[0],
        lambda a: a @ a,
        lambda a: a.to(weft.int64),
        lambda a: a.numpy(),
    ],
)
def test_what_one_kernel_cannot_do_is_refused(function):
    with pytest.raises(NoKernel):
        traced(function, weft.ones(3))


def test_numbers_are_computed_in_float64():
    alpha, scale = Traced.number(0), Traced.number(1)
    with tracing():
        product = alpha * scale + 1
        result = product * Traced.load(0, weft.ones(3).bfloat16().spec)
    assert product.kind is float and product.value.dtype is weft.float64
    assert result.spec.dtype is weft.bfloat16
