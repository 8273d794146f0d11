"""Loading: where storages go, mapped files, the formats of old, and errors."""

import io
import os
import re
import struct
import warnings

import pytest
import torch
from serialization import fuzz

import weft
from weft.serialization import legacy, loading


def saved(value, **options) -> io.BytesIO:
    file = io.BytesIO()
    weft.save(value, file, **options)
    file.seek(0)
    return file


def on_cuda(zipped=True) -> io.BytesIO:
    """A file that says its tensor was on a GPU."""
    content = saved(weft.ones(2), _use_new_zipfile_serialization=zipped).getvalue()
    if not zipped:
        return io.BytesIO(content.replace(b"X\3\0\0\0cpu", b"X\6\0\0\0cuda:1"))
    import zipfile

    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"X\3\0\0\0cpu", b"X\6\0\0\0cuda:1"))
    file.seek(0)
    return file


# ---- Places ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zipped", [True, False])
class TestMapLocation:
    @pytest.mark.parametrize(
        "place",
        [
            "cpu",
            b"cpu",
            weft.device("cpu"),
            {"cuda:1": "cpu"},
            lambda storage, location: storage,
            lambda storage, location: storage.clone() if location == "cuda:1" else None,
        ],
    )
    def test_to_the_cpu(self, zipped, place):
        assert weft.load(on_cuda(zipped), map_location=place).tolist() == [1, 1]

    @pytest.mark.parametrize("place", ["meta", weft.device("meta"), {"cuda:1": "meta"}])
    def test_to_meta(self, zipped, place):
        found = weft.load(on_cuda(zipped), map_location=place)
        assert found.is_meta and found.shape == (2,)

    @pytest.mark.parametrize("place", [None, "cuda", {"cpu": "cpu"}, lambda storage, location: None])
    def test_a_device_that_is_not_there(self, zipped, place):
        with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device but"):
            weft.load(on_cuda(zipped), map_location=place)

    def test_unknown_places(self, zipped):
        with pytest.raises(RuntimeError, match=r"don't know how to restore .* \(tagged with nowhere\)"):
            weft.load(on_cuda(zipped), map_location="nowhere")
        with pytest.raises(RuntimeError, match="The HPU device module is not registered"):
            weft.load(on_cuda(zipped), map_location="hpu")
        with pytest.raises(TypeError):
            weft.load(on_cuda(zipped), map_location=5)

    def test_functions_see_untyped_storages_with_their_bytes(self, zipped):
        seen = []
        weft.load(
            on_cuda(zipped),
            map_location=lambda storage, location: seen.append((type(storage), location)) or storage,
        )
        assert seen == [(weft.UntypedStorage, "cuda:1")]


def test_errors_of_map_location_are_its_own():
    def fail(storage, location):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        weft.load(saved(weft.ones(2)), map_location=fail)


def test_packages_of_users(monkeypatch):
    from weft.serialization import locations

    monkeypatch.setattr(locations, "_registry", list(locations._registry))
    weft.serialization.register_package(
        5, lambda storage: "moon", lambda storage, location: storage.clone() if location == "moon" else None
    )
    assert weft.serialization.location_tag(weft.ones(1).untyped_storage()) == "moon"
    file = saved(weft.ones(2))
    assert b"moon" in file.getvalue() and weft.load(file).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="tagged with moon"):
        torch.load(io.BytesIO(file.getvalue()))


# ---- Mapped files ----------------------------------------------------------------------------------------------------


def test_mapped_tensors_lie_in_the_file(tmp_path):
    path = tmp_path / "a.pt"
    whole = weft.arange(1000.0)
    weft.save([whole, whole[500:], weft.empty(0)], path)
    for written in ("private", "shared"):
        flags = getattr(weft.serialization, f"MAP_{written.upper()}")
        with weft.serialization.set_default_mmap_options(flags):
            found, half, nothing = weft.load(path, mmap=True)
        assert half.untyped_storage() is found.untyped_storage() and nothing.numel() == 0
        assert not found.untyped_storage().resizable()
        half[0] = -1
        assert found[500] == -1
        assert weft.load(path)[0][500] == (500 if written == "private" else -1)
    assert weft.serialization.get_default_mmap_options() == weft.serialization.MAP_PRIVATE
    with pytest.raises(ValueError, match="expected mmap.MAP_PRIVATE or mmap.MAP_SHARED"):
        weft.serialization.set_default_mmap_options(12345)


def test_records_that_are_not_aligned_are_copied(tmp_path):
    import zipfile

    with zipfile.ZipFile(saved(weft.arange(10.0))) as old, zipfile.ZipFile(tmp_path / "a.pt", "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    assert (weft.load(tmp_path / "a.pt", mmap=True) + 1).tolist() == list(range(1, 11))


def test_a_file_that_is_replaced_while_it_is_mapped(tmp_path, monkeypatch):
    """Places in the old file must not be looked up in the new one, which may be shorter."""
    path = tmp_path / "a.pt"
    weft.save(weft.ones(100_000), path)
    memmap = loading.np.memmap

    def replaced_just_then(*arguments, **options):
        weft.save(weft.zeros(1), path)
        return memmap(*arguments, **options)

    monkeypatch.setattr(loading.np, "memmap", replaced_just_then)
    assert weft.load(path, mmap=True).sum() == 100_000
    assert weft.load(path).shape == (1,)


def test_a_file_that_grows_while_it_is_mapped(tmp_path, monkeypatch):
    path = tmp_path / "a.pt"
    weft.save(weft.ones(100_000), path)
    content = path.read_bytes()
    path.write_bytes(content[:1000])
    reader = loading.Reader

    def grown_just_then(source):
        path.write_bytes(content)
        source.size = len(content)
        return reader(source)

    monkeypatch.setattr(loading, "Reader", grown_just_then)
    with pytest.raises(RuntimeError, match="changed while it was opened"):
        weft.load(path, mmap=True)


class Path:
    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return self.path


@pytest.mark.parametrize("encode", [str, os.fsencode])
def test_other_kinds_of_paths(tmp_path, encode):
    path = Path(encode(tmp_path / "a.pt"))
    weft.save(weft.ones(3), path)
    assert weft.load(path).sum() == weft.load(path, mmap=True).sum() == 3


def test_file_objects_that_give_a_little_at_a_time():
    class Slow(io.BytesIO):
        def readinto(self, memory):
            return super().readinto(memory[:100])

        def read(self, size=-1):
            return super().read(min(size, 100) if size > 0 else size)

    content = saved(weft.arange(1000.0)).getvalue()
    assert weft.load(Slow(content)).sum() == 499_500
    behind = io.BytesIO(b"something else" + content)
    behind.seek(14)
    assert weft.load(behind).sum() == 499_500


def test_what_cannot_be_mapped(tmp_path):
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        weft.load(saved(1), mmap=True)
    weft.save(1, tmp_path / "a.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        weft.load(tmp_path / "a.pt", mmap=True)


# ---- The oldest format -----------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_tar_archives(tmp_path):
    (tmp_path / "a.tar").write_bytes(fuzz.tar_file((1.0, 2.0, 3.0)))
    theirs = torch.load(tmp_path / "a.tar", weights_only=False)
    for source in (tmp_path / "a.tar", io.BytesIO(fuzz.tar_file((1.0, 2.0, 3.0)))):
        for options in ({}, {"weights_only": False}):
            mine = weft.load(source, **options)
            assert {key: tensor.tolist() for key, tensor in mine.items()} == {"t": [1, 2, 3], "v": [2, 3]}
            assert mine["t"].untyped_storage() is mine["v"].untyped_storage()
            if not isinstance(source, os.PathLike):
                source.seek(0)
    assert theirs["v"].tolist() == [2, 3]


def header(name: bytes, size: bytes, kind: bytes = b"0") -> bytes:
    content = bytearray(512)
    content[: len(name)], content[124:136], content[156:157], content[257:263] = name, size, kind, b"ustar\0"
    return bytes(content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            header(b"storages", b"\x80" + (2**60).to_bytes(11, "big")),
            "said to have 1152921504606846976 bytes",
        ),
        (header(b"storages", b"\xff" * 12), "is no number of bytes"),
        (header(b"x", b"-0000000010\0"), "is no number of bytes"),
        (header(b"x", b"\0" * 12), "is no number of bytes"),
        (header(b"x", b"\x80" + (2**40).to_bytes(11, "big"), b"L"), "has no file 'storages'"),
        (header(b"x", b"%011o\0" % 10**6, b"x") + b"1" * 10**6, "has no file 'storages'"),
        (header(b"storages", b"00000000000\0") * 2, "two files 'storages'"),
        (header(b"storages", b"00000000000\0", b"2"), "has no file 'storages'"),
    ],
)
def test_tar_archives_that_lie(content, message):
    with pytest.raises(RuntimeError, match=message):
        weft.load(io.BytesIO(content + bytes(1024)))


def test_views_of_storages_in_old_streams():
    """PyTorch 0.1 wrote storages that are parts of others."""
    import pickle

    content = b"".join(
        fuzz._pickles(value) for value in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})
    )
    storage = b"(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0aX\3\0\0\0cpuK\4(X\1\0\0\0vK\1K\2ttQ"
    tensor = b"ctorch._utils\n_rebuild_tensor\n(" + storage + b"K\0K\2\x85K\1\x85tR"
    content += b"\x80\2" + tensor + b"." + pickle.dumps(["a"], 2) + struct.pack("<q4f", 4, 1, 2, 3, 4)
    assert weft.load(io.BytesIO(content)).tolist() == [2, 3]
    with pytest.raises(RuntimeError, match="are no part of a storage of 16 bytes"):
        weft.load(io.BytesIO(content.replace(b"vK\1K\2", b"vK\1K\4")))


def test_views_stay_where_they_are_when_their_storage_grows():
    root = weft.UntypedStorage([1, 2, 3, 4])
    view = legacy.part(root, 1, 2)
    root.resize_(100_000)
    assert [weft.UntypedStorage(4) for _ in range(50)] and view.tolist() == [2, 3]


def test_old_streams_whose_storages_are_too_long():
    content = saved(weft.ones(3), _use_new_zipfile_serialization=False).getvalue()
    for size in range(0, len(content), 7):
        with pytest.raises((EOFError, RuntimeError)):
            weft.load(io.BytesIO(content[:size]))
    huge = re.sub(rb"(cpuq.)K\x03", lambda found: found[1] + b"J\xff\xff\xff\x7f", content)
    assert huge != content
    with pytest.raises(EOFError, match="are said to have 8589934588 bytes, but the file ends after"):
        weft.load(io.BytesIO(huge))


# ---- Errors ----------------------------------------------------------------------------------------------------------


def test_errors(tmp_path):
    import pickle

    with pytest.raises(FileNotFoundError):
        weft.load(tmp_path / "none.pt")
    with pytest.raises(EOFError):
        weft.load(io.BytesIO(b""))
    with pytest.raises(RuntimeError, match="Invalid magic number; corrupt file"):
        weft.load(io.BytesIO(pickle.dumps({"a": 1}, 2)))
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        weft.load(io.BytesIO(b"hello, this is a text"))
    with pytest.raises(AttributeError, match="You can only torch.load from a file that is seekable"):
        weft.load(None)
    with pytest.raises(
        RuntimeError, match="Can not safely load weights when explicit pickle_module is specified"
    ):
        weft.load(saved(1), pickle_module=pickle, weights_only=True)
    with pytest.raises(ValueError, match="Expected input to be a checkpoint returned by torch.save"):
        weft.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(b"hello"))


def test_a_tensor_outside_of_its_storage():
    """Sizes, strides and offsets that reach further than the record."""
    content = saved(weft.ones(3), _use_new_zipfile_serialization=False).getvalue()
    for old, new in (
        (b"K\0K\3\x85", b"K\1K\3\x85"),
        (b"K\0K\3\x85", b"K\0K\4\x85"),
        (b"K\1\x85", b"K\2\x85"),
    ):
        assert content.count(old) == 1
        with pytest.raises(RuntimeError, match="out of bounds for storage of size 12"):
            weft.load(io.BytesIO(content.replace(old, new)))


def test_trust_can_be_withdrawn_from_outside(monkeypatch):
    import collections
    import pickle

    file = saved(collections.defaultdict(list))
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(
        pickle.UnpicklingError, match="GLOBAL collections.defaultdict was not an allowed global"
    ):
        weft.load(file, weights_only=False)


def test_warnings():
    with pytest.warns(UserWarning, match="pickle_load_args only works"):
        weft.load(saved(1), encoding="latin1")
    with pytest.warns(UserWarning, match="runs whatever code the file contains"):
        weft.load(saved(1), weights_only=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weft.load(saved({"a": weft.ones(2)}))


@pytest.mark.filterwarnings("ignore")
def test_files_of_python_2():
    """Strings are bytes there; `encoding` says what they mean."""
    content = b"".join(fuzz._pickles(value) for value in (0x1950A86A20F9469CFC6C, 1001, {}))
    content += b"\x80\2U\3a\xe9b." + fuzz._pickles([])
    assert weft.load(io.BytesIO(content), encoding="latin1") == "aéb"
    assert weft.load(io.BytesIO(content), encoding="bytes", weights_only=False) == b"a\xe9b"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("little_endian", [True, False])
def test_tensors_of_python_2(weights_only, little_endian):
    """With encoding="bytes" the keys of storages, of views and of the description of the machine are bytes, too."""
    system = b"\x80\2}U\x0dlittle_endian" + (b"\x88" if little_endian else b"\x89") + b"s."
    view = b"(U\4viewK\1K\1t"  # key, offset, number of elements
    identity = b"(U\7storagectorch\nFloatStorage\nU\3keyU\3cpuK\2" + view + b"tQ"
    tensor = b"\x80\2ctorch._utils\n_rebuild_tensor_v2\n(" + identity + b"K\0K\1\x85K\1\x85\x89NtR."
    content = b"".join(fuzz._pickles(value) for value in (0x1950A86A20F9469CFC6C, 1001)) + system + tensor
    order = "<" if little_endian else ">"
    content += b"\x80\2]U\3keya." + struct.pack("<q", 2) + struct.pack(f"{order}2f", 1.0, 2.5)
    found = weft.load(io.BytesIO(content), encoding="bytes", weights_only=weights_only)
    assert found.tolist() == [2.5]


FROM_NUMBERS = {
    "coo": lambda t: t.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse(),
    "csr": lambda t: t.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_csr(),
    "one scale": lambda t: t.quantize_per_tensor(t.tensor([0.5, 2.0]), 0.1, 3, t.quint8),
    "scales": lambda t: t.quantize_per_channel(
        t.tensor([[0.5], [2.0]]), t.tensor([0.1, 0.2]), t.tensor([1, 2]), 0, t.quint8
    ),
    "jagged": lambda t: t.nested.nested_tensor([t.ones(2, 3), t.zeros(3, 3)], layout=t.jagged),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", FROM_NUMBERS)
@pytest.mark.parametrize("writer", [weft, torch])
@pytest.mark.parametrize("weights_only", [True, False])
def test_streams_with_tensors_that_are_made_from_numbers(kind, writer, weights_only):
    """The numbers come behind the pickle: before they are read, the memory of indices and scales has any content."""

    def numbers(x):
        return (
            [each.tolist() for each in x.unbind()]
            if x.is_nested
            else (x.int_repr() if x.is_quantized else x.to_dense()).tolist()
        )

    file = io.BytesIO()
    value = {"x": FROM_NUMBERS[kind](writer), "y": writer.ones(2)}
    writer.save(value, file, _use_new_zipfile_serialization=False)
    writer.save(1, file, _use_new_zipfile_serialization=False)  # another object in the same file
    file.seek(0)
    _ = [weft.full((size,), -7) for size in range(1, 40)]  # leaves numbers in memory that is used next
    found = weft.load(file, weights_only=weights_only)
    assert numbers(found["x"]) == numbers(value["x"]) and found["y"].tolist() == [1, 1]
    assert weft.load(file, weights_only=weights_only) == 1


@pytest.mark.filterwarnings("ignore")
def test_wrong_indices_in_a_stream_are_refused():
    x = torch.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (6,))
    file = io.BytesIO()
    torch.save(x, file, _use_new_zipfile_serialization=False)
    content = file.getvalue()
    place = content.rindex(struct.pack("<2q", 0, 5))
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        weft.load(io.BytesIO(content[:place] + struct.pack("<2q", 0, 6) + content[place + 16 :]))
