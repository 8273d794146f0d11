"""PyTorch's varlen_attn needs CUDA, so that ours is compared with attention sequence by sequence."""

import pytest

import weft
from weft.nn.attention.varlen import AuxRequest, varlen_attn, varlen_attn_out
from weft.nn.functional import scaled_dot_product_attention

ENDS = weft.tensor([0, 4, 4, 10], dtype=weft.int32)


def sequence_by_sequence(q, k, v, **options):
    parts = [
        scaled_dot_product_attention(*[x[a:b].transpose(0, 1) for x in (q, k, v)], **options).transpose(0, 1)
        for a, b in ((0, 4), (4, 10))
    ]
    return weft.cat(parts)


@pytest.mark.parametrize("causal", [False, True])
def test_sequences_do_not_see_each_other(causal):
    q, k, v = (weft.randn(10, 2, 8, requires_grad=True) for _ in range(3))
    window = (-1, 0) if causal else (-1, -1)
    found = varlen_attn(q, k, v, ENDS, ENDS, 6, 6, window_size=window)
    expected = sequence_by_sequence(q, k, v, is_causal=causal)
    weft.testing.assert_close(found, expected)
    for own, reference in zip(
        *[weft.autograd.grad(x.square().sum(), (q, k, v)) for x in (found, expected)], strict=True
    ):
        weft.testing.assert_close(own, reference)


def test_windows_logarithms_and_out():
    q, k = weft.randn(10, 4, 8), weft.randn(10, 2, 8)
    options = {"window_size": (1, 0), "enable_gqa": True, "return_aux": AuxRequest(lse=True)}
    found, lse = varlen_attn(q, k, k, ENDS, ENDS, 6, 6, **options)
    wide = k.repeat_interleave(2, 1)
    mask = weft.ones(6, 6, dtype=weft.bool).tril().triu(-1)
    expected = scaled_dot_product_attention(*[x[4:].transpose(0, 1) for x in (q, wide, wide)], attn_mask=mask)
    weft.testing.assert_close(found[4:].transpose(0, 1), expected)
    assert lse.shape == (10, 4)
    out = weft.empty(10, 4, 8)
    assert varlen_attn_out(out, q, k, k, ENDS, ENDS, 6, 6, **options)[0] is out
    weft.testing.assert_close(out, found)


def test_the_last_query_stands_at_the_last_key():
    q, k = weft.randn(2, 1, 4), weft.randn(5, 1, 4)
    found = varlen_attn(q, k, k, weft.tensor([0, 2]), weft.tensor([0, 5]), 2, 5, window_size=(-1, 0))
    mask = weft.tensor([[True, True, True, True, False], [True] * 5])
    expected = scaled_dot_product_attention(*[x.transpose(0, 1) for x in (q, k, k)], attn_mask=mask)
    weft.testing.assert_close(found.transpose(0, 1), expected)


def test_part_of_the_keys():
    q, k = weft.randn(2, 1, 4), weft.randn(6, 1, 4)
    ends, key_ends = weft.tensor([0, 1, 2]), weft.tensor([0, 3, 6])
    found = varlen_attn(q, k, k, ends, key_ends, 1, 3, seqused_k=weft.tensor([2, 3]))
    first = scaled_dot_product_attention(q[:1].transpose(0, 1), *[k[:2].transpose(0, 1)] * 2)
    weft.testing.assert_close(found[:1], first.transpose(0, 1))
    with pytest.raises(NotImplementedError, match="block_table"):
        varlen_attn(q, k, k, ends, key_ends, 1, 3, block_table=ends)
