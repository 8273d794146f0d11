"""flex_attention and BlockMask against PyTorch's, which takes everything as it is written with one scalar."""

import pytest
import torch
import torch.nn.attention.flex_attention as reference_module

import weft
from weft.nn.attention import flex_attention as own_module

# PyTorch compiles unless this says otherwise, which takes seconds for each function.
reference_module._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True
pytestmark = pytest.mark.filterwarnings(
    "ignore:flex_attention called without", "ignore:return_lse is deprecated"
)


def tensors(*shapes, dtype="float32", seed=0):
    torch.manual_seed(seed)
    made = [torch.randn(*shape).to(getattr(torch, dtype)) for shape in shapes]
    return made, [weft.tensor(each.float().numpy()).to(getattr(weft, dtype)) for each in made]


def array(x):
    return x.detach().float().cpu().numpy() if not x.dtype.is_complex else x.detach().numpy()


def assert_same(own, reference, tolerance=2e-6):
    assert str(own.dtype).split(".")[-1] == str(reference.dtype).split(".")[-1]
    assert tuple(own.shape) == tuple(reference.shape)
    close = torch.allclose(
        torch.from_numpy(array(own).copy()),
        reference.detach().float(),
        rtol=tolerance,
        atol=tolerance,
        equal_nan=True,
    )
    assert close, f"{own}\n{reference}"


def causal(b, h, q, k):
    return q >= k


def window(b, h, q, k):
    return (q - k <= 3) & (k - q <= 3)


MASKS = {
    "causal": lambda lib: causal,
    "window": lambda lib: window,
    "of heads": lambda lib: lambda b, h, q, k: (q + h) % 3 >= k % (b + 2),
    "documents": lambda lib: (lambda ids: lambda b, h, q, k: (ids[q] == ids[k]) & (q >= k))(
        lib.tensor([0] * 5 + [1] * 4 + [2] * 4)
    ),
    "lengths": lambda lib: (lambda n: lambda b, h, q, k: k < n[b])(lib.tensor([4, 9])),
    "nothing for some": lambda lib: lambda b, h, q, k: q > k + 4,
    "none": lambda lib: None,
}
SCORES = {
    "none": lambda lib: None,
    "distance": lambda lib: lambda s, b, h, q, k: s + (k - q) * 0.25,
    "alibi": lambda lib: (lambda slope: lambda s, b, h, q, k: s - slope[h] * (q - k).abs())(
        lib.tensor([0.5, 0.25, 0.125, 2.0])
    ),
    "soft cap": lambda lib: lambda s, b, h, q, k: lib.tanh(s / 3) * 3,
    "where": lambda lib: lambda s, b, h, q, k: lib.where(q >= k, s, -float("inf")),
    "table": lambda lib: (lambda t: lambda s, b, h, q, k: s + t[h][q, k])(
        lib.arange(4 * 13 * 13).reshape(4, 13, 13) % 7 / 3.0
    ),
    "products": lambda lib: (lambda t: lambda s, b, h, q, k: s + (t[q] * t[k]).sum())(
        lib.arange(13 * 2).reshape(13, 2) % 5 / 4.0
    ),
    "double scalar": lambda lib: (lambda t: lambda s, b, h, q, k: s * t)(lib.tensor(1.5, dtype=lib.float64)),
    "indices only": lambda lib: lambda s, b, h, q, k: q,
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("score", SCORES)
def test_results_are_pytorchs(score, mask):
    reference_in, own_in = tensors((2, 4, 13, 8), (2, 4, 13, 8), (2, 4, 13, 5))
    found = []
    for lib, module, given in ((torch, reference_module, reference_in), (weft, own_module, own_in)):
        mask_mod = MASKS[mask](lib)
        block = mask_mod and module.create_block_mask(mask_mod, 2, 4, 13, 13, device="cpu", BLOCK_SIZE=4)
        found.append(module.flex_attention(*given, SCORES[score](lib), block, return_lse=True))
    for own, reference in zip(found[1], found[0], strict=True):
        assert_same(own, reference)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
def test_dtypes_and_shared_heads(dtype):
    reference_in, own_in = tensors((2, 6, 9, 8), (2, 2, 11, 8), (2, 2, 11, 4), dtype=dtype)
    found = []
    for module, given in ((reference_module, reference_in), (own_module, own_in)):
        block = module.create_block_mask(window, None, None, 9, 11, device="cpu")
        aux = module.AuxRequest(lse=True)
        result, aux = module.flex_attention(
            *given, block_mask=block, scale=0.3, enable_gqa=True, return_aux=aux
        )
        assert aux.max_scores is None
        found.append((result, aux.lse))
    for own, reference in zip(found[1], found[0], strict=True):
        assert_same(own, reference, 1e-2 if dtype in ("bfloat16", "float16") else 2e-6)


def test_gradients_reach_inputs_and_captured_tensors():
    (q, k, v), own = tensors((1, 2, 6, 4), (1, 2, 6, 4), (1, 2, 6, 4))
    table = torch.linspace(-1, 1, 11)
    leaves = [each.clone().requires_grad_() for each in (q, k, v, table)]
    at = torch.arange(6)
    scores = leaves[0] @ leaves[1].mT / 2 + leaves[3][at[:, None] - at + 5]
    scores = scores.masked_fill(at[:, None] < at, -float("inf"))
    (scores.softmax(-1) @ leaves[2]).square().sum().backward()

    own_leaves = [each.clone().requires_grad_() for each in (*own, weft.linspace(-1, 1, 11))]
    block = own_module.create_block_mask(causal, None, None, 6, 6)
    bias = lambda s, b, h, q, k: s + own_leaves[3][q - k + 5]  # noqa: E731
    own_module.flex_attention(*own_leaves[:3], bias, block).square().sum().backward()
    for mine, theirs in zip(own_leaves, leaves, strict=True):
        assert_same(mine.grad, theirs.grad)


def test_a_query_that_sees_nothing_has_gradients_without_nan():
    x = weft.randn(1, 1, 4, 4, requires_grad=True)
    block = own_module.create_block_mask(lambda b, h, q, k: q > k, 1, 1, 4, 4)
    result, lse = own_module.flex_attention(x, x, x, block_mask=block, return_lse=True)
    assert result[0, 0, 0].tolist() == [0] * 4 and lse[0, 0, 0] == -float("inf")
    (result.sum() + lse[..., 1:].sum()).backward()
    assert not x.grad.isnan().any()


BLOCKS = {
    "causal": (causal, (2, 4, 200, 200), 128),
    "uneven": (window, (1, 2, 70, 90), (16, 8)),
    "of heads": (lambda b, h, q, k: (q >= k) & (h < b + 1), (2, 3, 64, 64), (16, 32)),
    "nothing": (lambda b, h, q, k: q < 0, (None, None, 40, 40), 16),
    "everything": (lambda b, h, q, k: q >= 0, (None, 2, 64, 32), 16),
    "many": (causal, (1, 6, 640, 640), 16),
}


def both_masks(name, **options):
    function, sizes, size = BLOCKS[name]
    return [
        module.create_block_mask(function, *sizes, device="cpu", BLOCK_SIZE=size, **options)
        for module in (own_module, reference_module)
    ]


def assert_same_masks(own, reference):
    assert repr(own) == repr(reference)
    assert str(own) == str(reference)
    assert own.to_string() == reference.to_string()
    assert own.to_string(grid_size=(5, 3), limit=1) == reference.to_string(grid_size=(5, 3), limit=1)
    assert own.to_string(-1) == reference.to_string(-1)
    assert (own.shape, own.numel(), own.sparsity()) == (
        tuple(reference.shape),
        reference.numel(),
        reference.sparsity(),
    )
    assert own.to_dense().tolist() == reference.to_dense().tolist()
    for mine, theirs in zip(own.as_tuple(), reference.as_tuple(), strict=True):
        if isinstance(theirs, torch.Tensor):
            assert mine.tolist() == theirs.tolist() and str(mine.dtype) == str(theirs.dtype).replace(
                "torch.", "torch."
            )
        elif not callable(theirs):
            assert mine == theirs
    assert len(own.as_tuple(flatten=False)) == len(reference.as_tuple(flatten=False))


@pytest.mark.parametrize("name", BLOCKS)
def test_block_masks_are_pytorchs(name):
    assert_same_masks(*both_masks(name))
    assert_same_masks(*both_masks(name, separate_full_blocks=False))


@pytest.mark.parametrize(
    "index", [0, -1, (0, 1), (slice(None), slice(0, 1)), (0, 1, 2), (slice(None), slice(None), slice(1, 3))]
)
def test_parts_of_block_masks(index):
    own, reference = both_masks("of heads")
    assert_same_masks(own[index], reference[index])
    with pytest.raises(RuntimeError, match="sliced BlockMask"):
        own[index].mask_mod(0, 0, 0, 0)


@pytest.mark.parametrize("sizes", [(256, 256), (640, 640), (33, 640)])
def test_adjusted_block_masks(sizes):
    own, reference = both_masks("many")
    assert_same_masks(own._adjust(*sizes), reference._adjust(*sizes))


def test_columns_that_are_cut_off_are_not_counted():
    """PyTorch counts some of them (row 5 has a block of its own beyond column 4)."""
    own = own_module.create_block_mask(causal, 1, 1, 96, 96, BLOCK_SIZE=16)._adjust(96, 64)
    assert (
        own.to_dense().tolist()
        == own_module.create_block_mask(causal, 1, 1, 96, 64, BLOCK_SIZE=16).to_dense().tolist()
    )


def test_from_kv_blocks():
    for options in ({}, {"seq_lengths": (100, 60), "BLOCK_SIZE": (64, 32)}, {"compute_q_blocks": False}):
        own, reference = (
            module.BlockMask.from_kv_blocks(
                lib.tensor([[[1, 2]]], dtype=lib.int32),
                lib.tensor([[[[0, 1], [1, 0]]]], dtype=lib.int32),
                **options,
            )
            for lib, module in ((weft, own_module), (torch, reference_module))
        )
        assert_same_masks(own, reference)
    counts = weft.tensor([[[1, 2]]])
    with pytest.raises(AssertionError):
        own_module.BlockMask.from_kv_blocks(counts, counts, full_kv_num_blocks=counts)
    with pytest.raises(RuntimeError):
        own_module.BlockMask.from_kv_blocks(counts[0, 0, 0], counts[0, 0, 0])


def test_masks_from_functions():
    assert (
        own_module.create_mask(causal, None, 2, 3, 4).tolist()
        == reference_module.create_mask(causal, None, 2, 3, 4, "cpu").tolist()
    )
    hidden = lambda lib: lambda s, b, h, q, k: lib.where(q >= k, s, -float("inf"))  # noqa: E731
    assert (
        own_module.create_mask(hidden(weft), 1, 2, 3, 4).tolist()
        == reference_module.create_mask(hidden(torch), 1, 2, 3, 4, "cpu").tolist()
    )
    for name in ("or_masks", "and_masks"):
        own, reference = (
            module.create_mask(getattr(module, name)(causal, window), 1, 1, 9, 9, "cpu")
            for module in (own_module, reference_module)
        )
        assert own.tolist() == reference.tolist()
        with pytest.raises(RuntimeError, match="callable"):
            getattr(own_module, name)(causal, 3)


Q = (2, 4, 8, 16)
ERRORS = {
    "three dims": lambda m, q, lib: m.flex_attention(q[0], q, q),
    "heads": lambda m, q, lib: m.flex_attention(q, q[:, :2], q[:, :2]),
    "heads that do not divide": lambda m, q, lib: m.flex_attention(q, q[:, :3], q[:, :3], enable_gqa=True),
    "features": lambda m, q, lib: m.flex_attention(q, q[..., :8], q),
    "batches": lambda m, q, lib: m.flex_attention(q, q[:1], q[:1]),
    "longer mask": lambda m, q, lib: m.flex_attention(
        q[:, :, :4], q, q, block_mask=m.create_block_mask(causal, 1, 1, 8, 8, "cpu")
    ),
    "shorter mask": lambda m, q, lib: m.flex_attention(
        q, q, q, block_mask=m.create_block_mask(causal, 1, 1, 4, 4, "cpu")
    ),
    "both kinds of aux": lambda m, q, lib: m.flex_attention(
        q, q, q, return_lse=True, return_aux=m.AuxRequest(lse=True)
    ),
    "an if": lambda m, q, lib: m.flex_attention(q, q, q, lambda s, b, h, i, k: s if i > 2 else s * 2),
    "an item": lambda m, q, lib: m.flex_attention(q, q, q, lambda s, b, h, i, k: s.item()),
    "a number": lambda m, q, lib: m.flex_attention(q, q, q, lambda s, b, h, i, k: 3.0),
    "few arguments": lambda m, q, lib: m.flex_attention(q, q, q, lambda s, b, h: s),
    "random": lambda m, q, lib: m.flex_attention(q, q, q, lambda s, b, h, i, k: s + lib.rand_like(s)),
    "a vector": lambda m, q, lib: m.flex_attention(q, q, q, lambda s, b, h, i, k: s + lib.ones(3)),
    "option": lambda m, q, lib: m.flex_attention(q, q, q, kernel_options={"OUTPUT_LOGSUMEXP": True}),
    "mask of a part": lambda m, q, lib: m.flex_attention(
        q, q, q, block_mask=m.create_block_mask(causal, 2, 4, 8, 8, "cpu")[0]
    ),
    "score_mod as mask_mod": lambda m, q, lib: m.create_block_mask(
        lambda s, b, h, i, k: s, 1, 1, 8, 8, "cpu"
    ),
    "mask of numbers": lambda m, q, lib: m.create_block_mask(lambda b, h, i, k: i - k, 1, 1, 8, 8, "cpu"),
    "two arguments": lambda m, q, lib: m.create_mask(lambda a, b: a, 1, 1, 8, 8, "cpu"),
    "no function": lambda m, q, lib: m.create_block_mask(3, 1, 1, 8, 8, "cpu"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_have_pytorchs_types(name):
    with pytest.raises(Exception) as reference:  # noqa: PT011
        ERRORS[name](reference_module, torch.zeros(Q), torch)
    with pytest.raises(reference.type):
        ERRORS[name](own_module, weft.zeros(Q), weft)
