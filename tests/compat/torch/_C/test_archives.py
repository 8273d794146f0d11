"""Archives record by record, beside PyTorch's."""

import io
import zipfile

import pytest
import torch

import weft


@pytest.fixture
def content():
    buffer = io.BytesIO()
    torch.save({"a": torch.arange(4.0), "b": torch.ones(3, dtype=torch.int16)}, buffer)
    return buffer.getvalue()


def test_records_are_read_as_by_pytorch(content, tmp_path):
    (tmp_path / "file.pt").write_bytes(content)
    theirs = torch.PyTorchFileReader(io.BytesIO(content))
    for ours in (
        weft.PyTorchFileReader(io.BytesIO(content)),
        weft.PyTorchFileReader(str(tmp_path / "file.pt")),
    ):
        assert ours.get_all_records() == theirs.get_all_records()
        assert ours.has_record("data/0") and not ours.has_record("data/7")
        for name in theirs.get_all_records():
            assert ours.get_record(name) == theirs.get_record(name)
            for ask in ("get_record_size", "get_record_offset", "get_record_header_offset"):
                assert getattr(ours, ask)(name) == getattr(theirs, ask)(name)
        assert ours.serialization_id() == theirs.serialization_id()


@pytest.mark.parametrize("lib", [weft, torch])
def test_a_record_becomes_a_storage(lib, content):
    reader = lib.PyTorchFileReader(io.BytesIO(content))
    tensor = reader.get_storage_from_record("data/0", 4, lib.float32)
    assert (tensor.numel(), tensor.dtype) == (0, lib.float32)
    storage = tensor._typed_storage()._untyped_storage
    assert lib.empty(0).set_(storage, 0, (4,), (1,)).tolist() == [0, 1, 2, 3]
    assert reader.get_storage_from_record("data/1", 6, lib.UntypedStorage).untyped_storage().nbytes() == 6
    for count in (3, 40):
        with pytest.raises(RuntimeError, match="record size"):
            reader.get_storage_from_record("data/0", count, lib.float32)


@pytest.mark.parametrize("lib", [weft, torch])
def test_what_cannot_be_read(lib, content, tmp_path):
    with pytest.raises(RuntimeError, match="file not found"):
        lib.PyTorchFileReader(io.BytesIO(content)).get_record("data/7")
    with pytest.raises(RuntimeError, match="open file failed"):
        lib.PyTorchFileReader(str(tmp_path / "missing.pt"))
    with pytest.raises(RuntimeError, match="failed"):
        lib.PyTorchFileReader(io.BytesIO(b"no archive"))


@pytest.mark.parametrize("lib", [weft, torch])
def test_records_are_written(lib, tmp_path):
    buffer = io.BytesIO()
    for target in (buffer, str(tmp_path / "own.pt")):
        writer = lib.PyTorchFileWriter(target)
        writer.write_record("text", "abc", 3)
        writer.write_record("bytes", b"\0\1\2", 2)
        writer.write_record("storage", lib.arange(3, dtype=lib.uint8).untyped_storage(), 3)
        assert writer.get_all_written_records() == {"text", "bytes", "storage"}
        assert writer.archive_name() == ("archive" if target is buffer else "own")
        writer.write_end_of_file()
        assert writer.serialization_id()
        archive = zipfile.ZipFile(target)
        top = writer.archive_name()
        assert [archive.read(f"{top}/{name}") for name in ("text", "bytes", "storage")] == [
            b"abc",
            b"\0\1",
            b"\0\1\2",
        ]
