"""Scales and zero points of observed tensors: those of PyTorch's observers and dynamic functions."""

import numpy as np
import pytest
import torch
from torch.ao.quantization import observer as observers

import weft
from weft.layouts.quantized import ranges

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.ao.quantization is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning"),
    pytest.mark.filterwarnings("ignore:Please use quant_min:UserWarning"),
]

SCHEMES = ["per_tensor_affine", "per_tensor_symmetric", "per_channel_affine", "per_channel_symmetric"]
SCHEMES += ["per_channel_affine_float_qparams"]
RANGES = {torch.quint8: (0, 255), torch.qint8: (-128, 127)}


@pytest.mark.parametrize("dtype", RANGES, ids=str)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_observers(scheme, dtype):
    random = np.random.default_rng(0)
    rows = [
        random.standard_normal((4, 30)) * 3,
        random.uniform(1, 2, (4, 30)),
        -random.uniform(1, 2, (4, 30)),
    ]
    rows += [np.zeros((4, 30)), random.standard_normal((4, 30)) * 1e-10]
    kind = observers.PerChannelMinMaxObserver if "channel" in scheme else observers.MinMaxObserver
    for row in rows:
        values = row.astype(np.float32)
        observer = kind(qscheme=getattr(torch, scheme), dtype=dtype)
        observer(torch.from_numpy(values))
        wanted = observer.calculate_qparams()
        given = weft.from_numpy(values)
        least, most = given.aminmax(dim=1) if "channel" in scheme else given.flatten()[None].aminmax(dim=1)
        middle = 128 if dtype is torch.quint8 else 0
        found = ranges.observed_qparams(least, most, *RANGES[dtype], getattr(weft, scheme), middle)
        for own, other in zip(found, wanted, strict=True):
            assert str(own.dtype) == str(other.dtype)
            np.testing.assert_array_equal(own.numpy(), other.numpy())


@pytest.mark.parametrize("reduced", [False, True])
def test_dynamic(reduced):
    random = np.random.default_rng(0)
    for count in (1, 2, 100):
        values = (random.standard_normal((count, 3)) * 4).astype(np.float32)
        for dtype, own in ((torch.quint8, weft.uint8), (torch.qint8, weft.int8)):
            wanted = torch.quantize_per_tensor_dynamic(torch.from_numpy(values), dtype, reduced)
            found, by = ranges.quantize_dynamic(weft.from_numpy(values), own, reduced)
            assert by == (wanted.q_scale(), wanted.q_zero_point())
            np.testing.assert_array_equal(found.numpy(), wanted.int_repr().numpy())
    integers, _ = ranges.quantize_dynamic(weft.zeros(0, 3), weft.uint8, reduced)
    assert integers.shape == (0, 3)


def test_the_range_with_the_least_error():
    random = np.random.default_rng(0)
    for case in range(12):
        values = (random.standard_normal(1 + 9 * case) * 10.0 ** random.integers(-3, 3)).astype(np.float32)
        bits, ratio, bins = (2, 4, 8)[case % 3], (0.16, 0.5, 0.9)[case // 3 % 3], (50, 200)[case % 2]
        wanted = torch.choose_qparams_optimized(torch.from_numpy(values), len(values), bins, ratio, bits)
        found = ranges.optimized_range(weft.from_numpy(values), bins, ratio, bits)
        assert found == tuple(each.item() for each in wanted)
