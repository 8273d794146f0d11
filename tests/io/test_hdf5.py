"""HDF5 files, against h5py."""

import os

import h5py
import numpy as np
import pytest
import torch

import weft
from weft.io import TensorInFile, load_hdf5, save_hdf5

DTYPES = list(weft.core.dtype.DTYPES.values())


def bits(tensor):
    return bytes(tensor.contiguous().flatten().view(weft.uint8).tolist()) if tensor.numel() else b""


def same(a, b):
    return a.dtype is b.dtype and a.shape == b.shape and bits(a) == bits(b)


def numbers(dtype, *shape):
    """Tensors of all bit patterns that a dtype of a byte has, or small numbers of wider ones."""
    count = int(np.prod(shape))
    if dtype.itemsize == 1 and dtype is not weft.bool:
        return weft.arange(count).to(weft.uint8).view(dtype).view(shape)
    return weft.arange(count).to(weft.uint8).to(dtype).view(shape)


# ---- Trees -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"chunks": True}, {"compression": "gzip"}, {"compression": "lzf", "chunks": (4, 2)}]
)
def test_every_dtype_returns_to_the_bit(tmp_path, options):
    tree = {dtype.name: numbers(dtype, 32, 8) for dtype in DTYPES}
    save_hdf5(tree, tmp_path / "t.h5", **options)
    loaded = load_hdf5(tmp_path / "t.h5")
    assert list(loaded) == list(tree)
    for name, tensor in tree.items():
        assert same(loaded[name], tensor), name
    with h5py.File(tmp_path / "t.h5") as file:
        assert file["bfloat16"].compression == (options.get("compression"))
        assert (file["bfloat16"].chunks is None) == (not options)


def test_trees_keep_their_containers_and_order(tmp_path):
    tree = {
        "z": [weft.ones(2), (weft.tensor(1), [], {}, ())],
        "a": {"model.weight": weft.nn.Parameter(weft.ones(1, 2)), "ü ": weft.empty(0, 3)},
        **{str(index): weft.tensor(index) for index in reversed(range(12))},
    }
    save_hdf5(tree, tmp_path / "t.h5", compression=4)
    loaded = load_hdf5(tmp_path / "t.h5")
    assert repr(loaded) == repr(tree).replace("Parameter containing:\n", "").replace(
        ", requires_grad=True", ""
    )
    save_hdf5([weft.ones(1)] * 11, tmp_path / "t.h5")
    assert repr(load_hdf5(tmp_path / "t.h5")) == repr([weft.ones(1)] * 11)


@pytest.mark.parametrize(
    "tensor",
    [
        weft.arange(24.0).view(2, 3, 4).transpose(0, 2),
        weft.ones(1).expand(3, 2),
        weft.tensor([1 + 2j, 3j]).conj(),
        weft.tensor([1 + 2j, 3j]).conj().imag,
        weft.tensor(2.0, dtype=weft.bfloat16),
        weft.empty(2, 0, dtype=weft.complex32),
    ],
)
def test_views(tmp_path, tensor):
    save_hdf5({"t": tensor}, tmp_path / "t.h5")
    assert same(load_hdf5(tmp_path / "t.h5")["t"], tensor.resolve_conj().resolve_neg())


@pytest.mark.parametrize(
    "tree, error, place",
    [
        ({"a": {"b": 1}}, TypeError, "/a/b"),
        (weft.ones(1), TypeError, "Tensor"),
        ({"a": {1: weft.ones(1)}}, ValueError, "/a: 1"),
        ({"a/b": weft.ones(1)}, ValueError, "a/b"),
        ({"": weft.ones(1)}, ValueError, "''"),
    ],
)
def test_what_is_no_tree_is_named_and_nothing_is_written(tmp_path, tree, error, place):
    save_hdf5({}, tmp_path / "t.h5")
    before = (tmp_path / "t.h5").read_bytes()
    with pytest.raises(error, match=place):
        save_hdf5(tree, tmp_path / "t.h5")
    assert os.listdir(tmp_path) == ["t.h5"] and (tmp_path / "t.h5").read_bytes() == before


# ---- Other programs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [weft.bfloat16, weft.float8_e5m2, weft.float8_e4m3fn, weft.float8_e4m3fnuz])
def test_h5py_reads_the_narrow_floats_as_numbers(tmp_path, dtype):
    values = weft.tensor([1.5, -2.0, 0.25, 96.0, 0.0])
    save_hdf5({"t": values.to(dtype)}, tmp_path / "t.h5")
    with h5py.File(tmp_path / "t.h5") as file:
        assert file["t"].dtype.kind == "f"
        assert file["t"][:].tolist() == values.tolist()


def test_tensors_are_accepted_and_slices_become_tensors(tmp_path):
    with h5py.File(tmp_path / "t.h5", "w") as file:
        for name in ("bool", "uint8", "int64", "float16", "float32", "complex64"):
            mine = weft.arange(6).to(weft.uint8).to(getattr(weft, name)).view(3, 2)
            theirs = torch.arange(6).to(torch.uint8).to(getattr(torch, name)).view(3, 2)
            for tensor, key in ((mine, f"mine {name}"), (theirs, f"theirs {name}")):
                file.create_dataset(key, data=tensor, chunks=True, compression="gzip")
            assert file[f"mine {name}"].dtype == file[f"theirs {name}"].dtype
            assert same(weft.from_numpy(file[f"theirs {name}"][-2:]), mine[-2:])
        file["mine float32"][0] = weft.tensor([7.0, 8.0])
        assert weft.from_numpy(file["mine float32"][...])[0].tolist() == [7, 8]
        with pytest.raises(RuntimeError, match="requires grad"):
            file.create_dataset("grad", data=weft.ones(2, requires_grad=True))


def test_files_of_other_programs(tmp_path):
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["group/big endian"] = np.arange(3, dtype=">i4")
        file["colour"] = np.array(1, h5py.enum_dtype({"RED": 0, "BLUE": 1}, np.int8))
        file["again"] = file["group/big endian"]
        file["again"].attrs["units"] = "m"
    loaded = load_hdf5(tmp_path / "t.h5")
    assert loaded["group"]["big endian"].tolist() == [0, 1, 2] and loaded["colour"].item() == 1
    assert loaded["again"] is loaded["group"]["big endian"]  # one object under two names


@pytest.mark.parametrize(
    "content", ["text", [("a", "b")], np.void(b"ab"), h5py.Empty("f4"), np.ones(1, "f4,i4")]
)
def test_what_is_no_tensor_is_named(tmp_path, content):
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["group/one"] = content
    with pytest.raises(TypeError, match="/group/one"):
        load_hdf5(tmp_path / "t.h5")


# ---- Slices ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [weft.float32, weft.bfloat16, weft.complex32, weft.bool])
@pytest.mark.parametrize(
    "index",
    [
        (), ..., 0, -1, slice(None), slice(-2, None), slice(1, 4, 2), slice(3, 1), (slice(None), 2), (1, 2, 3),
        (..., 3), (0, ..., slice(0, 4, 3)), (slice(2), slice(1, 2), slice(-3, -1)), (slice(0), ...),
    ],
)  # fmt: skip
def test_lazy_slices_are_those_of_the_tensor(tmp_path, dtype, index):
    tensor = numbers(dtype, 5, 3, 4)
    save_hdf5({"t": [tensor]}, tmp_path / "t.h5", compression="gzip")
    lazy = load_hdf5(tmp_path / "t.h5", lazy=True)["t"][0]
    assert isinstance(lazy, TensorInFile)
    assert (lazy.shape, lazy.dtype, len(lazy)) == (tensor.shape, dtype, 5)
    assert same(lazy[index], tensor[index])


@pytest.mark.parametrize(
    "index, error",
    [
        (5, IndexError), (-6, IndexError), ((0, 0, 0, 0), IndexError), ((..., ...), IndexError),
        (slice(None, None, -1), ValueError), (slice(None, None, 0), ValueError), (1.5, TypeError), ("a", TypeError),
        (None, TypeError), ([0, 1], TypeError),
    ],
)  # fmt: skip
def test_what_is_no_index_of_a_lazy_tensor(tmp_path, index, error):
    save_hdf5({"t": weft.ones(5, 3, 4)}, tmp_path / "t.h5")
    with pytest.raises(error):
        load_hdf5(tmp_path / "t.h5", lazy=True)["t"][index]


def test_a_file_is_open_as_long_as_a_lazy_tensor(tmp_path):
    def is_open():
        return any(os.path.realpath(f"/proc/self/fd/{each}") == path for each in os.listdir("/proc/self/fd"))

    path = os.path.realpath(tmp_path / "t.h5")
    save_hdf5({"a": weft.ones(2), "b": {"c": weft.zeros(1)}}, path)
    load_hdf5(path)
    if os.path.exists("/proc/self/fd"):
        assert not is_open()
    tree = load_hdf5(path, lazy=True)
    last = tree["b"]["c"]
    del tree
    assert last[0].item() == 0
    if os.path.exists("/proc/self/fd"):
        assert is_open()
        del last
        assert not is_open()


def test_reading_a_slice_reads_no_more(tmp_path):
    """A dataset of a terabyte of which one chunk was written."""
    with h5py.File(tmp_path / "t.h5", "w") as file:
        dataset = file.create_dataset("t", (2**20, 2**18), "f4", chunks=(16, 16))
        dataset[1000, 5] = 1
    assert load_hdf5(tmp_path / "t.h5", lazy=True)["t"][1000, 4:7].tolist() == [0, 1, 0]
    with pytest.raises(RuntimeError, match="1024 bytes are stored.*lazy=True"):
        load_hdf5(tmp_path / "t.h5")


# ---- Hostile files ---------------------------------------------------------------------------------------------------


def hostile(name, path):
    with h5py.File(path, "w") as file:
        if name == "soft link":
            file["link"] = h5py.SoftLink("/etc")
        elif name == "external link":
            file["link"] = h5py.ExternalLink("/etc/passwd", "/")
        elif name == "external storage":
            file.create_dataset("link", (10,), "u1", external="/etc/passwd")
        elif name == "virtual":
            layout = h5py.VirtualLayout((10,), "u1")
            layout[:] = h5py.VirtualSource("/etc/passwd", "a", (10,))
            file.create_virtual_dataset("link", layout)
        elif name == "cycle":
            group = file.create_group("a/link")
            group["back"] = file["a"]
        elif name == "zeros":
            file.create_dataset("link", (2**40,), "u1", chunks=(2**20,), compression="gzip")[:1] = 1
        elif name == "large chunks":
            file.create_dataset("link", (2**31,), "u1", chunks=(2**31,), compression="gzip")


@pytest.mark.parametrize(
    "name, words",
    [
        ("soft link", "link"), ("external link", "link"), ("external storage", "other files"),
        ("virtual", "other files"), ("cycle", "contains itself"), ("zeros", "are stored"), ("large chunks", "are stored"),
    ],
)  # fmt: skip
def test_hostile_files_are_refused(tmp_path, name, words):
    hostile(name, tmp_path / "t.h5")
    with pytest.raises(RuntimeError, match=words):
        load_hdf5(tmp_path / "t.h5")


def test_a_tree_of_many_names_is_not_larger_than_its_objects(tmp_path):
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["0/t"] = np.ones(1)
        for level in range(1, 40):
            for name in "ab":
                file.require_group(str(level))[name] = file[str(level - 1)]
    assert load_hdf5(tmp_path / "t.h5")["39"]["a"]["b"]["b"]["a"]


def test_files_that_are_not_there_or_no_hdf5(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_hdf5(tmp_path / "t.h5")
    (tmp_path / "t.h5").write_bytes(b"no")
    with pytest.raises(RuntimeError, match=r"t\.h5"):
        load_hdf5(tmp_path / "t.h5")
