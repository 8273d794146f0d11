"""Packing by a mask that another thread changes between counting its true elements and using them."""

import pytest

import weft
from weft.core.tensor import address
from weft.families import indexed
from weft.ops.indexing import masking

LARGE = (300, 400)  # more than a small block: its true elements are counted first


@pytest.mark.parametrize("dtype", [weft.int8, weft.float32, weft.complex128])
@pytest.mark.parametrize("room", [0, 1, 5, 7])
def test_packing_stops_at_the_end_of_its_room(dtype, room):
    target = weft.full((20,), 77, dtype=dtype)
    with pytest.raises(RuntimeError, match=f"had {room} true elements .* and 8 when they were used"):
        indexed.pack_into(address(target), room, weft.arange(8).to(dtype), weft.ones(8, dtype=weft.bool))
    assert target[:room].tolist() == list(range(room))
    assert (target[room + 1 :] == 77).all()


def test_room_that_is_enough():
    target = weft.full((20,), 77)
    mask = weft.tensor([True, False, True, True])
    assert indexed.pack_into(address(target), 3, weft.arange(4), mask) == 3
    assert target[:3].tolist() == [0, 2, 3] and (target[4:] == 77).all()


@pytest.fixture
def counted(monkeypatch):
    """Has masks counted as if they had had so many true elements before: more for a negative number."""

    real = indexed.count_true

    def count(late):
        for module in (indexed, masking):
            monkeypatch.setattr(module, "count_true", lambda mask: real(mask) - late)

    return count


@pytest.mark.parametrize(
    "select",
    [
        lambda x, mask: x[mask],
        lambda x, mask: x.masked_select(mask),
        lambda x, mask: mask.nonzero(),
        lambda x, mask: weft.where(mask),
        lambda x, mask: x.t()[mask.t()],
    ],
)
def test_a_mask_that_got_more_true_elements_is_an_error(counted, select):
    x, mask = weft.rand(LARGE), weft.rand(LARGE) < 0.5
    expected = select(x, mask)
    counted(9)
    with pytest.raises(RuntimeError, match="another thread writes to it"):
        select(x, mask)
    counted(0)
    same = [a.equal(b) for a, b in zip(select(x, mask), expected)]
    assert len(same) == len(expected)


def test_a_mask_that_got_fewer_true_elements(counted):
    x, mask = weft.rand(LARGE), weft.rand(LARGE) < 0.5
    expected = x[mask]
    counted(-9)
    assert x[mask].equal(expected)  # what fits
    with pytest.raises(RuntimeError, match="another thread writes to it"):
        mask.nonzero()  # each column would end with positions that nobody wrote


def test_writing_through_a_mask_that_got_more_true_elements(counted):
    x, mask = weft.zeros(10), weft.ones(10, dtype=weft.bool)
    counted(4)
    x.masked_scatter_(mask, weft.arange(1.0, 7.0))
    assert x.tolist() == [1, 2, 3, 4, 5, 6, 6, 6, 6, 6]
