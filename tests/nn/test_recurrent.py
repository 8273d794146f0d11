"""Recurrent layers over padded and packed sequences, and the functions beneath them."""

import layers
import oracle
import pytest
import torch

import weft
from weft.nn.utils import rnn

CALLS = [
    "RNN(3, 4)",
    "RNN(3, 4, 2, 'relu', batch_first=True, bidirectional=True)",
    "LSTM(3, 4, 2, batch_first=True)",
    "LSTM(3, 4, bias=False, bidirectional=True, proj_size=2)",
    "GRU(3, 4, 2)",
    "GRU(3, 4, 2, batch_first=True, dropout=0.4, bidirectional=True)",
]
LENGTHS = [2, 5, 1, 5, 3]


def pair(call):
    return layers.build(weft, call), layers.build(torch, call)


def states(call, batch):
    """Initial states that suit the layer, as it takes them."""
    layer = layers.build(torch, call)
    count = layer.num_layers * (1 + layer.bidirectional)
    h = torch.randn(count, batch, layer.proj_size or layer.hidden_size)
    return (h, torch.randn(count, batch, layer.hidden_size)) if layer.mode == "LSTM" else h


def same_packed(got, expected):
    for one, other in zip(got, expected, strict=True):
        layers.close(one, other)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("enforce_sorted", [False, True])
def test_packed_sequences(call, given, enforce_sorted):
    mine, theirs = pair(call)
    lengths = sorted(LENGTHS, reverse=True) if enforce_sorted else LENGTHS
    padded = torch.randn(5, 5, 3)
    hx = states(call, 5) if given else None
    first = theirs.batch_first
    expected_in = torch.nn.utils.rnn.pack_padded_sequence(padded, lengths, first, enforce_sorted)
    got_in = rnn.pack_padded_sequence(oracle.to_weft(padded), lengths, first, enforce_sorted)
    same_packed(got_in, expected_in)
    weft.manual_seed(4), torch.manual_seed(4)
    expected, expected_state = theirs(expected_in, hx)
    got, state = mine(got_in, oracle.converted(hx))
    assert type(got) is rnn.PackedSequence
    same_packed(got, expected)
    layers.close(state, expected_state)
    expected.data.pow(2).sum().backward()
    got.data.pow(2).sum().backward()
    for one, other in zip(mine.parameters(), theirs.parameters(), strict=True):
        layers.close(one.grad, other.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("call", CALLS)
def test_initial_states(call):
    mine, theirs = pair(call)
    mine.eval(), theirs.eval()
    input = torch.randn(5, 5, 3)
    for hx in (states(call, 5), states(call, 1)):
        if (hx[0] if isinstance(hx, tuple) else hx).size(1) == 1:  # without a batch dim
            input = input[:, 0]
            hx = tuple(each[:, 0] for each in hx) if isinstance(hx, tuple) else hx[:, 0]
        layers.close(mine(oracle.to_weft(input), oracle.converted(hx)), theirs(input, hx))


@pytest.mark.parametrize("call", ["LSTM(3, 4, 2)", "GRU(3, 4)", "RNN(3, 4)"])
@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_dtypes(call, dtype):
    mine, theirs = pair(call)
    mine.to(getattr(weft, dtype)), theirs.to(getattr(torch, dtype))
    input = torch.randn(5, 2, 3, dtype=getattr(torch, dtype))
    tolerance = 1e-12 if dtype == "float64" else 2e-2
    layers.close(mine(oracle.to_weft(input)), theirs(input), rtol=tolerance, atol=tolerance)


def test_functions_take_sequences_and_packed_data():
    data, sizes = torch.randn(9, 3), torch.tensor([4, 3, 2])
    for name, call in (
        ("rnn_tanh", "RNN(3, 4)"),
        ("rnn_relu", "RNN(3, 4)"),
        ("gru", "GRU(3, 4, 2, bidirectional=True)"),
        ("lstm", "LSTM(3, 4, 2)"),
    ):
        layer = layers.build(torch, call)
        params = [each.detach() for each in layer.parameters()]
        options = (True, layer.num_layers, 0.0, False, layer.bidirectional)
        hx = states(call, 4)
        oracle.check(name, torch.randn(5, 4, 3), hx, params, *options, False)
        oracle.check(name, torch.randn(4, 5, 3), hx, params, *options, True)
        oracle.check(name, data, sizes, hx, params, *options)


@pytest.mark.parametrize("name, gates", [("rnn_tanh", 1), ("rnn_relu", 1), ("gru", 3), ("lstm", 4)])
def test_cells(name, gates):
    input, h, c = torch.randn(2, 3), torch.randn(2, 4), torch.randn(2, 4)
    weights = torch.randn(4 * gates, 3), torch.randn(4 * gates, 4)
    biases = torch.randn(4 * gates), torch.randn(4 * gates)
    hx = (h, c) if name == "lstm" else h
    oracle.check(f"{name}_cell", input, hx, *weights, *biases)
    oracle.check(f"{name}_cell", input, hx, *weights)


def test_lstm_checks_both_states():
    lstm = weft.nn.LSTM(2, 3)
    zeros = weft.zeros
    for input, h, c, message in (
        ((4, 1, 2), (1, 2, 3), (1, 2, 3), r"Expected hidden\[0\] size \(1, 1, 3\), got \[1, 2, 3\]"),
        ((4, 1, 2), (1, 1, 3), (1, 1, 4), r"Expected hidden\[1\] size \(1, 1, 3\), got \[1, 1, 4\]"),
        (
            (4, 2),
            (1, 1, 3),
            (1, 3),
            r"For unbatched 2-D input, hx and cx should also be 2-D but got \(3-D, 2-D\)",
        ),
        (
            (4, 1, 2),
            (1, 3),
            (1, 3),
            r"For batched 3-D input, hx and cx should also be 3-D but got \(2-D, 2-D\)",
        ),
    ):
        with pytest.raises(RuntimeError, match=message):
            lstm(zeros(input), (zeros(h), zeros(c)))
    with pytest.raises(ValueError, match="does not match weight dtype"):
        lstm(zeros(4, 1, 2, dtype=weft.float64))


def test_parameters_may_be_replaced():
    layer = weft.nn.GRU(2, 3)
    input = weft.randn(4, 1, 2)
    before = layer(input)[0]
    layer.weight_ih_l0 = weft.nn.Parameter(layer.weight_ih_l0.detach() * 2)
    assert not (layer(input)[0] == before).all()
    assert layer.all_weights[0][0] is layer.weight_ih_l0
    layer.flatten_parameters()
