"""Archives that lie are refused, with what is wrong and where."""

import io
import random
import struct
import zipfile

import pytest
import torch

import weft
from weft.serialization.archive import Reader
from weft.serialization.source import Source


def archive(**changes) -> bytearray:
    file = io.BytesIO()
    weft.save({"a": weft.arange(100.0)}, file, **changes)
    return bytearray(file.getvalue())


def refusal(content: bytes) -> str:
    with pytest.raises(RuntimeError) as caught:
        weft.load(io.BytesIO(bytes(content)))
    return str(caught.value)


def entry(content: bytes, name: bytes) -> int:
    """Where the entry of a record in the central directory begins."""
    return content.rindex(name) - 46


def put(content: bytearray, at: int, form: str, *values: int) -> bytearray:
    struct.pack_into(form, content, at, *values)
    return content


RECORD = b"archive/data/0"


def test_damaged_bytes():
    content = archive()
    content[content.index(struct.pack("<f", 99.0))] ^= 1
    assert "the 400 bytes of record 'archive/data/0' are damaged: their checksum is" in refusal(content)


def test_damaged_bytes_in_a_large_record_that_threads_share(tmp_path):
    values = weft.arange(3_000_000)
    weft.save(values, tmp_path / "a.pt")
    assert weft.equal(weft.load(tmp_path / "a.pt"), values)
    content = bytearray((tmp_path / "a.pt").read_bytes())
    content[random.Random(0).randrange(10_000, 20_000_000)] ^= 1
    (tmp_path / "a.pt").write_bytes(content)
    with pytest.raises(RuntimeError, match="record 'a/data/0' are damaged"):
        weft.load(tmp_path / "a.pt")


def test_checksums_that_were_not_computed():
    weft.serialization.set_crc32_options(False)
    try:
        content = archive()
    finally:
        weft.serialization.set_crc32_options(True)
    assert struct.unpack_from("<L", content, entry(content, RECORD) + 16) == (0,)
    assert weft.load(io.BytesIO(content))["a"][3] == 3


def test_every_truncation():
    content = archive()
    for size in {*range(0, len(content), 37), *range(len(content) - 120, len(content))}:
        with pytest.raises((RuntimeError, EOFError)):
            weft.load(io.BytesIO(content[:size]))
    assert "failed finding central directory" in refusal(content[:-1])


def test_compressed_records():
    """A megabyte of zeros in a kilobyte: nothing is ever unpacked."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        new.writestr("a/data.pkl", b"\0" * 10**6)
        new.writestr("a/version", "3\n", zipfile.ZIP_STORED)
    assert "record 'a/data.pkl' is compressed (method 8," in refusal(file.getvalue())


def test_lying_sizes():
    content = archive()
    for size in (4000, 2**31, 2**32 - 2):
        lying = put(content.copy(), entry(content, RECORD) + 20, "<LL", size, size)
        assert "bytes, but between its header at byte" in refusal(lying)
    assert "the pickle says 400" in refusal(put(content.copy(), entry(content, RECORD) + 20, "<LL", 401, 401))
    assert "the pickle says 400" in refusal(put(content.copy(), entry(content, RECORD) + 20, "<LL", 399, 399))
    assert "no zip64 field" in refusal(
        put(content.copy(), entry(content, RECORD) + 20, "<LL", 2**32 - 1, 2**32 - 1)
    )
    assert "is compressed" in refusal(put(content.copy(), entry(content, RECORD) + 20, "<LL", 1, 400))


def test_lying_offsets():
    content = archive()
    version = content.index(b"archive/version") - 30
    at = entry(content, RECORD) + 42
    assert "another record's" in refusal(put(content.copy(), at, "<L", version - 500))
    for offset in (len(content), 2**32 - 2):
        assert "between its header" in refusal(put(content.copy(), at, "<L", offset))


def test_overlapping_records():
    """Two entries for one place, and a record that begins within another."""
    content = archive()
    first, second = entry(content, RECORD), entry(content, b"archive/byteorder")
    (place,) = struct.unpack_from("<L", content, first + 42)
    assert "another record's" in refusal(put(content.copy(), second + 42, "<L", place))
    forged = content.copy()
    header = forged.index(RECORD) - 30
    put(forged, header + 28, "<H", struct.unpack_from("<H", forged, header + 28)[0] + 64)
    assert "overlaps what follows" in refusal(forged)


def test_duplicate_names():
    file = io.BytesIO()
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(file, "w") as new:
        for _ in range(2):
            new.writestr("a/data.pkl", b"\x80\x02N.")
    assert "there are two records 'a/data.pkl'" in refusal(file.getvalue())


def test_a_directory_that_lies_about_itself():
    content = archive()
    end = len(content) - 22
    end64 = end - 20 - 56
    for place, form, value in (
        (end64 + 24, "<Q", 2**40),
        (end64 + 32, "<Q", 2**40),
        (end64 + 40, "<Q", 2**63),
        (end64 + 40, "<Q", 5),
        (end64 + 48, "<Q", 2**62),
        (end64 + 48, "<Q", 0),
        (end - 12, "<Q", 2**63),
        (end - 12, "<Q", 0),
    ):
        message = refusal(put(content.copy(), place, form, value))
        assert "directory" in message or "zip64" in message


def test_encryption_and_several_disks():
    content = archive()
    assert "encrypted" in refusal(put(content.copy(), entry(content, RECORD) + 8, "<H", 0x801))
    assert "on disk 3 of several" in refusal(put(content.copy(), entry(content, RECORD) + 34, "<H", 3))


def test_names_outside_of_the_folder_are_not_seen():
    content = archive()
    file = io.BytesIO(content)
    with zipfile.ZipFile(file, "a") as more:
        more.writestr("../../etc/passwd", "x")
        more.writestr("/data.pkl", "x")
        more.writestr("__MACOSX/archive/data.pkl", "x")
    assert weft.load(io.BytesIO(file.getvalue()))["a"].numel() == 100
    assert "passwd" not in " ".join(Reader(Source(io.BytesIO(file.getvalue()))).records)


def test_missing_records():
    for missing, message in (
        ("data.pkl", "locating file data.pkl"),
        ("data/0", "locating file data/0"),
        ("version", '"version"'),
    ):
        file = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(archive())) as old, zipfile.ZipFile(file, "w") as new:
            for name in old.namelist():
                if not name.endswith(f"archive/{missing}"):
                    new.writestr(name, old.read(name))
        assert message in refusal(file.getvalue())


@pytest.mark.parametrize("version", [b"11\n", b"99999999999999999999\n", b"x", b""])
def test_versions(version):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as new:
        new.writestr("a/data.pkl", b"\x80\x02N.")
        new.writestr("a/version", version)
    assert "the maximum supported version for reading is 10" in refusal(file.getvalue())


@pytest.mark.filterwarnings("ignore")
def test_torchscript(tmp_path):
    torch.jit.script(torch.nn.Linear(2, 2)).save(tmp_path / "s.pt")
    for options in ({}, {"weights_only": False}):
        with pytest.raises(RuntimeError, match="TorchScript archives"):
            weft.load(tmp_path / "s.pt", **options)
    with pytest.raises(ValueError, match="torchscript checkpoint"):
        weft.serialization.get_unsafe_globals_in_checkpoint(tmp_path / "s.pt")
    # The weights are loaded, but the code cannot run.
    with pytest.raises(NotImplementedError, match="TorchScript"):
        weft.jit.load(tmp_path / "s.pt")(weft.ones(2))


def test_records_begin_at_multiples_of_64():
    file = io.BytesIO()
    weft.save({"a" * n: weft.ones(n, dtype=weft.uint8) for n in range(1, 40)}, file)
    reader = Reader(Source(io.BytesIO(file.getvalue())))
    assert len(reader.records) > 40
    assert all(reader.offset(record) % 64 == 0 for record in reader.records.values())
