"""NumPy's .npy files, against NumPy."""

import os

import numpy as np
import pytest

import weft
from weft.io import load_npy, save_npy

DTYPES = "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()


def bits(tensor):
    return tensor.contiguous().numpy().tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_files_are_numpys(tmp_path, dtype):
    for tensor in (weft.arange(6).to(getattr(weft, dtype)).view(2, 3), weft.tensor(1), weft.empty(0, 3)):
        save_npy(tensor, tmp_path / "mine.npy")
        np.save(tmp_path / "theirs.npy", tensor.numpy())
        assert (tmp_path / "mine.npy").read_bytes() == (tmp_path / "theirs.npy").read_bytes()
        for mmap in (False, True):
            loaded = load_npy(tmp_path / "mine.npy", mmap=mmap)
            assert (
                loaded.dtype is tensor.dtype and loaded.shape == tensor.shape and bits(loaded) == bits(tensor)
            )


@pytest.mark.parametrize("mmap", [False, True])
def test_orders_of_dims_and_bytes(tmp_path, mmap):
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for array in (np.asfortranarray(values), values.astype(">f4"), np.asfortranarray(values.astype(">f4"))):
        np.save(tmp_path / "t.npy", array)
        loaded = load_npy(tmp_path / "t.npy", mmap=mmap)
        assert loaded.dtype is weft.float32 and loaded.tolist() == values.tolist()
    turned = weft.arange(6).view(2, 3).t()
    save_npy(turned, tmp_path / "t.npy")
    assert load_npy(tmp_path / "t.npy", mmap=mmap).tolist() == turned.tolist()


def test_mapped_tensors_are_private(tmp_path):
    save_npy(weft.zeros(3), tmp_path / "t.npy")
    before = (tmp_path / "t.npy").read_bytes()
    mapped = load_npy(tmp_path / "t.npy", mmap=True)
    mapped += 1
    assert mapped.tolist() == [1, 1, 1] and (tmp_path / "t.npy").read_bytes() == before
    save_npy(weft.ones(1), tmp_path / "t.npy")  # the old memory stays
    assert mapped.tolist() == [1, 1, 1]


def test_what_numpy_would_warn_or_refuse_is_saved_detached(tmp_path):
    save_npy(weft.ones(2, requires_grad=True), tmp_path / "t.npy")
    save_npy(weft.tensor([1j]).conj(), tmp_path / "c.npy")
    assert load_npy(tmp_path / "c.npy").tolist() == [-1j]


@pytest.mark.parametrize("dtype", [weft.bfloat16, weft.float8_e5m2, weft.complex32])
def test_dtypes_that_the_format_cannot_name(tmp_path, dtype):
    with pytest.raises(TypeError, match=str(dtype)):
        save_npy(weft.ones(1).to(dtype), tmp_path / "t.npy")
    assert not os.listdir(tmp_path)


def file_of(header, content=b"", version=b"\1\0"):
    header = header.encode()
    length = len(header).to_bytes(2 if version == b"\1\0" else 4, "little")
    return b"\x93NUMPY" + version + length + header + content


HEADER = "{{'descr': {!r}, 'fortran_order': False, 'shape': {}}}\n"
BAD = {
    "nothing": (b"", RuntimeError),
    "no magic": (b"\x93NUMBY\1\0", RuntimeError),
    "header cut short": (file_of(HEADER.format("<f4", "(2,)"))[:20], RuntimeError),
    "too few bytes": (file_of(HEADER.format("<f4", "(2,)"), bytes(7)), RuntimeError),
    "terabytes": (file_of(HEADER.format("<f4", f"({2**40},)"), bytes(8)), RuntimeError),
    "overflow": (file_of(HEADER.format("<f4", f"({2**62}, 4, 0)"), bytes(8)), RuntimeError),
    "negative": (file_of(HEADER.format("<f4", "(-1, -2)"), bytes(8)), RuntimeError),
    "code": (file_of("__import__('os').system('true')\n", bytes(8)), RuntimeError),
    "unknown dtype": (file_of(HEADER.format("<f3", "(2,)"), bytes(8)), RuntimeError),
    "pickle": (file_of(HEADER.format("|O", "(1,)"), b"cos\nsystem\n(S'true'\ntR."), TypeError),
    "text": (file_of(HEADER.format("<U2", "(1,)"), bytes(8)), TypeError),
    "nothing wide": (file_of(HEADER.format("<U0", "(5,)"), bytes(8)), TypeError),
    "time": (file_of(HEADER.format("<M8[s]", "(1,)"), bytes(8)), TypeError),
    "record": (file_of(HEADER.format([("a", "<f4")], "(1,)"), bytes(8), b"\2\0"), TypeError),
    "version 3": (file_of(HEADER.format("<f4", "(2,)"), bytes(8), b"\3\0"), TypeError),
    "deep": (file_of("(" * 5000), RuntimeError),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("mmap", [False, True])
def test_damaged_files_are_refused(tmp_path, name, mmap):
    content, error = BAD[name]
    (tmp_path / "t.npy").write_bytes(content)
    with pytest.raises(error):
        load_npy(tmp_path / "t.npy", mmap=mmap)


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("count", [100, 2**50])
def test_missing_elements_are_noticed_before_memory_is_allocated(tmp_path, count, mmap):
    (tmp_path / "t.npy").write_bytes(file_of(HEADER.format("<f4", f"({count},)"), bytes(399)))
    with pytest.raises(RuntimeError, match=f"takes {4 * count} bytes, but 399 are there"):
        load_npy(tmp_path / "t.npy", mmap=mmap)


def test_version_2_and_bytes_behind(tmp_path):
    (tmp_path / "t.npy").write_bytes(file_of(HEADER.format("<i2", "(2,)"), b"\1\0\2\0more", b"\2\0"))
    assert load_npy(tmp_path / "t.npy").tolist() == load_npy(tmp_path / "t.npy", mmap=True).tolist() == [1, 2]


def test_pickled_objects_are_named_as_the_reason(tmp_path):
    path = tmp_path / "objects.npy"
    np.save(path, np.array([None, {}], object), allow_pickle=True)
    with pytest.raises(TypeError, match="pickled objects, which are never loaded"):
        weft.io.load_npy(path)
