"""CRC-32 by folding."""

import os
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.serialization import checksum, folding
from weft.serialization.source import FileSource


@given(st.binary(max_size=3000), st.integers(0, 2**32 - 1))
def test_as_zlib(content, start):
    assert folding.crc32(content, start) == zlib.crc32(content, start)


@pytest.mark.parametrize("widths", [(), (1,), (4, 1)])
def test_every_kind_of_processor(monkeypatch, widths):
    if not set(widths) <= set(folding.widths()):
        pytest.skip(f"this processor has no registers of the widths {widths}")
    monkeypatch.setattr(folding, "widths", lambda: widths)
    content = os.urandom(100_003)
    assert folding.crc32(memoryview(content)[1:]) == zlib.crc32(content[1:])


@given(st.binary(max_size=50), st.binary(max_size=50))
def test_pieces_are_combined(first, second):
    assert folding.combine(zlib.crc32(first), zlib.crc32(second), len(second)) == zlib.crc32(first + second)


def test_constants_of_the_published_algorithm():
    assert [folding.power(n) for n in (544, 480, 160, 96)] == [
        0x154442BD4,
        0x1C6E41596,
        0x1751997D0,
        0x0CCAA009E,
    ]


@pytest.mark.parametrize("size", [6000, 6001, 6002])
def test_threads_read_a_file_to_its_end(monkeypatch, tmp_path, size):
    monkeypatch.setattr(checksum, "READ_SHARED", 1000)
    monkeypatch.setattr(checksum, "get_num_threads", lambda: 3)
    content = os.urandom(size)
    (tmp_path / "file").write_bytes(b"before" + content)
    memory = bytearray(size)
    with open(tmp_path / "file", "rb") as file:
        assert checksum.reading(FileSource(file), 6, memoryview(memory)) == zlib.crc32(content)
    assert memory == content
