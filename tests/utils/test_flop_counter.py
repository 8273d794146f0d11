import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode as Reference

import weft
from weft._subclasses.fake_tensor import FakeTensorMode
from weft.utils.flop_counter import FlopCounterMode, register_flop_formula


def network(lib):
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 6, 3)
            self.up = nn.ConvTranspose2d(6, 4, 2)
            self.head = nn.Sequential(nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 2, bias=False))

        def forward(self, x):
            x = self.head(self.up(self.conv(x)))
            return x @ x.transpose(-2, -1)

    return Block()


def names(counts):
    return {module: sum(each.values()) for module, each in counts.items() if each}


def test_counts_are_pytorchs():
    found = []
    for lib, mode in ((weft, FlopCounterMode), (torch, Reference)):
        with mode(display=False) as counter, lib.no_grad():
            network(lib)(lib.ones(2, 3, 8, 8))
            lib.bmm(lib.ones(2, 3, 4), lib.ones(2, 4, 5))
            lib.addmm(lib.ones(2, 2), lib.ones(2, 3), lib.ones(3, 2))
            lib.ones(2, 3) @ lib.ones(3)
        found.append((counter.get_total_flops(), names(counter.get_flop_counts())))
    assert found[0] == found[1]


def test_attention_counts():
    """PyTorch has no formula for the operator that computes attention on a CPU."""
    q, k, v = weft.ones(2, 4, 7, 2), weft.ones(2, 4, 5, 2), weft.ones(2, 4, 5, 3)
    with FlopCounterMode(display=False) as counter:
        weft.nn.functional.scaled_dot_product_attention(q, k, v)
    assert counter.get_total_flops() == 2 * 8 * 7 * 5 * (2 + 3)


ATTENTION = "_scaled_dot_product_flash_attention_for_cpu"


def ones(lib, *sizes):
    return lib.ones(sizes, requires_grad=True)


MODELS = {
    "perceptron": lambda t: t.nn.Sequential(t.nn.Linear(4, 8), t.nn.ReLU(), t.nn.Linear(8, 2))(ones(t, 3, 4)),
    "linear of three dims": lambda t: t.nn.Linear(4, 8, bias=False)(ones(t, 2, 3, 4)),
    "linear of one dim": lambda t: t.nn.functional.linear(ones(t, 3), ones(t, 4, 3), ones(t, 4)),
    "convolutions": lambda t: t.nn.Sequential(t.nn.Conv2d(3, 6, 3, stride=2), t.nn.Conv2d(6, 4, 3, groups=2))(
        ones(t, 2, 3, 8, 8)
    ),
    "same padding": lambda t: t.nn.Conv1d(3, 6, 3, padding="same")(ones(t, 2, 3, 8)),
    "no batch": lambda t: t.nn.Conv2d(3, 6, 3)(ones(t, 3, 5, 5)),
    "transposed": lambda t: t.nn.ConvTranspose2d(3, 6, 3, stride=2)(ones(t, 2, 3, 5, 5)),
    "attention with weights": lambda t: t.nn.MultiheadAttention(8, 2)(*[ones(t, 5, 3, 8)] * 3)[0],
    "attention": lambda t: t.nn.MultiheadAttention(8, 2)(*[ones(t, 5, 3, 8)] * 3, need_weights=False)[0],
    "encoder": lambda t: t.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)(ones(t, 5, 3, 8)),
    "decoder": lambda t: t.nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0)(
        ones(t, 5, 3, 8), ones(t, 4, 3, 8)
    ),
    "gru": lambda t: t.nn.GRU(4, 3, bidirectional=True)(ones(t, 5, 2, 4))[0],
    "rnn": lambda t: t.nn.RNN(4, 3, num_layers=2)(ones(t, 5, 2, 4))[0],
    "cell": lambda t: sum(t.nn.LSTMCell(4, 3)(ones(t, 2, 4))),
    "matmul": lambda t: ones(t, 2, 3, 4, 5) @ ones(t, 2, 1, 5, 6),
    "a matrix and a stack": lambda t: ones(t, 4, 5) @ ones(t, 2, 5, 6),
    "einsum": lambda t: t.einsum("bihd,bjhd->bhij", ones(t, 2, 3, 4, 5), ones(t, 2, 6, 4, 5)),
    "tensordot": lambda t: t.tensordot(ones(t, 2, 3, 4), ones(t, 4, 3, 5), dims=([1, 2], [1, 0])),
    "loss": lambda t: t.nn.CrossEntropyLoss()(t.nn.Linear(3, 4)(ones(t, 5, 3)), t.ones(5, dtype=t.int64)),
}


# PyTorch enters a module in the backward pass only when all of its outputs have gradients.
ENTERED_LATE = ("cell",)


@pytest.mark.parametrize("name", MODELS)
def test_forward_and_backward_counts_by_module_are_pytorchs(name):
    found = []
    for lib, mode in ((weft, FlopCounterMode), (torch, Reference)):
        with mode(display=False) as counter:
            MODELS[name](lib).sum().backward()
        counts = {
            module: {str(packet): count for packet, count in each.items() if ATTENTION not in str(packet)}
            for module, each in counter.get_flop_counts().items()
        }
        found.append(
            {m: each for m, each in counts.items() if each and (m == "Global" or name not in ENTERED_LATE)}
        )
    assert found[0] == found[1]


def test_backward_of_attention_and_recurrence():
    """On a CPU, PyTorch counts neither; the formulas are those of its operators for GPUs, and of its composed layers."""
    q, k, v = (ones(weft, 2, 4, length, size) for length, size in ((7, 2), (5, 2), (5, 3)))
    with FlopCounterMode(display=False) as counter:
        weft.nn.functional.scaled_dot_product_attention(q, k, v).sum().backward()
    products = 2 * 8 * 7 * 5
    counts = {str(name): count for name, count in counter.get_flop_counts()["Global"].items()}
    assert counts == {f"aten.{ATTENTION}": products * (2 + 3), f"aten.{ATTENTION}_backward": products * 12}
    layer = weft.nn.LSTM(4, 3, proj_size=2)
    with FlopCounterMode(display=False) as counter, weft.no_grad():
        layer(weft.ones(5, 2, 4))
    assert counter.get_total_flops() == 2 * 10 * (12 * 4 + 12 * 2 + 2 * 3)


def test_backward_outside_is_not_counted():
    query = ones(weft, 1, 2, 3, 4)
    with FlopCounterMode(display=False) as counter:
        result = weft.nn.functional.scaled_dot_product_attention(query, query, query)
    before = counter.get_total_flops()
    result.sum().backward()
    assert counter.get_total_flops() == before


@pytest.mark.parametrize("where", ["meta", "fake"])
def test_models_without_memory_are_counted(where):
    def count(device):
        with weft.device(device):
            layer, x = weft.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0), weft.empty(7, 2, 64)
        with FlopCounterMode(display=False) as counter:
            layer(x).sum().backward()
        return counter.get_flop_counts()

    expected = count("cpu")
    if where == "meta":
        assert count("meta") == expected
    else:
        with FakeTensorMode():
            assert count("cpu") == expected


def test_table_and_formulas(capsys):
    model = weft.nn.Linear(4, 8)
    with FlopCounterMode(depth=1) as counter:
        model(weft.ones(3, 4))
    printed = capsys.readouterr().out
    assert printed.splitlines()[0].split() == ["Module", "FLOP", "%", "Total"] and "Linear" in printed
    assert counter.get_total_flops() == 192

    @register_flop_formula(weft.vdot)
    def formula(a_shape, b_shape, out_shape=None, **kwargs):
        return 2 * a_shape[0]

    with FlopCounterMode(
        display=False, custom_mapping={weft.ops.aten.exp: lambda shape, **kwargs: shape[0]}
    ) as counter:
        weft.vdot(weft.ones(3), weft.ones(3))
        weft.exp(weft.ones(5))
        model(weft.ones(1, 4)).sum().backward()
    assert counter.get_total_flops() == 6 + 5 + 64 + 64
    with pytest.raises(ValueError, match="expected operators"):
        register_flop_formula("mm")(formula)
