"""Conversions between element types against PyTorch: halfway cases, NaN, and bytes that are no bool."""

import numpy as np
import pytest
import torch

import weft
from weft.core.dtype import DTYPES, REDUCED_FLOATS

NARROW = [name for name, dtype in DTYPES.items() if dtype in REDUCED_FLOATS]


def bits_of(lib, name):
    return lib.uint8 if "float8" in name else lib.int16


def all_values(name):
    """All finite values of a narrow float, in order, as float32 of NumPy."""
    bits = torch.arange(256).to(torch.uint8) if "float8" in name else torch.arange(2**16).to(torch.int16)
    values = bits.view(getattr(torch, name)).float().numpy()
    return np.unique(values[np.isfinite(values)])


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("away", [0, 1, -1])
def test_ties_go_to_even(name, away):
    """Between any two neighbours: the middle, and the float32 just above and below it."""
    values = all_values(name).astype(np.float64)
    middles = ((values[1:] + values[:-1]) / 2).astype(np.float32)
    if away:
        middles = np.nextafter(middles, np.float32(away * np.inf))
    narrow = [
        lib.from_numpy(middles).to(getattr(lib, name)).view(bits_of(lib, name)) for lib in (torch, weft)
    ]
    assert narrow[1].tolist() == narrow[0].tolist()
    one_by_one = [
        weft.tensor(x).to(getattr(weft, name)).item() for x in middles[:: len(middles) // 40].tolist()
    ]
    assert one_by_one == weft.from_numpy(middles).to(getattr(weft, name)).tolist()[:: len(middles) // 40]


@pytest.mark.parametrize("name", NARROW)
def test_beyond_the_largest(name):
    largest = all_values(name)[-1]
    step = np.float32(largest) - all_values(name)[-2]
    with np.errstate(over="ignore"):
        beyond = np.float32(largest) + step * np.float32([0, 0.25, 0.49, 0.5, 0.51, 0.75, 1, 2, 1e9])
    beyond = np.concatenate([beyond, -beyond, np.float32([np.inf, -np.inf, np.nan, 3.4e38])])
    ours, theirs = (lib.from_numpy(beyond).to(getattr(lib, name)).float() for lib in (weft, torch))
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


# NaNs of float32: quiet and signalling, of both signs, and payloads that rounding would carry into the exponent.
PAYLOADS = (
    0x7F800001, 0x7FC00001, 0xFF800001, 0xFFFFFFFF, 0x7FFFFFFF, 0x7F80FFFF, 0x7F810000, 0xFF8000FF, 0x7FBFFFFF,
    0x7FFF8000, 0xFFFF8000,
)  # fmt: skip


@pytest.mark.parametrize("count", [1, 7, 8, 33])
@pytest.mark.parametrize("name", NARROW)
def test_nan_stays_nan_whatever_its_payload(name, count):
    values = np.resize(np.array(PAYLOADS, np.uint32), count * len(PAYLOADS)).view(np.float32)
    assert np.isnan(values).all()
    tensor = weft.from_numpy(values)
    assert tensor.to(getattr(weft, name)).float().isnan().all()
    assert tensor.to(weft.float64).isnan().all()
    if count == 1:
        for value in tensor:
            assert value.to(getattr(weft, name)).isnan()


# What is computed from bools, which are 1 and 0 for most but any byte where memory comes from others.
OF_BOOLS = """
b
~b
b.logical_not()
b.bitwise_not()
b.to(torch.uint8)
b.to(torch.int32)
b.to(torch.float32)
b.to(torch.float64)
b.half()
b.bfloat16()
b.to(torch.complex64)
b.bool()
b == True
b != False
b < torch.ones(6, dtype=torch.bool)
b.eq(torch.tensor(True))
b & torch.ones(6, dtype=torch.bool)
b | torch.zeros(6, dtype=torch.bool)
b ^ torch.ones(6, dtype=torch.bool)
b.logical_and(b)
b.logical_xor(torch.ones(6, dtype=torch.bool))
b * 1
b + b
b.sum()
b.sum(0, dtype=torch.uint8)
b.sum(dtype=torch.float32)
b.float().mean()
b.prod()
b[1:].prod()
b.any()
b.any(0)
b.all()
b[1:].all()
b.max()
b.min()
b.amax(0)
b.cumsum(0)
b.cumprod(0)
b.cummax(0).values
b.count_nonzero()
b.nonzero()
b.sort()
b.sort(descending=True)
b.argsort(stable=True)
b.mode()
b.unique()
b.unique(return_counts=True)
torch.arange(6)[b]
torch.arange(6).masked_select(b)
torch.arange(6).masked_fill(b, -1)
torch.where(b, 1, 0)
torch.zeros(6).index_put((b,), torch.tensor(1.0))
torch.zeros(6).masked_scatter(b, torch.arange(6.0))
b.masked_fill(b, False)
torch.equal(b, torch.tensor([False] + [True] * 5))
torch.cat([b, b]).sum()
b.flip(0).int()
b.repeat(2).sum()
b.index_select(0, torch.tensor([2])).int()
torch.stack([b, b]).int()
b.clone().int()
b.contiguous().float()
b.view(2, 3).t().contiguous().int()
b.view(2, 3).t().sum(0)
b[3].item()
bool(b[2])
int(b[3])
b.tolist()
torch.bincount(b.long())
torch.diff(b)
torch.nn.functional.one_hot(b.long())
b.gather(0, torch.tensor([2, 3])).int()
""".strip().splitlines()


@pytest.mark.parametrize("expression", OF_BOOLS)
def test_every_byte_but_0_is_true(expression):
    found = []
    for lib in (torch, weft):
        b = lib.frombuffer(bytearray([0, 1, 2, 255, 128, 3]), dtype=lib.bool)
        result = eval(expression, {"torch": lib, "b": b})
        several = result if isinstance(result, tuple) else (result,)
        found.append([each.tolist() if isinstance(each, lib.Tensor) else each for each in several])
    assert found[1] == found[0]
