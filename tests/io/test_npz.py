"""NumPy's .npz files, against NumPy."""

import io
import struct
import zipfile

import numpy as np
import pytest

import weft
from weft.io import load_npz, save_npz

TENSORS = {
    "weight": weft.arange(1000.0).view(10, 100),
    "layer.bias": weft.tensor(3),
    "folder/ü": weft.tensor([True, False]),
    "turned": weft.arange(6).view(2, 3).t(),
    "empty": weft.empty(0, 2),
}


@pytest.mark.parametrize("compressed", [False, True])
def test_numpy_and_weft_read_each_other(tmp_path, compressed):
    save_npz(TENSORS, tmp_path / "mine.npz", compressed=compressed)
    with np.load(tmp_path / "mine.npz") as loaded:
        assert loaded.files == list(TENSORS)
        for name, tensor in TENSORS.items():
            np.testing.assert_array_equal(loaded[name], tensor.numpy(), strict=True)
    write = np.savez_compressed if compressed else np.savez
    write(tmp_path / "theirs.npz", **{name: tensor.numpy() for name, tensor in TENSORS.items()})
    for name in ("mine.npz", "theirs.npz"):
        for mmap in (False, True):
            loaded = load_npz(tmp_path / name, mmap=mmap)
            assert list(loaded) == list(TENSORS)
            assert all(
                loaded[key].dtype is tensor.dtype and weft.equal(loaded[key], tensor)
                for key, tensor in TENSORS.items()
            )


def test_files_of_ours_are_mapped(tmp_path):
    save_npz(TENSORS, tmp_path / "t.npz")
    content = (tmp_path / "t.npz").read_bytes()
    loaded = load_npz(tmp_path / "t.npz", mmap=True)
    start = loaded["weight"].untyped_storage().data_ptr()
    for tensor in loaded.values():
        assert tensor.data_ptr() % 64 == 0 and (
            not tensor.numel() or 0 <= tensor.data_ptr() - start < len(content)
        )
    loaded["weight"].zero_()
    assert (tmp_path / "t.npz").read_bytes() == content


def test_equal_content_is_equal_bytes(tmp_path):
    for name in "ab":
        save_npz(TENSORS, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_dtypes_that_the_format_cannot_name(tmp_path):
    with pytest.raises(TypeError, match="bfloat16"):
        save_npz({"a": weft.ones(1).bfloat16()}, tmp_path / "t.npz")
    with pytest.raises(TypeError, match="int"):
        save_npz({"a": 1}, tmp_path / "t.npz")
    with pytest.raises(ValueError, match="null character"):
        save_npz({"a\0b": weft.ones(1)}, tmp_path / "t.npz")


# ---- Damage ----------------------------------------------------------------------------------------------------------


def npy(values):
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def archive(path, members, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in members:
            file.writestr(name, content)


def test_pickled_objects_are_never_loaded(tmp_path):
    np.savez(tmp_path / "t.npz", a=np.array([print], object))
    with pytest.raises(TypeError, match="a.npy.*pickled"):
        load_npz(tmp_path / "t.npz")


def test_checksums_are_verified(tmp_path):
    archive(tmp_path / "t.npz", [("a.npy", npy(np.zeros(4)))])
    content = bytearray((tmp_path / "t.npz").read_bytes())
    content[content.index(b" \n") + 4] ^= 1  # the newline ends the header of the array
    (tmp_path / "t.npz").write_bytes(content)
    with pytest.raises(RuntimeError, match="CRC"):
        load_npz(tmp_path / "t.npz")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    "members, words",
    [
        ([("a.npy", npy(np.zeros(4))[:-1])], "31 are there"),
        ([("a.npy", npy(np.zeros(4)) + b"x")], "33 are there"),
        ([("a.npy", npy(np.zeros(4)))] * 2, "the same name"),
        ([("a.npy", npy(np.zeros(4))), ("a", npy(np.zeros(4)))], "the same name"),
        ([("a.npy", b"")], "a.npy|EOF"),
        ([("a.txt", b"text")], "magic"),
    ],
)
@pytest.mark.parametrize("mmap", [False, True])
def test_members_that_are_no_arrays(tmp_path, members, words, mmap):
    archive(tmp_path / "t.npz", members)
    with pytest.raises(RuntimeError, match=words):
        load_npz(tmp_path / "t.npz", mmap=mmap)


@pytest.mark.parametrize("mmap", [False, True])
def test_members_that_claim_more_than_they_have(tmp_path, mmap):
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        archive(tmp_path / "t.npz", [("a.npy", npy(np.zeros(4)))], method)
        content = bytearray((tmp_path / "t.npz").read_bytes())
        directory = content.rindex(b"PK\1\2")
        struct.pack_into("<L", content, directory + 24, 2**31)
        (tmp_path / "t.npz").write_bytes(content)
        with pytest.raises(RuntimeError, match="cannot hold"):
            load_npz(tmp_path / "t.npz", mmap=mmap)


def test_other_compressions_and_no_archives(tmp_path):
    archive(tmp_path / "t.npz", [("a.npy", npy(np.zeros(4)))], zipfile.ZIP_BZIP2)
    with pytest.raises(RuntimeError, match="method 12"):
        load_npz(tmp_path / "t.npz")
    (tmp_path / "t.npz").write_bytes(b"no")
    with pytest.raises(RuntimeError, match="t.npz"):
        load_npz(tmp_path / "t.npz")
    with pytest.raises(FileNotFoundError):
        load_npz(tmp_path / "none.npz")
