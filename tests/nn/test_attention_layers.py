"""Masks and options of attention and transformers."""

import copy
import math

import layers
import oracle
import pytest
import torch

import weft

CAUSAL = torch.ones(5, 5, dtype=torch.bool).triu(1)
PADDING = torch.tensor([[False] * 5, [False, False, False, True, True]])


def agree(call, *args, training=False, **kwargs):
    mine, theirs = layers.build(weft, call), layers.build(torch, call)
    mine.train(training), theirs.train(training)
    weft.manual_seed(3), torch.manual_seed(3)
    got = mine(*oracle.converted(args), **{name: oracle.converted(value) for name, value in kwargs.items()})
    expected = theirs(*args, **kwargs)
    layers.close(got, expected)
    return got, expected


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {"attn_mask": CAUSAL},
        {"attn_mask": CAUSAL, "is_causal": True},
        {"attn_mask": torch.randn(5, 5)},
        {"attn_mask": torch.randn(4, 5, 5)},
        {"key_padding_mask": PADDING},
        {"key_padding_mask": PADDING, "attn_mask": CAUSAL},
        {"key_padding_mask": torch.where(PADDING, -math.inf, 0.0), "attn_mask": torch.randn(5, 5)},
        {"average_attn_weights": False},
    ],
)
def test_masks(options, need_weights):
    x = torch.randn(5, 2, 8)
    for call in (
        "MultiheadAttention(8, 2)",
        "MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True)",
    ):
        agree(call, x, x, x, need_weights=need_weights, **options)
        agree(call, x, x, x, need_weights=need_weights, training=True, **options)
    x = x.transpose(0, 1)
    agree("MultiheadAttention(8, 2, batch_first=True)", x, x, x, need_weights=need_weights, **options)


def test_unbatched_masks():
    x = torch.randn(5, 8)
    agree("MultiheadAttention(8, 2)", x, x, x, attn_mask=CAUSAL, key_padding_mask=PADDING[1])
    agree("MultiheadAttention(8, 2, batch_first=True)", x, x, x, need_weights=False)


@pytest.mark.parametrize("shapes", [("5,2,8", "5,8", "5,2,8"), ("2,5,2,8",) * 3, ("5,2,6",) * 3])
def test_wrong_shapes(shapes):
    inputs = layers.inputs_of(list(shapes))
    for library in (torch, weft):
        with pytest.raises(AssertionError):
            layers.call(library, layers.build(library, "MultiheadAttention(8, 2)"), inputs)


def test_causal_hint_needs_a_mask():
    x = weft.randn(5, 2, 8)
    with pytest.raises(RuntimeError, match="Need attn_mask if specifying the is_causal hint"):
        weft.nn.MultiheadAttention(8, 2)(x, x, x, is_causal=True, need_weights=False)


ENCODER = "TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True{}), 2{})"


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("more", [("", ""), (", norm_first=True", ""), ("", ", torch.nn.LayerNorm(8)")])
def test_encoder(more, training):
    x = torch.randn(2, 5, 8)
    call = ENCODER.format(*more)
    agree(call, x, training=training, mask=CAUSAL)
    agree(
        call,
        x,
        training=training,
        mask=torch.nn.Transformer.generate_square_subsequent_mask(5),
        is_causal=True,
    )
    agree(call, x, training=training, src_key_padding_mask=PADDING)
    agree(call, x, training=training, mask=CAUSAL, src_key_padding_mask=PADDING)


def test_padded_places_are_zero_in_evaluation_without_gradients():
    x = torch.randn(2, 5, 8)
    with weft.no_grad(), torch.no_grad():
        got, expected = agree(ENCODER.format("", ""), x, src_key_padding_mask=PADDING)
        assert not expected[1, 3:].any() and not got[1, 3:].any()
        agree(ENCODER.format("", ""), x, src_key_padding_mask=PADDING.flip(1))  # not at the end
        agree(ENCODER.format("", ", enable_nested_tensor=False"), x, src_key_padding_mask=PADDING)
        agree(ENCODER.format(", norm_first=True", ""), x, src_key_padding_mask=PADDING)


@pytest.mark.parametrize("training", [True, False])
def test_decoder_and_transformer(training):
    tgt, memory = torch.randn(2, 5, 8), torch.randn(2, 4, 8)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5)
    agree(
        "TransformerDecoder(torch.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 2)",
        tgt,
        memory,
        training=training,
        tgt_mask=mask,
        memory_mask=torch.randn(5, 4),
        tgt_is_causal=True,
        memory_key_padding_mask=torch.where(PADDING[:, 1:], -math.inf, 0.0),
    )
    agree(
        "Transformer(8, 2, 2, 2, 16, batch_first=True)",
        memory,
        tgt,
        training=training,
        tgt_mask=mask,
        src_key_padding_mask=PADDING[:, 1:],
        memory_key_padding_mask=PADDING[:, 1:],
        tgt_is_causal=True,
    )


def test_square_subsequent_mask():
    for options in ({}, {"dtype": "float64"}):
        mine, theirs = (
            library.nn.Transformer.generate_square_subsequent_mask(
                4, **{name: getattr(library, value) for name, value in options.items()}
            )
            for library in (weft, torch)
        )
        oracle.assert_same(mine, theirs)


def test_layers_of_a_stack_are_copies():
    layer = weft.nn.TransformerEncoderLayer(8, 2, 16)
    stack = weft.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    first, second = (each.linear1.weight for each in stack.layers)
    assert (first == second).all() and first.data_ptr() != second.data_ptr()
    assert (copy.deepcopy(stack).layers[0].linear1.weight == layer.linear1.weight).all()
