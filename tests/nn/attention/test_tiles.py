"""Attention in tiles against all scores at once, which test_flex_attention.py compares with PyTorch."""

import pytest

import weft
from weft.nn.attention import _flexible
from weft.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

LENGTHS = weft.tensor([4, 9])
DOCUMENTS = weft.tensor([0] * 7 + [1] * 4 + [2] * 9)
SLOPES = weft.tensor([0.5, 0.25, 0.125, 2.0])
MASKS = {
    "causal": lambda b, h, q, k: q >= k,
    "window": lambda b, h, q, k: (q >= k) & (q - k < 3),
    "of heads": lambda b, h, q, k: (q >= k) & (h > 1) | (q == k),
    "of batches": lambda b, h, q, k: k < LENGTHS[b],
    "documents": lambda b, h, q, k: DOCUMENTS[q] == DOCUMENTS[k],
    "queries only": lambda b, h, q, k: q > 11,
    "nothing for some": lambda b, h, q, k: q > k + 6,
    "none": None,
}
SCORES = {
    "none": None,
    "slopes": lambda s, b, h, q, k: s - SLOPES[h] * (q - k).abs(),
    "cap": lambda s, b, h, q, k: (s / 2).tanh() * 2,
}


def computed(monkeypatch, tile, mask, score, group=1, block=4, second=False):
    monkeypatch.setattr(_flexible, "TILE_ELEMENTS", tile)
    weft.manual_seed(0)
    q, k, v = (weft.randn(2, heads, 20, 4, dtype=weft.float64) for heads in (4, 4 // group, 4 // group))
    given = [each.requires_grad_() for each in (q, k, v)]
    block_mask = mask and create_block_mask(mask, 2, 4, 20, 20, BLOCK_SIZE=block)
    result, lse = flex_attention(*given, score, block_mask, enable_gqa=group > 1, return_lse=True)
    total = result.square().sum() + lse.clamp(min=-5).sum()
    pulled = weft.autograd.grad(total, given, create_graph=second)
    found = [result, lse, *pulled]
    return (
        found + list(weft.autograd.grad(sum(each.square().sum() for each in pulled), given))
        if second
        else found
    )


def assert_same(own, reference):
    for mine, theirs in zip(own, reference, strict=True):
        weft.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("score", SCORES)
def test_results_and_gradients(monkeypatch, mask, score):
    reference = computed(monkeypatch, 1 << 20, MASKS[mask], SCORES[score])
    for tile in (16, 90, 500):
        assert_same(computed(monkeypatch, tile, MASKS[mask], SCORES[score]), reference)


@pytest.mark.parametrize("tile", [16, 90, 500])
def test_shared_heads_large_blocks_and_second_derivatives(monkeypatch, tile):
    for options in ({"group": 2}, {"block": (8, 3)}, {"block": 128}, {"second": True}):
        reference = computed(monkeypatch, 1 << 20, MASKS["window"], SCORES["cap"], **options)
        assert_same(computed(monkeypatch, tile, MASKS["window"], SCORES["cap"], **options), reference)


def test_captured_tensors_get_gradients(monkeypatch):
    monkeypatch.setattr(_flexible, "TILE_ELEMENTS", 16)
    slope = weft.ones(4, requires_grad=True)
    q = weft.randn(1, 4, 9, 4)
    flex_attention(q, q, q, lambda s, b, h, i, k: s * slope[h]).square().sum().backward()
    assert slope.grad.abs().min() > 0


def test_what_a_tile_does_not_see_is_not_computed(monkeypatch):
    monkeypatch.setattr(_flexible, "TILE_ELEMENTS", 256)
    asked = []

    def score(s, b, h, q, k):
        asked.append(s.whole.numel())
        return s

    q = weft.randn(1, 1, 64, 4)
    diagonal = create_block_mask(lambda b, h, q, k: q // 8 == k // 8, 1, 1, 64, 64, BLOCK_SIZE=8)
    with weft.no_grad():
        flex_attention(q, q, q, score, diagonal)
    assert sum(asked) == 64 * 8


def test_lists_that_do_not_stem_from_the_function_count_for_nothing(monkeypatch):
    """As in eager PyTorch, mask_mod alone decides."""
    q = weft.randn(1, 1, 16, 4)
    counts, lists = weft.ones(1, 1, 2, dtype=weft.int32), weft.zeros(1, 1, 2, 2, dtype=weft.int32)
    block_mask = BlockMask.from_kv_blocks(counts, lists, BLOCK_SIZE=8, mask_mod=MASKS["causal"])
    changed = create_block_mask(MASKS["window"], 1, 1, 16, 16, BLOCK_SIZE=8)
    changed.mask_mod = MASKS["causal"]
    expected = weft.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    monkeypatch.setattr(_flexible, "TILE_ELEMENTS", 16)
    for each in (block_mask, changed):
        weft.testing.assert_close(flex_attention(q, q, q, block_mask=each), expected)
