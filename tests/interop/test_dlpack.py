"""DLPack in both directions, with NumPy and PyTorch."""

import gc
import sys
import weakref

import numpy as np
import pytest
import torch

import weft
from weft.interop import dlpack


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
    "name",
    [
        "bool",
        "uint8",
        "uint16",
        "int64",
        "float16",
        "bfloat16",
        "complex64",
        "complex32",
        "float8_e5m2",
        "float8_e4m3fn",
    ],
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


@pytest.mark.parametrize("take", [weft.to_dlpack, torch.from_dlpack, np.from_dlpack, weft.from_dlpack])
@pytest.mark.parametrize("dtype", [weft.float32, weft.bfloat16])
def test_memory_is_given_back(take, dtype):
    tensor = weft.ones(2, dtype=dtype)
    storage = weakref.ref(tensor.untyped_storage())
    try:
        other = take(tensor)
    except RuntimeError:  # NumPy has no bfloat16, and says so although the capsule dies meanwhile
        assert take is np.from_dlpack and dtype is weft.bfloat16
        other = None
    del tensor
    assert (storage() is None) == (other is None)
    del other
    gc.collect()
    assert storage() is None


def test_memory_of_others_is_given_back():
    array = np.ones(1000)
    before = sys.getrefcount(array)
    tensor = weft.from_dlpack(array)
    part = tensor[5:]
    del tensor
    assert sys.getrefcount(array) > before
    del part
    gc.collect()
    assert sys.getrefcount(array) == before


@pytest.mark.parametrize("versioned", [True, False])
def test_versions(versioned):
    tensor = weft.ones(2)
    capsule = tensor.__dlpack__(max_version=(1, 0) if versioned else None)
    assert ("dltensor_versioned" in repr(capsule)) == versioned
    assert torch.from_dlpack(capsule).tolist() == [1, 1]


def test_read_only_arrays():
    array = np.arange(3.0)
    array.flags.writeable = False
    assert weft.from_dlpack(array).tolist() == torch.from_dlpack(array).tolist() == [0, 1, 2]


def test_devices():
    tensor = weft.ones(2)
    kind, index = tensor.__dlpack_device__()
    assert (
        (kind, index)
        == (weft.utils.dlpack.DLDeviceType.kDLCPU, 0)
        == tuple(torch.ones(2).__dlpack_device__())
    )
    ours, theirs = (
        {each.name: int(each) for each in library.utils.dlpack.DLDeviceType} for library in (weft, torch)
    )
    assert {name: theirs[name] for name in theirs} == {name: ours.get(name) for name in theirs}
    with pytest.raises(BufferError, match="DLPack device"):
        tensor.__dlpack__(dl_device=(2, 0))
    with pytest.raises(AssertionError, match="stream should be None"):
        tensor.__dlpack__(stream=1)
    with pytest.raises(TypeError, match="stream must be"):
        tensor.__dlpack__(stream=object())


def test_what_is_not_understood():
    with pytest.raises((RuntimeError, TypeError)):
        weft.from_dlpack(3)
    with pytest.raises(BufferError):
        weft.from_dlpack(np.array(["a"]))


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


def described(tensor):
    """A capsule, and the description of a tensor that it points to, which may be changed before it is taken."""
    capsule = tensor.__dlpack__(max_version=(1, 0))
    return capsule, dlpack._managed(capsule).tensor


@pytest.mark.parametrize("take", [weft.from_dlpack, torch.from_dlpack])
def test_an_offset_in_bytes_is_followed(take):
    capsule, tensor = described(weft.arange(6.0))
    tensor.byte_offset = 8
    tensor.shape[0] = 3
    assert take(capsule).tolist() == [2, 3, 4]


def test_an_offset_in_bytes_keeps_the_address():
    array = np.arange(6.0)
    ours = weft.from_dlpack(array)
    capsule, tensor = described(ours)
    tensor.byte_offset = 16
    tensor.shape[0] = 2
    assert weft.from_dlpack(capsule).data_ptr() == array.ctypes.data + 16


@pytest.mark.parametrize("lanes", [0, 2, 4])
def test_vectors_as_elements_are_refused(lanes):
    capsule, tensor = described(weft.arange(6.0))
    tensor.dtype.lanes = lanes
    with pytest.raises(BufferError, match=f"{lanes} lanes"):
        weft.from_dlpack(capsule)
    tensor.dtype.lanes = 1  # the capsule was not taken: it still is whole
    assert weft.from_dlpack(capsule).tolist() == [0, 1, 2, 3, 4, 5]


def test_unknown_types_are_refused():
    for code, bits in ((7, 32), (2, 128), (0, 4), (200, 8)):
        capsule, tensor = described(weft.arange(6.0))
        tensor.dtype.code, tensor.dtype.bits = code, bits
        with pytest.raises(BufferError, match="Unsupported DLPack type"):
            weft.from_dlpack(capsule)
