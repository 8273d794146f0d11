import copy
import gc
import pickle
import threading
import weakref

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.core.device import CPU
from weft.core.dtype import float32, int64
from weft.core.spec import contiguous_spec, contiguous_stride, family, make_spec


def test_equal_specs_are_one_object():
    a = contiguous_spec((2, 3), float32)
    assert a is make_spec((2, 3), (3, 1), float32)
    assert a is not contiguous_spec((2, 3), int64)
    assert pickle.loads(pickle.dumps(a)) is a and copy.deepcopy(a) is a


def test_specs_are_held_weakly():
    kept = contiguous_spec((90_000,), float32)
    alive = weakref.ref(contiguous_spec((90_001,), float32))
    gc.collect()
    assert alive() is None and contiguous_spec((90_000,), float32) is kept
    again = contiguous_spec((90_001,), float32)
    assert contiguous_spec((90_001,), float32) is again


def test_what_is_kept_of_specs_that_are_gone_is_bounded():
    own = family(int64, CPU, False, True)
    kept = make_spec((3,), (1,), int64, CPU, False, True)
    for size in range(100_000):
        make_spec((size,), (1,), int64, CPU, False, True)
    gc.collect()
    assert len(own) <= own.limit < 10_000
    assert make_spec((3,), (1,), int64, CPU, False, True) is kept


def test_threads_that_make_equal_specs_get_one_object():
    def make(thread: int) -> None:
        for size in range(
            20_000
        ):  # some of them are gone, and some were swept, when another thread makes them
            found[thread][size % 7] = spec = contiguous_spec((200_000 + size,), float32)
            assert contiguous_spec((200_000 + size,), float32) is spec

    found: list[dict] = [{} for _ in range(4)]
    threads = [threading.Thread(target=make, args=(thread,)) for thread in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for place in range(7):
        assert len({id(each[place]) for each in found}) == 1


@given(st.lists(st.integers(0, 5), max_size=5))
def test_contiguous_specs_are_dense(sizes):
    own = contiguous_spec(tuple(sizes), float32)
    assert own.is_contiguous and own.is_dense and not own.repeats
    assert own.span == own.numel
    assert own.stride == contiguous_stride(sizes)


def test_expanded_specs_repeat():
    expanded = make_spec((4, 3), (0, 1), float32)
    assert expanded.repeats and not expanded.is_dense and expanded.span == 3


def test_strides_of_more_than_63_bits_are_refused():
    assert make_spec((2,), (2**60,), float32).span == 2**60 + 1
    with pytest.raises(RuntimeError, match="overflow"):
        make_spec((2,), (2**61,), float32)


def test_more_elements_than_64_bits_count_are_refused():
    assert make_spec((2**62, 1), (0, 0), float32).numel == 2**62
    for sizes in ((2**62, 2), (2**32, 2**31), (2**62, 3)):
        with pytest.raises(RuntimeError, match="overflow"):
            make_spec(sizes, (0, 0), float32)
        for lib in (torch, weft):
            with pytest.raises(RuntimeError, match="overflow"):
                lib.ones(1, 1).expand(sizes)
