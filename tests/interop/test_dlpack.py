"""DLPack in both directions, with NumPy and PyTorch."""

import gc

import numpy as np
import pytest
import torch

import weft
from weft.interop import dlpack


@pytest.fixture(autouse=True)
def nothing_stays_lent():
    gc.collect()
    before = len(dlpack._lent)
    yield
    gc.collect()
    assert len(dlpack._lent) == before


@pytest.mark.parametrize("library", [np, torch])
def test_memory_of_others(library):
    theirs = library.arange(6.0).reshape(2, 3).T
    ours = weft.from_dlpack(theirs)
    assert ours.shape == (3, 2) and ours.stride() == (1, 3)
    theirs[0, 1] = 9
    assert ours[0, 1] == 9
    del theirs
    assert ours[0, 1] == 9


@pytest.mark.parametrize("library", [np, torch, weft])
def test_memory_for_others(library):
    ours = weft.arange(6.0).reshape(2, 3).t()
    theirs = library.from_dlpack(ours)
    ours[0, 1] = 9
    assert theirs[0, 1] == 9 and ours._storage.exposed
    del ours
    assert theirs[0, 1] == 9


@pytest.mark.parametrize(
    "name", ["bool", "uint8", "uint16", "int64", "float16", "bfloat16", "complex64", "float8_e5m2"]
)
def test_dtypes(name):
    ours = weft.ones(3).to(getattr(weft, name))
    theirs = torch.from_dlpack(ours)
    assert theirs.dtype is getattr(torch, name)
    assert weft.from_dlpack(theirs).dtype is ours.dtype


def test_a_capsule_is_taken_once():
    capsule = weft.utils.dlpack.to_dlpack(weft.ones(2))
    assert torch.utils.dlpack.from_dlpack(capsule).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="only once"):
        weft.from_dlpack(capsule)


def test_a_capsule_that_nobody_takes_gives_its_memory_back():
    weft.to_dlpack(weft.ones(2))  # the fixture looks


def test_copies():
    array = np.zeros(2)
    copy = weft.from_dlpack(array, copy=True)
    ours = weft.zeros(2)
    theirs = torch.from_dlpack(ours, copy=True)
    array[0] = ours[0] = 1
    assert copy[0] == 0 and theirs[0] == 0


@pytest.mark.parametrize(
    "tensor",
    [
        weft.ones(2, requires_grad=True),
        weft.ones(2, dtype=weft.complex64).conj(),
        weft.ones(2, device="meta"),
    ],
    ids=["requires grad", "conjugate", "meta"],
)
def test_what_cannot_be_shared(tensor):
    with pytest.raises(BufferError):
        tensor.__dlpack__()


def test_nothing_and_numbers():
    assert weft.from_dlpack(np.zeros((0, 3))).shape == (0, 3)
    assert weft.from_dlpack(np.array(3.0)).item() == 3
    assert np.from_dlpack(weft.zeros(0, 3)).shape == (0, 3)


def test_negative_strides():
    with pytest.raises(ValueError, match="negative strides"):
        weft.from_dlpack(np.arange(3)[::-1])
