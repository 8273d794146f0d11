import pytest
import torch
from alike import same
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import check

import weft

pytestmark = pytest.mark.filterwarnings("ignore")
F = "nn.functional."


def numbers(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.refuses(["5-softmax", "5-log_softmax", "5-softmin"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
@pytest.mark.parametrize("dim", [None, 0, -1, 5])
def test_softmax_with_older_arguments(name, dim):
    check(F + name, numbers(2, 3, 4), dim)
    check(F + name, numbers(2, 3).float(), dim, dtype=torch.float64)


@pytest.mark.may_raise(least=0.45)
@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([(), (2,), (2, 3)]),
    st.integers(1, 4),
    st.integers(1, 4),
    st.sampled_from([None, "bool", "float"]),
    st.booleans(),
    st.none() | st.floats(0.1, 2),
)
def test_scaled_dot_products(batch, length, keys, mask, is_causal, scale):
    query, key, value = numbers(*batch, length, 4), numbers(*batch, keys, 4), numbers(*batch, keys, 3, seed=1)
    if mask:
        mask = numbers(length, keys, seed=2)
        mask = mask > 0 if mask == "bool" else mask
    check(F + "scaled_dot_product_attention", query, key, value, mask, 0.0, is_causal, scale=scale)


def test_a_query_that_sees_nothing_gets_zeros():
    x = numbers(2, 3, 4)
    mask = torch.tensor([[True, True, False], [False] * 3, [True] * 3])
    check(F + "scaled_dot_product_attention", x, x, x, mask)


def test_heads_share_keys():
    query, key = numbers(2, 4, 3, 5), numbers(2, 2, 3, 5)
    check(F + "scaled_dot_product_attention", query, key, key, enable_gqa=True)
    mask = numbers(2, 4, 3, 3)
    check(F + "scaled_dot_product_attention", query, key, key, mask, enable_gqa=True)
    check(F + "scaled_dot_product_attention", query, key, key, mask[:, :1] > 0.5, enable_gqa=True)
    check(
        F + "scaled_dot_product_attention", query.transpose(1, 2).contiguous().transpose(1, 2), query, query
    )


def projections(features=6):
    return {
        "in_proj_weight": numbers(3 * features, features, seed=3),
        "in_proj_bias": numbers(3 * features, seed=4),
        "out_proj_weight": numbers(features, features, seed=5),
        "out_proj_bias": numbers(features, seed=6),
    }


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("extra_keys", [True, False])
@pytest.mark.parametrize(
    "masks", [(), ("attn_mask",), ("key_padding_mask",), ("attn_mask", "key_padding_mask")]
)
def test_multi_head_attention(batched, need_weights, extra_keys, masks):
    shape = (2,) if batched else ()
    query, key = numbers(3, *shape, 6), numbers(4, *shape, 6, seed=1)
    options = {name: None for name in ("bias_k", "bias_v")} | projections()
    if extra_keys:
        options |= {"bias_k": numbers(1, 1, 6), "bias_v": numbers(1, 1, 6)}
    padding = torch.zeros(*shape, 4, dtype=torch.bool)
    padding[..., -1] = True
    available = {"attn_mask": numbers(3, 4), "key_padding_mask": padding}
    options |= {name: available[name] for name in masks}
    check(
        F + "multi_head_attention_forward", query, key, key, 6, 2, add_zero_attn=extra_keys, dropout_p=0.0,
        need_weights=need_weights, **options,
    )  # fmt: skip


@pytest.mark.refuses("all")
def test_multi_head_attention_rejects():
    x = numbers(3, 2, 6)
    options = {"bias_k": None, "bias_v": None, "add_zero_attn": False, "dropout_p": 0.0} | projections()
    check(F + "multi_head_attention_forward", x, x, x, 5, 2, **options)
    check(F + "multi_head_attention_forward", x, x, x, 6, 4, **options)
    check(F + "multi_head_attention_forward", x, x[0], x, 6, 2, **options)
    check(F + "multi_head_attention_forward", x, x, x, 6, 2, **options, is_causal=True)
    check(F + "multi_head_attention_forward", x, x, x, 6, 2, **options, attn_mask=numbers(2, 2))


@pytest.mark.refuses("all")
@pytest.mark.parametrize(
    "q, k, v",
    [
        ((3, 4), (3, 5), (3, 4)),
        ((3, 4), (3, 4), (2, 4)),
        ((3,), (3,), (3,)),
        ((2, 3, 4), (2, 3, 5), (2, 3, 4)),
    ],
)
def test_sizes_that_do_not_fit(q, k, v):
    same(lambda lib: lib.nn.functional.scaled_dot_product_attention(*map(lib.zeros, (q, k, v))))


def test_masks_of_two_dtypes_warn():
    x, padding = weft.zeros(3, 2, 4), weft.zeros(2, 3, dtype=weft.bool)
    with pytest.warns(UserWarning, match="mismatched key_padding_mask and attn_mask"):
        weft.nn.MultiheadAttention(4, 2)(x, x, x, key_padding_mask=padding, attn_mask=weft.zeros(3, 3))


FITTING_MASKS = [(4, 5), (1, 5), (4, 1), (2, 1, 4, 5), (1, 3, 4, 5), (3, 1, 5), (2, 3, 4, 5)]
OTHER_MASKS = [
    (2, 2),
    (4, 4),
    (5,),
    (3, 5),
    (3, 4, 4),
    (3, 3, 4, 5),
    (2, 2, 4, 5),
    (1, 2, 3, 4, 5),
    (0, 5),
    (4, 0),
]


@pytest.mark.parametrize("dtype", ["float32", "bool"])
@pytest.mark.parametrize("shape", FITTING_MASKS + OTHER_MASKS)
def test_a_mask_that_does_not_fit_the_scores_is_refused(shape, dtype):
    outcomes = []
    for library in (weft, torch):
        attention = library.nn.functional.scaled_dot_product_attention
        q, k = library.ones(2, 3, 4, 6), library.ones(2, 3, 5, 6)
        mask = library.ones(shape, dtype=getattr(library, dtype))
        try:
            outcomes.append(attention(q, k, k, attn_mask=mask).shape)
        except (RuntimeError, IndexError):
            outcomes.append("refused")
    assert outcomes[0] == outcomes[1] or (shape == (5,) and outcomes[0] == (2, 3, 4, 6))


def test_a_mask_of_a_matrix_that_does_not_fit_is_refused():
    x = weft.ones(4, 3)
    for shape in ((2, 2), (1, 4, 4), (2, 4, 4)):
        with pytest.raises(RuntimeError):
            weft.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=weft.ones(shape))
    for mask in (weft.ones(4, 4).double(), weft.ones(4, 4).int()):
        with pytest.raises(RuntimeError):
            weft.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)


UNFIT = """
torch.nn.functional.scaled_dot_product_attention(torch.ones(4, 3, 8), torch.ones(4, 8, 8), torch.ones(4, 6, 8))  # raises
torch.nn.functional.scaled_dot_product_attention(torch.ones(4, 3, 8), torch.ones(4, 6, 8), torch.ones(4, 8, 8))  # raises
torch.nn.functional.scaled_dot_product_attention(torch.ones(4, 3, 8), torch.ones(4, 6, 7), torch.ones(4, 6, 8))  # raises
torch.nn.functional.scaled_dot_product_attention(torch.ones(3, 8), torch.ones(6, 7), torch.ones(6, 5))  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
