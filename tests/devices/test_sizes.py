"""Plans for sizes that planning code did not see (`core/templates.py`) give the CPU's results.

The device is the reference device, or the one that TESTED_DEVICE names.
"""

import pytest
from on_device import HERE

import weft as torch
from weft.nn import functional

SIZES = (*range(20, 30), 700, 1000, 3, 2, 1, 5000, 5001, 40, 64, 65)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + x,
        lambda x: x.mT * 2,
        lambda x: x.softmax(-1),
        lambda x: x.sum(0),
        lambda x: x.sum(),
        lambda x: x.argmax(0),
        lambda x: x[:1000] @ x[:1000].T,
        lambda x: functional.layer_norm(x, (7,)),
        lambda x: x.cumsum(0),
        lambda x: x[torch.full((3,), len(x) // 2, device=x.device)],
        lambda x: x[x[:, 0] > 0],
        lambda x: torch.cat([x, x]),
        lambda x: x.sort(0).values,
    ],
    ids="map transposed softmax sum whole argmax product layer_norm cumsum gather mask cat sort".split(),
)
def test_many_sizes(function):
    generator = torch.Generator().manual_seed(0)
    for n in SIZES:
        x = torch.randn(n, 7, generator=generator)
        torch.testing.assert_close(function(x.to(HERE)).cpu(), function(x), rtol=1e-4, atol=1e-4)
