"""Deterministic mode fills new memory: NaN, the largest integer or True."""

import gc

import pytest
import torch
from oracle import DTYPES

import weft

MAKERS = {
    "empty": lambda t, dtype: t.empty(3, dtype=dtype),
    "several sizes": lambda t, dtype: t.empty((2, 3), dtype=dtype),
    "memory format": lambda t, dtype: t.empty((1, 2, 2, 3), dtype=dtype, memory_format=t.channels_last),
    "out": lambda t, dtype: t.empty(2, 3, out=t.zeros(1, dtype=dtype)),
    "like": lambda t, dtype: t.empty_like(t.zeros(2, 3, dtype=dtype)),
    "strided": lambda t, dtype: t.empty_strided((3, 2), (1, 2), dtype=dtype),
    "overlapping": lambda t, dtype: t.empty_strided((3, 2), (1, 1), dtype=dtype),
    "permuted": lambda t, dtype: t.empty_permuted((2, 3), (1, 0), dtype=dtype),
    "new": lambda t, dtype: t.zeros(1, dtype=dtype).new_empty(3),
    "legacy": lambda t, dtype: t.zeros(1, dtype=dtype).new(3),
    "larger": lambda t, dtype: t.zeros(2, dtype=dtype)[:1].resize_(5),
    "larger and like": lambda t, dtype: t.zeros(2, dtype=dtype).resize_as_(t.zeros(2, 2)),
    "smaller": lambda t, dtype: t.zeros(3, dtype=dtype).resize_(2),
}


@pytest.fixture(autouse=True)
def deterministic_mode():
    for t in (torch, weft):
        t.use_deterministic_algorithms(True)
    yield
    for t in (torch, weft):
        t.utils.deterministic.fill_uninitialized_memory = True
        t.use_deterministic_algorithms(False)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("dtype", (*DTYPES, "uint16", "uint32", "uint64", "complex32", "float8_e5m2"))
def test_new_memory_is_filled(maker, dtype):
    theirs = MAKERS[maker](torch, getattr(torch, dtype))
    ours = MAKERS[maker](weft, getattr(weft, dtype))
    assert (ours.shape, ours.stride()) == (theirs.shape, theirs.stride())
    assert str(ours.tolist()) == str(theirs.tolist())


def test_the_switch_and_the_mode_decide():
    """Both count at once, also for calls that plans, machine code or records of compiled functions answer."""
    makers = [lambda: weft.empty(300), weft.compile(lambda: weft.empty(300) + 0)]

    def filled():
        return [bool(make().isnan().all()) for make in makers for _ in range(60)]

    def leave_ones():
        """In all blocks of this size that are free; those of collected cycles are free, too."""
        gc.collect()
        held = [weft.ones(300) for _ in range(1000)]
        del held

    for _ in range(1200):  # machine code takes the calls of a busy process
        weft.ones(300)
    assert all(filled())
    weft.utils.deterministic.fill_uninitialized_memory = False
    assert not weft._C._get_deterministic_fill_uninitialized_memory()
    leave_ones()
    assert not any(filled())
    weft.utils.deterministic.fill_uninitialized_memory = True
    assert all(filled())
    weft.use_deterministic_algorithms(False)
    leave_ones()
    assert not any(filled())


def test_results_that_are_written_are_not_changed():
    assert weft.zeros(3).tolist() == [0, 0, 0]
    assert weft.full((2,), 7).tolist() == [7, 7]
    assert weft.arange(3).tolist() == [0, 1, 2]
    assert weft.empty(2, device="meta").shape == (2,)


def test_filling_is_no_write():
    """The version of a new tensor is 0; that of a resized one counts the call only."""
    makers = [lambda t: t.empty(2), lambda t: t.empty_strided((2,), (3,)), lambda t: t.ones(1).resize_(2)]
    for make in makers:
        assert make(weft)._version == make(torch)._version


@pytest.mark.parametrize("value", [1, None])
def test_the_switch_is_a_bool(value):
    for t in (torch, weft):
        with pytest.raises(RuntimeError, match="expected a bool"):
            t.utils.deterministic.fill_uninitialized_memory = value
