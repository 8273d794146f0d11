import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode as Reference

import weft
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


def test_table_formulas_and_backward(capsys):
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
        display=False, custom_mapping={weft.exp: lambda shape, **kwargs: shape[0]}
    ) as counter:
        weft.vdot(weft.ones(3), weft.ones(3))
        weft.exp(weft.ones(5))
        with pytest.raises(NotImplementedError, match="backward"):
            model(weft.ones(1, 4)).sum().backward()
    assert counter.get_total_flops() == 6 + 5 + 64
