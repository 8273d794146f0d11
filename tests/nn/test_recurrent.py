"""Recurrent layers over padded and packed sequences, and the functions beneath them."""

import layers
import oracle
import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st

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
@pytest.mark.parametrize("with_state", [False, True])
@pytest.mark.parametrize("enforce_sorted", [False, True])
def test_packed_sequences(call, with_state, enforce_sorted):
    mine, theirs = pair(call)
    lengths = sorted(LENGTHS, reverse=True) if enforce_sorted else LENGTHS
    padded = torch.randn(5, 5, 3)
    hx = states(call, 5) if with_state else None
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


# Under autocast, PyTorch runs an LSTM without projections in oneDNN's bfloat16. On processors where oneDNN has no
# bfloat16, PyTorch raises instead, so there only weft is asked.
@pytest.mark.parametrize(
    "call, packed, expected",
    [
        ("LSTM(3, 4)", False, "bfloat16 bfloat16 bfloat16"),
        ("LSTM(3, 4)", True, "float32 float32 float32"),
        ("LSTM(3, 4, 2, bidirectional=True, bias=False)", False, "bfloat16 bfloat16 bfloat16"),
        ("LSTM(3, 4, 4, proj_size=2)", False, "bfloat16 bfloat16 float32"),
        ("LSTM(3, 4, dtype=lib.float16)", False, "float32 float32 float32"),
        ("GRU(3, 4)", False, "float32 float32"),
        ("RNN(3, 4)", False, "bfloat16 bfloat16"),
    ],
)
def test_dtypes_under_autocast(call, packed, expected):
    in_onednn = expected == "bfloat16 bfloat16 bfloat16"
    for lib in [weft] if in_onednn and not torch.ops.mkldnn._is_mkldnn_bf16_supported() else [weft, torch]:
        layer = eval(f"lib.nn.{call}")
        input = lib.zeros(5, 2, 3, dtype=layer.weight_ih_l0.dtype)
        if packed:
            input = lib.nn.utils.rnn.pack_sequence([input[:, 0], input[:2, 0]])
        with lib.autocast("cpu"):
            output, state = layer(input)
        output = output.data if packed else output
        states = state if isinstance(state, tuple) else [state]
        assert [str(each.dtype).removeprefix("torch.") for each in (output, *states)] == expected.split()


def test_autocast_takes_the_results_of_other_layers():
    """Their dtype is that of autocast, and not that of the weights."""
    for call in ("GRU(3, 4)", "RNN(3, 4)"):
        dtypes = []
        for lib in (weft, torch):
            with lib.autocast("cpu"):
                output, _ = eval(f"lib.nn.{call}")(lib.nn.Linear(2, 3)(lib.ones(5, 1, 2)))
            dtypes.append(str(output.dtype))
        assert dtypes[0] == dtypes[1]


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


# ---- Derivatives ----------------------------------------------------------------------------------------------------

KINDS = ["RNN", "LSTM", "GRU"]


@st.composite
def networks(draw):
    """A layer's call, the lengths of its sequences (None: not packed), and what is differentiated."""
    kind = draw(st.sampled_from(KINDS))
    options = {
        "num_layers": draw(st.sampled_from([1, 1, 2])),
        "bias": draw(st.booleans()),
        "batch_first": draw(st.booleans()),
        "bidirectional": draw(st.booleans()),
    }
    if kind == "RNN":
        options["nonlinearity"] = draw(st.sampled_from(["tanh", "relu"]))
    if kind == "LSTM":
        options["proj_size"] = draw(st.sampled_from([0, 0, 2]))
    n_steps = draw(st.sampled_from([1, 2, 5]))
    lengths = [n_steps, *draw(st.lists(st.integers(1, n_steps), max_size=3))]
    text = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return f"{kind}(3, 4, {text}, dtype=torch.float64)", lengths, draw(st.booleans()), draw(st.booleans())


def run(library, net, input, hx, lengths):
    """The output and the states, smoothly made one number."""
    if lengths is not None:
        input = library.nn.utils.rnn.pack_padded_sequence(
            input, lengths, net.batch_first, enforce_sorted=False
        )
    output, state = net(input, hx)
    output = output if lengths is None else output.data
    results = [output, *(state if isinstance(state, tuple) else (state,))]
    return sum((each * each.sin()).sum() for each in results)


def two_derivatives(library, net, input, hx, lengths):
    """Gradients, recorded and not, and gradients of their squares."""
    leaves = [input, *(hx if isinstance(hx, tuple) else [hx] * (hx is not None)), *net.parameters()]
    leaves = [each.requires_grad_() for each in leaves]
    first = library.autograd.grad(run(library, net, input, hx, lengths), leaves)
    recorded = library.autograd.grad(run(library, net, input, hx, lengths), leaves, create_graph=True)
    second = library.autograd.grad(sum((each * each).sum() for each in recorded), leaves)
    return [*first, *recorded, *second]


@given(networks(), st.integers(0, 2**31))
@settings(max_examples=40, deadline=None)
def test_first_and_second_derivatives(network, seed):
    call, lengths, is_packed, has_state = network
    torch.manual_seed(seed)
    mine, theirs = pair(call)
    shape = (len(lengths), lengths[0], 3) if theirs.batch_first else (lengths[0], len(lengths), 3)
    input = torch.randn(shape, dtype=torch.float64)
    hx = None
    if has_state:
        hx = states(call, len(lengths))
        hx = tuple(each.double() for each in hx) if isinstance(hx, tuple) else hx.double()
    own_input, own_hx = oracle.to_weft(input), oracle.converted(hx)
    lengths = lengths if is_packed else None
    expected = two_derivatives(torch, theirs, input, hx, lengths)
    got = two_derivatives(weft, mine, own_input, own_hx, lengths)
    for one, other in zip(got, expected, strict=True):
        layers.close(one, other, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("call", [*(f"{kind}({{}}, {{}})" for kind in KINDS), "LSTM({}, {}, proj_size=3)"])
@pytest.mark.parametrize("large", [False, True])
def test_a_layer_is_one_step(call, large):
    """Also where products are so large that they are shared among threads."""
    sizes = (7, 33, 64, 96) if large else (7, 3, 2, 4)
    mine, theirs = pair(call.format(*sizes[2:]))
    input = torch.randn(sizes[:3])
    output, _ = mine(own := oracle.to_weft(input).requires_grad_())
    edges = output.grad_fn.next_functions
    assert {node.name() for node, _ in edges if node} == {"torch::autograd::AccumulateGrad"}
    expected = theirs(input.requires_grad_())[0]
    layers.close(output, expected, rtol=1e-5, atol=1e-5)
    output.sin().sum().backward(), expected.sin().sum().backward()
    for one, other in zip([own, *mine.parameters()], [input, *theirs.parameters()], strict=True):
        layers.close(one.grad, other.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("call", [*(f"{kind}(3, 4)" for kind in KINDS), "LSTM(3, 4, proj_size=2)"])
@pytest.mark.parametrize("n_steps", [1, 6])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradients_of_narrow_floats(call, n_steps, dtype):
    """They are those of float32, rounded."""
    narrow = layers.build(weft, call).to(getattr(weft, dtype))
    wide = layers.build(weft, call)
    wide.load_state_dict({name: value.float() for name, value in narrow.state_dict().items()})
    input = weft.randn(n_steps, 2, 3).to(getattr(weft, dtype))
    got, expected = narrow(input), wide(input.float())
    got[0].float().sin().sum().backward(), expected[0].sin().sum().backward()
    for one, other in zip(narrow.parameters(), wide.parameters(), strict=True):
        assert one.grad.dtype is one.dtype
        assert weft.allclose(one.grad.float(), other.grad, rtol=0.05, atol=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_forward_mode(kind):
    net = layers.build(weft, f"{kind}(3, 4, dtype=torch.float64)")
    input, tangent = weft.randn(2, 5, 2, 3, dtype=weft.float64)
    function = lambda x: net(x)[0]  # noqa: E731
    _, got = weft.func.jvp(function, (input,), (tangent,))
    step = 1e-6 * tangent
    expected = (function(input + step) - function(input - step)) / 2e-6
    assert weft.allclose(got, expected.detach(), rtol=1e-6, atol=1e-8)


def test_outputs_may_be_overwritten():
    """What backward needs is not the memory that users see."""
    for kind in KINDS:
        net = layers.build(weft, f"{kind}(3, 4)")
        input = weft.randn(5, 2, 3)
        expected = weft.autograd.grad((2 * net(input)[0]).sum(), net.weight_hh_l0)
        got = weft.autograd.grad(net(input)[0].mul_(2).sum(), net.weight_hh_l0)
        assert weft.equal(*got, *expected)


def test_a_sequence_has_a_step():
    with pytest.raises(RuntimeError, match="Expected sequence length to be larger than 0 in RNN"):
        weft.nn.LSTM(2, 3)(weft.zeros(0, 1, 2))


def test_weights_that_do_not_fit_are_refused():
    cell = weft.nn.LSTMCell(2, 3)
    state = weft.zeros(1, 3), weft.zeros(1, 3)
    with pytest.raises(RuntimeError):
        weft.lstm_cell(
            weft.zeros(1, 2), state, cell.weight_ih, cell.weight_hh[:9], cell.bias_ih, cell.bias_hh
        )
    with pytest.raises(RuntimeError):
        weft.lstm_cell(weft.zeros(1, 3), state, cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_states_of_another_number_are_refused(name):
    layer, h = getattr(weft.nn, name)(3, 4, 2), weft.zeros(2, 2, 4)
    x = weft.zeros(5, 2, 3)
    for state in ((h, h, h), (h,), (), (h, None), 5, (h, h) if name != "LSTM" else (h, h, None)):
        with pytest.raises((RuntimeError, TypeError)):
            layer(x, state)


def test_functions_refuse_other_numbers_of_states_and_parameters():
    x, h, weights = weft.zeros(5, 2, 3), weft.zeros(1, 2, 4), [weft.zeros(16, 3), weft.zeros(16, 4)]
    rest = (False, 1, 0.0, False, False, False)
    assert weft.lstm(x, (h, h), weights, *rest)[0].shape == (5, 2, 4)
    for state, parameters in (
        ((h, h, h), weights),
        ((h,), weights),
        ((h, h), weights[:1]),
        ((h, h), [*weights, weights[0], weights[0]]),
    ):
        with pytest.raises(RuntimeError):
            weft.lstm(x, state, parameters, *rest)
    for state in (h, (h, None)):
        with pytest.raises(TypeError):
            weft.lstm(x, state, weights, *rest)
    data, sizes = weft.zeros(4, 3), weft.tensor([5, -1])
    with pytest.raises(RuntimeError):
        weft.lstm(data, sizes, (weft.zeros(1, 5, 4),) * 2, weights, False, 1, 0.0, False, False)


UNFIT = """
torch.nn.GRU(3, 4, bidirectional=2)(torch.ones(5, 2, 3))  # raises
torch.nn.LSTM(3, 4, bidirectional="a")(torch.ones(5, 2, 3))  # raises
torch.nn.RNN(3, 4, batch_first=0.5)(torch.ones(5, 2, 3))  # raises
torch.lstm_cell(torch.ones(2, 3), (torch.ones(1, 2, 4), torch.ones(2, 4)), torch.ones(16, 3), torch.ones(16, 4))  # raises
torch.gru_cell(torch.ones(2, 3), torch.ones(3, 4), torch.ones(12, 3), torch.ones(12, 4))  # raises
torch.gru_cell(torch.ones(2, 3), torch.ones(2, 4), torch.tensor(1.0), torch.ones(12, 4))  # raises
torch.gru_cell(torch.ones(2, 3), torch.ones(2, 4), torch.ones(12, 3), torch.tensor(1.0))  # raises
torch.gru_cell(torch.tensor(1.0), torch.ones(2, 4), torch.ones(12, 3), torch.ones(12, 4))  # raises
torch.gru_cell(torch.ones(2, 2), torch.ones(2, 4), torch.ones(12, 3), torch.ones(12, 4))  # raises
torch.lstm_cell(torch.ones(2, 3), torch.ones(2, 4), torch.ones(16, 3), torch.ones(16, 4))  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)


def test_batches_of_many_sizes():
    """After a few sizes the plans come from templates, and the kernels take other numbers of rows."""
    mine, theirs = pair("LSTM(3, 4, batch_first=True)")
    for lengths in ([k % 3 + n, k + n, n, 1, *[2] * k] for k in range(4) for n in (2, 7, 3)):
        padded = torch.randn(len(lengths), max(lengths), 3, requires_grad=True)
        same = oracle.to_weft(padded.detach()).requires_grad_()
        expected, state = theirs(torch.nn.utils.rnn.pack_padded_sequence(padded, lengths, True, False))
        got, own_state = mine(rnn.pack_padded_sequence(same, lengths, True, False))
        same_packed(got, expected)
        layers.close(own_state, state)
        (expected.data.sin().sum() + state[1].sum()).backward()
        (got.data.sin().sum() + own_state[1].sum()).backward()
        layers.close(same.grad, padded.grad)
        for own, other in zip(mine.parameters(), theirs.parameters(), strict=True):
            layers.close(own.grad, other.grad)
