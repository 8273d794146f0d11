"""Attention of a device, forward and backward, is within the rounding of its dtype of attention in float64 on the CPU.

The device is the reference device, or the one that TESTED_DEVICE names. Devices with kernels for it (`weft/ops/nn/tiled_attention.py`) run these.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from on_device import HERE

import weft
from weft.nn.functional import scaled_dot_product_attention

# Of the largest element: results are rounded once, weights and cotangents of scores before they are multiplied.
TOLERANCE = {weft.bfloat16: 2e-2, weft.float16: 3e-3}
HAS_KERNEL = "attention" in weft.device(HERE).backend.extras


def numbers(*shape, dtype=weft.float16, seed=0):
    return weft.randn(shape, generator=weft.Generator().manual_seed(seed)).to(dtype)


def attended(operands, ct, mask, where, dtype, arrange=lambda x: x, **options):
    """The result and the gradients, in float64 on the CPU."""
    leaves = [each.to(dtype).to(where).requires_grad_() for each in operands]
    if mask is not None:
        mask = (mask if mask.dtype is weft.bool else mask.to(dtype)).to(where)
    result = scaled_dot_product_attention(*map(arrange, leaves), mask, **options)
    assert result.grad_fn is None or not HAS_KERNEL or where == "cpu" or "ForCpu" not in result.grad_fn.name()
    gradients = weft.autograd.grad(result, leaves, ct.to(dtype).to(where))
    return [each.detach().cpu().double() for each in (result, *gradients)]


def check(query, key, value, mask=None, dtype=weft.float16, arrange=lambda x: x, **options):
    operands = [each.to(dtype) for each in (query, key, value)]
    ct = numbers(*arrange(operands[0]).shape[:-1], value.shape[-1], dtype=dtype, seed=9)
    expected = attended(operands, ct, mask, "cpu", weft.float64, arrange, **options)
    found = attended(operands, ct, mask, HERE, dtype, arrange, **options)
    for one, other in zip(found, expected, strict=True):
        largest = other.abs().max().clamp(min=1e-2) if other.numel() else 1
        assert one.shape == other.shape
        assert ((one - other).abs() <= TOLERANCE[dtype] * largest).all(), (one - other).abs().max() / largest


def three(batch, queries, keys, features=16, values=16, seed=0):
    return (
        numbers(*batch, queries, features, seed=seed),
        numbers(*batch, keys, features, seed=seed + 1),
        numbers(*batch, keys, values, seed=seed + 2),
    )


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (1, 200), (200, 1), (129, 65), (65, 129)])
@pytest.mark.parametrize("causal", [False, True])
def test_numbers_of_queries_and_keys(queries, keys, causal):
    check(*three((2, 3), queries, keys), is_causal=causal)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0)])
def test_without_queries_or_keys(shape):
    query, key, value = three((2,), *shape)
    found = scaled_dot_product_attention(*(each.to(HERE) for each in (query, key, value)))
    assert found.cpu().equal(weft.zeros(2, shape[0], 16, dtype=weft.float16))


@pytest.mark.parametrize(("features", "values"), [(40, 24), (9, 3), (128, 64), (250, 136)])
def test_numbers_of_features(features, values):
    check(*three((2,), 70, 90, features, values), dtype=weft.bfloat16)


def test_more_features_than_the_kernels_take():
    check(*three((2,), 7, 9, 264, 16))


@pytest.mark.parametrize("batch", [(), (3,), (2, 3), (2, 1, 3)])
def test_batches_and_masks(batch):
    mask = numbers(5, 70, seed=3) > 0
    mask[2] = False  # this query sees nothing
    check(*three(batch, 5, 70), mask)


@pytest.mark.parametrize("shape", [(2, 1, 5, 70), (3, 1, 70), (1, 1, 5, 1), (70,)])
def test_masks_that_broadcast(shape):
    check(*three((2, 3), 5, 70), numbers(*shape, seed=3))


def test_minus_infinity_in_masks():
    mask = numbers(5, 70, seed=3).masked_fill(numbers(5, 70, seed=4) > 0, -float("inf"))
    mask[2] = -float("inf")
    check(*three((2,), 5, 70), mask)


@pytest.mark.parametrize("scale", [0.0, -0.5, 3.0])
def test_scales(scale):
    check(*three((2,), 20, 30), scale=scale)


def test_a_mask_that_is_trained():
    operands = [each.to(HERE) for each in three((2,), 5, 7)]
    mask = numbers(5, 7, seed=3).to(HERE).requires_grad_()
    scaled_dot_product_attention(*operands, mask).sum().backward()
    assert mask.grad is not None


@pytest.mark.parametrize("causal", [False, True])
def test_heads_that_share_keys(causal):
    query, key, value = numbers(2, 6, 70, 16), numbers(2, 2, 90, 16, seed=1), numbers(2, 2, 90, 16, seed=2)
    check(query, key, value, enable_gqa=True, is_causal=causal)


def test_rows_of_positions():
    """[N, L, heads, E] transposed, parts of one projection, and memory that is not aligned."""
    check(*three((2, 70), 3, 3), arrange=lambda x: x.transpose(1, 2))
    whole = numbers(2, 70, 3, 48).to(HERE)
    query, key, value = (each.transpose(1, 2) for each in whole.chunk(3, -1))
    expected = scaled_dot_product_attention(*(each.cpu().double() for each in (query, key, value)))
    found = scaled_dot_product_attention(query, key, value)
    assert (found.cpu().double() - expected).abs().max() < 5e-3
    shifted = weft.empty(whole.numel() + 3, dtype=whole.dtype, device=HERE)[3:].view_as(whole).copy_(whole)
    query, key, value = (each.transpose(1, 2) for each in shifted.chunk(3, -1))
    assert scaled_dot_product_attention(query, key, value).equal(found)
    columns = [each.mT.contiguous().mT for each in (query, key, value)]
    found = scaled_dot_product_attention(*columns)  # by other products on the reference device
    assert (found.cpu().double() - expected).abs().max() < 5e-3


def test_results_lie_as_queries_do():
    query = numbers(2, 70, 3, 16).to(HERE).transpose(1, 2)
    assert scaled_dot_product_attention(query, query, query).stride() == query.stride()


def test_the_bits_are_the_same_each_time():
    operands = [each.to(HERE).requires_grad_() for each in three((2, 3), 129, 200)]
    runs = []
    for _ in range(2):
        result = scaled_dot_product_attention(*operands, is_causal=True)
        runs.append([result, *weft.autograd.grad(result.square().sum(), operands)])
    for one, other in zip(*runs, strict=True):
        assert one.equal(other)


def test_gradients_of_some_operands():
    operands = [each.to(HERE) for each in three((2, 3), 20, 30)]
    ct = numbers(2, 3, 20, 16, seed=9).to(HERE)

    def gradients(*wanted):
        leaves = [each.detach().requires_grad_(k in wanted) for k, each in enumerate(operands)]
        return weft.autograd.grad(scaled_dot_product_attention(*leaves), [leaves[k] for k in wanted], ct)

    whole = gradients(0, 1, 2)
    for k in range(3):
        assert gradients(k)[0].equal(whole[k])


def test_derivatives_of_gradients():
    def second(where, dtype):
        leaves = [each.to(dtype).to(where).requires_grad_() for each in three((2, 2), 4, 6, 8, 8)]
        result = scaled_dot_product_attention(*leaves, is_causal=True)
        first = weft.autograd.grad(result.square().sum(), leaves, create_graph=True)
        return weft.autograd.grad(sum(each.square().sum() for each in first), leaves)

    for found, expected in zip(second(HERE, weft.float16), second("cpu", weft.float64), strict=True):
        assert (found.cpu().double() - expected).abs().max() < 2e-2 * expected.abs().max()


def test_samples_and_tangents():
    operands = [each.to(HERE) for each in three((2, 3), 5, 7)]
    expected = scaled_dot_product_attention(*operands).cpu().double()
    found = weft.func.vmap(scaled_dot_product_attention)(*operands)
    assert (found.cpu().double() - expected).abs().max() < 5e-3
    value, tangent = weft.func.jvp(scaled_dot_product_attention, tuple(operands), tuple(operands))
    wide = tuple(each.cpu().double() for each in operands)
    _, expected_tangent = weft.func.jvp(scaled_dot_product_attention, wide, wide)
    assert (value.cpu().double() - expected).abs().max() < 5e-3
    assert (tangent.cpu().double() - expected_tangent).abs().max() < 1e-2


@pytest.mark.skipif(not HAS_KERNEL, reason="for devices with kernels of attention")
def test_what_has_no_memory_of_its_own_is_computed_without_the_kernels(monkeypatch):
    def refused(*arguments):
        raise AssertionError("a kernel was prepared")

    query = numbers(2, 3, 5, 16).to(HERE)
    expected = scaled_dot_product_attention(query, query, query)
    for name in ("attention", "attention_by_queries", "attention_by_keys"):
        monkeypatch.setitem(query.device.backend.extras, name, refused)
    found = weft.func.vmap(scaled_dot_product_attention)(query, query, query)
    assert (found - expected).abs().max() < 5e-3
    with pytest.raises(AssertionError, match="a kernel was prepared"):
        scaled_dot_product_attention(query[:, :1], query[:, :1], query[:, :1])


@settings(max_examples=20)
@given(
    st.integers(1, 300),
    st.integers(1, 300),
    st.sampled_from([8, 16]),
    st.sampled_from([(1, 1), (2, 1), (2, 2), (4, 2)]),
    st.booleans(),
    st.integers(0, 100),
)
def test_any_shape(queries, keys, features, heads, causal, seed):
    query = numbers(2, heads[0], queries, features, seed=seed)
    key, value = (numbers(2, heads[1], keys, features, seed=seed + k) for k in (1, 2))
    check(query, key, value, is_causal=causal, enable_gqa=True)
