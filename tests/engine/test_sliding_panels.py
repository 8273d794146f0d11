"""Sums in panels have the bits of `sliding.py`."""

import pytest

import weft
from weft.core.plans import PlanCache
from weft.devices.cpu import sliding
from weft.engine.sliding_panels import DEPTH, LEAST_TILES, suits_panels

F = weft.nn.functional

CONVOLUTIONS = {  # the input, the weight, keywords
    "more terms than a panel": ((2, 40, 9, 11), (25, 40, 3, 3), {"padding": 1}),
    "as many terms as a panel": ((2, DEPTH, 5, 7), (24, DEPTH, 1, 2), {}),
    "stride and dilation": ((2, 5, 21, 19), (31, 5, 3, 2), {"stride": 2, "dilation": (1, 3)}),
    "groups": ((2, 6, 13, 8), (60, 3, 3, 3), {"groups": 2, "padding": 2}),
    "one dim": ((3, 8, 50), (30, 8, 5), {}),
    "three dims": ((1, 3, 5, 6, 7), (26, 3, 2, 3, 2), {"padding": (1, 0, 1)}),
}


def results(dtype, given):
    x_size, w_size, options = given
    generator = weft.Generator().manual_seed(1)
    x = weft.randn(x_size, dtype=dtype, generator=generator).requires_grad_()
    w = weft.randn(w_size, dtype=dtype, generator=generator).requires_grad_()
    bias = weft.randn(w_size[0], dtype=dtype, generator=generator)
    y = (F.conv1d, F.conv2d, F.conv3d)[len(x_size) - 3](x, w, bias, **options)
    y.backward(weft.randn(y.shape, dtype=dtype, generator=generator))
    return y.detach(), x.grad


@pytest.mark.parametrize("dtype", [weft.float32, weft.float64], ids=str)
@pytest.mark.parametrize("given", CONVOLUTIONS.values(), ids=CONVOLUTIONS)
def test_panels_have_the_bits_of_sliding_sums(given, dtype, monkeypatch):
    found = []
    for chosen in (True, False):
        asked = []

        def suits(made, chosen=chosen, asked=asked):
            asked.append(made)
            return chosen

        monkeypatch.setattr(sliding, "suits_panels", suits)
        monkeypatch.setattr(sliding, "_sums_plans", PlanCache(sliding._sums_plan))
        found.append(results(dtype, given))
        assert len(asked) == 2
    for panels, sums in zip(*found, strict=True):
        assert panels.numpy().tobytes() == sums.numpy().tobytes()


def test_panels_are_for_many_channels_and_few_registers(monkeypatch):
    monkeypatch.setattr("weft.engine.sliding_panels.has_masks", lambda: False)
    rows = sliding.tile().rows
    assert suits_panels(LEAST_TILES * rows) and not suits_panels(LEAST_TILES * rows - 1)
    monkeypatch.setattr("weft.engine.sliding_panels.has_masks", lambda: True)
    assert not suits_panels(1000)
