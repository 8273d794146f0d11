"""Rows of elementwise kernels: whatever place of a group an element has, its result has the same bits, and nothing beside it is written."""

import pytest

import weft as torch
from weft.core.dtype import float32
from weft.engine import map_rows, scalar, tiers
from weft.engine.expr import load
from weft.engine.loops import MapKernel, Result
from weft.engine.map_rows import map_ir

LENGTHS = [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 300]  # fmt: skip
CALLS = {
    "one operation": lambda x, y: x * 2,
    "a comparison": lambda x, y: x > y,
    "some": lambda x, y: x.clamp(-0.5, 0.5),
    "many": lambda x, y: torch.sigmoid(x) * y,
    "many conditions": lambda x, y: torch.pow(x, y),
    "a row for all": lambda x, y: torch.tanh(x) + y[:1],
    "wider results": lambda x, y: torch.exp(x.double()),
    "narrower results": lambda x, y: torch.exp(x).to(torch.bfloat16),
    "bytes": lambda x, y: (x * 50).to(torch.int8) // 3,
    "complex": lambda x, y: torch.exp(torch.complex(x, y)),
}


@pytest.fixture(autouse=True, scope="module")
def _optimized():
    """Baseline code takes element by element."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiers, "in_background", lambda: True)
        yield


@pytest.mark.parametrize("name", CALLS)
def test_an_element_has_the_same_bits_in_rows_of_any_length(name):
    call = CALLS[name]
    x, y = (torch.randn(3, 310, generator=torch.Generator().manual_seed(k)) for k in range(2))
    whole = call(x, y)
    for length in LENGTHS:
        part = call(x[:, 5 : 5 + length], y[:, 5 : 5 + length])
        assert torch.equal(part.nan_to_num(), whole[:, 5 : 5 + length].nan_to_num()), length


@pytest.mark.parametrize("length", LENGTHS)
def test_what_lies_beside_a_row_stays(length):
    x = torch.randn(3, length)
    for call in (torch.exp, torch.sigmoid, torch.neg):
        room = torch.full((3, length + 40), 7.0)
        call(x, out=room[:, 20 : 20 + length])
        assert (room[:, :20] == 7).all() and (room[:, 20 + length :] == 7).all()
        assert torch.equal(room[:, 20 : 20 + length], call(x))


def kernel_of(element):
    return MapKernel((Result((element(load(0, float32)),)),), (float32,), (), "cc")


def test_loops_that_compute_much_take_more_vectors_at_a_time(monkeypatch):
    some, many = kernel_of(lambda x: x * 2 + 1), kernel_of(scalar.sigmoid)
    conditions = kernel_of(lambda x: scalar.pow(x, x))
    for masks, avx2, vectors in (
        (True, True, [2, 4, 1]),
        (False, True, [0, 4, 4]),
        (False, False, [0, 0, 0]),
    ):
        monkeypatch.setattr(map_rows, "has_masks", lambda masks=masks: masks)
        monkeypatch.setattr(map_rows, "has_avx2", lambda avx2=avx2: avx2)
        for kernel, count in zip((some, many, conditions), vectors, strict=True):
            text = map_ir(kernel).text()
            assert ("%groups" in text, "predicate.enable" in text) == (count > 0, masks)
            if count:
                assert f'interleave.count", i32 {count}' in text
