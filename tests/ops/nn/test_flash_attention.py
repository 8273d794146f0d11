"""Attention in blocks: however small they are, values and gradients are those of the whole."""

import pytest
import torch

import weft
from weft.ops.nn import flash_attention as blockwise

LENGTH, KEYS = 5, 6


def numbers(*shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def attended(torch, operands, mask, causal):
    operands = [each.requires_grad_() for each in operands]
    result = torch.nn.functional.scaled_dot_product_attention(*operands, mask, is_causal=causal)
    return [result, *torch.autograd.grad(result.sin().sum(), operands)]


@pytest.mark.parametrize("elements", [1, 7, 30, 31, 60, 100, 1000])
@pytest.mark.parametrize("batch", [(), (3,), (2, 3), (2, 1, 2)])
@pytest.mark.parametrize("kind", ["all", "causal", "mask", "mask of each"])
def test_blocks(monkeypatch, elements, batch, kind):
    monkeypatch.setattr(blockwise, "BLOCK_ELEMENTS", elements)
    operands = [numbers(*batch, n, 4, seed=seed) for seed, n in enumerate((LENGTH, KEYS, KEYS))]
    mask = None
    if "mask" in kind:
        mask = numbers(*(batch if "each" in kind else ()), LENGTH, KEYS, seed=9) > -1
    ours = [weft.from_numpy(each.numpy().copy()) for each in operands]
    own_mask = None if mask is None else weft.from_numpy(mask.numpy())
    expected = attended(torch, operands, mask, kind == "causal")
    for found, wanted in zip(attended(weft, ours, own_mask, kind == "causal"), expected, strict=True):
        torch.testing.assert_close(torch.from_numpy(found.detach().numpy()), wanted.detach())


@pytest.mark.parametrize("elements", [1, 50, 1000])
def test_each_weight_is_in_one_block(monkeypatch, elements):
    monkeypatch.setattr(blockwise, "BLOCK_ELEMENTS", elements)
    query, key = weft.zeros(2, 3, LENGTH, 1), weft.zeros(2, 3, KEYS, 1)
    done = weft.zeros(2, 3, LENGTH, KEYS)
    for block in blockwise._blocks[query.spec, key.spec, False, blockwise.BLOCK_ELEMENTS]:
        block.of_queries(done).narrow(-1, 0, block.keys).add_(1)
    assert (done == 1).all()
