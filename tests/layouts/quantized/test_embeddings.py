"""Sums of rows of quantized tables have the bits of PyTorch's, by the kernel and by steps, and wrong indices are refused."""

import numpy as np
import pytest
import torch

import weft

RANDOM = np.random.default_rng(3)
EXTRAS = weft.device("cpu").backend.extras


@pytest.fixture(params=["kernel", "steps"])
def way(request, monkeypatch):
    if request.param == "steps":
        monkeypatch.delitem(EXTRAS, "byte_bags")


def table(library, dtype, numbers, scales, points):
    given = map(library.from_numpy, (numbers, scales, points))
    weight = library.quantize_per_channel(*given, 0, getattr(library, dtype))
    return library.ops.quantized.embedding_bag_prepack(weight)


def summed(library, dtype, content, indices, offsets, weights, include_last_offset=False):
    function = getattr(library.ops.quantized, f"embedding_bag_{'byte' if dtype == 'quint8' else '4bit'}")
    given = [None if each is None else library.from_numpy(each) for each in (indices, offsets, weights)]
    indices, offsets, weights = given
    packed = table(library, dtype, *content)
    return function(packed, indices, offsets, False, 0, False, weights, None, include_last_offset).numpy()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", ["quint8", "quint4x2"])
@pytest.mark.parametrize("columns", [2, 16, 34, 64, 200])
def test_sums_have_the_bits_of_pytorch(dtype, columns):
    rows = 9
    content = (
        RANDOM.standard_normal((rows, columns)).astype(np.float32),
        (RANDOM.random(rows) * 0.1 + 0.01).astype(np.float32),
        (RANDOM.random(rows) * 8).astype(np.float32),
    )
    indices = RANDOM.integers(0, rows, 40)
    weights = RANDOM.standard_normal(40).astype(np.float32)
    first = 2 if dtype == "quint8" else 0  # PyTorch's sums of nibbles begin at place 0 whatever the offset
    for offsets, last in (([0, 3, 3, 20], False), ([first, 30], False), ([0, 10, 40], True)):
        for kind in (np.int32, np.int64):
            given = indices.astype(kind), np.array(offsets, kind)
            for each in (None, weights):
                args = (dtype, content, *given, each, last)
                assert summed(weft, *args).tobytes() == summed(torch, *args).tobytes()
    args = (dtype, content, indices.reshape(8, 5), None, None)
    assert summed(weft, *args).tobytes() == summed(torch, *args).tobytes()


def test_tables_whose_rows_do_not_begin_with_a_byte():
    weight = weft.quantize_per_channel(
        weft.arange(6.0).reshape(2, 3), weft.ones(2), weft.zeros(2), 0, weft.quint4x2
    )
    packed = weft.ops.quantized.embedding_bag_prepack(weight)
    assert weft.ops.quantized.embedding_4bit(packed, weft.tensor([1, 0])).tolist() == [[3, 4, 5], [0, 1, 2]]


@pytest.mark.usefixtures("way")
def test_places_beyond_the_tables_are_refused():
    content = np.ones((4, 16), np.float32), np.ones(4, np.float32), np.zeros(4, np.float32)
    for indices, offsets, weights in (
        ([4], [0], None),
        ([0, -1], [0], None),
        ([0, 1], [0, 3], None),
        ([0, 1], [1, 0], None),
        ([0, 1], [-1], None),
        ([0, 1], [0], [1.0]),
    ):
        given = np.array(indices), np.array(offsets), weights and np.array(weights, np.float32)
        with pytest.raises(RuntimeError):
            summed(weft, "quint8", content, *given)
    for indices in ([], [[]]):
        empty = np.array(indices, np.int64)
        offsets = np.array([0, 0]) if empty.ndim == 1 else None
        assert not summed(weft, "quint8", content, empty, offsets, None).any()
