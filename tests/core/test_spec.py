import copy
import gc
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.core.dtype import float32, int64
from weft.core.spec import contiguous_spec, contiguous_stride, make_spec


def test_equal_specs_are_one_object():
    a = contiguous_spec((2, 3), float32)
    assert a is make_spec((2, 3), (3, 1), float32)
    assert a is not contiguous_spec((2, 3), int64)
    assert pickle.loads(pickle.dumps(a)) is a and copy.deepcopy(a) is a


def test_specs_are_held_weakly():
    from weft.core import spec as module

    before = len(module._references)
    kept = [contiguous_spec((size,), float32) for size in range(90_000, 90_100)]
    assert len(module._references) >= before + 100
    del kept
    gc.collect()
    assert len(module._references) <= before + 1


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
