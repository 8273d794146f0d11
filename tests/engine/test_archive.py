"""An archive gives back what was appended or nothing, whatever happens to its file."""

import hashlib
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from weft.engine import archive
from weft.engine.archive import Archive


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(archive, "_QUIET_S", 0)


@pytest.fixture(params=[4 << 20, 100], ids=["in memory", "in the file"])
def path(request, monkeypatch, tmp_path):
    monkeypatch.setattr(archive, "_KEPT", request.param)
    return tmp_path / "archive"


def key(number):
    return hashlib.sha256(str(number).encode()).digest()


def content(number):
    return bytes([number % 256]) * (number % 300)


def filled(path, count):
    found = Archive(path)
    for number in range(count):
        found.append(key(number), content(number))
    return found


def test_what_is_appended_is_found_by_all(path, monkeypatch):
    monkeypatch.setattr(archive, "_BLOCK", 200)
    reader = Archive(path)
    assert reader.load(key(0)) is None
    writer = filled(path, 400)
    for each in (reader, writer, Archive(path)):
        assert [each.load(key(number)) for number in range(400)] == [content(number) for number in range(400)]
        assert each.load(key(400)) is None


def test_the_first_content_of_a_key_stays(path):
    filled(path, 2)
    other = Archive(path)
    other.append(key(1), b"other")
    assert other.load(key(1)) == content(1)


def test_a_record_without_its_end_is_cut_off(path):
    whole = filled(path, 3).size
    for size in range(whole):
        path.unlink(missing_ok=True)
        filled(path, 3)
        os.truncate(path, size)
        damaged = Archive(path)
        for number in range(3):
            assert damaged.load(key(number)) in (content(number), None)
        damaged.append(key(3), b"more")
        assert Archive(path).load(key(3)) == b"more"


def test_a_process_notices_that_a_file_has_become_shorter_or_another_one(path):
    known = filled(path, 9)
    os.truncate(path, known.size - 50)
    known.append(key(9), b"more")
    assert Archive(path).load(key(9)) == known.load(key(9)) == b"more"
    path.unlink()
    assert known.load(key(20)) is None
    filled(path, 25)
    assert known.load(key(20)) == content(20)


def test_no_flipped_bit_is_believed(path):
    filled(path, 3)
    whole = path.read_bytes()
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        found = Archive(path)
        assert all(found.load(key(number)) in (content(number), None) for number in range(3))
        for number in range(3):
            found.append(key(number), content(number))
        assert all(Archive(path).load(key(number)) == content(number) for number in range(3)), position


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_is_not_read(path, mode):
    filled(path, 2)
    path.chmod(mode)
    assert Archive(path).load(key(1)) is None
    size = path.stat().st_size
    Archive(path).append(key(5), b"more")
    assert path.stat().st_size == size


def test_a_full_disk_leaves_complete_records(path, monkeypatch):
    found = filled(path, 2)
    write = os.write
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda file, data: write(file, data[:20]))
        found.append(key(2), content(2))
    assert found.load(key(2)) is None and path.stat().st_size == found.size
    found.append(key(2), content(2))
    assert Archive(path).load(key(2)) == content(2)


def test_threads_may_share_an_archive(path):
    found = Archive(path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: found.append(key(number % 64), content(number % 64)), range(256)))
    assert all(
        each.load(key(number)) == content(number) for each in (found, Archive(path)) for number in range(64)
    )


WRITE = """
import hashlib, pathlib, random, sys
from weft.engine import archive
archive._QUIET_S = 0
found = archive.Archive(pathlib.Path(sys.argv[1]))
random.seed(int(sys.argv[2]))
for turn in range(2000):
    number = random.randrange(1000)
    key, content = hashlib.sha256(str(number).encode()).digest(), bytes([number % 256]) * (number % 300)
    found.append(key, content)
    assert found.load(key) in (content, None)
    if turn % 500 == 499:
        found.move(pathlib.Path(sys.argv[1] + ".old"), 1000)
"""


def test_processes_may_share_an_archive(tmp_path):
    path = tmp_path / "archive"
    writers = [subprocess.Popen([sys.executable, "-c", WRITE, path, str(seed)]) for seed in range(4)]
    assert [writer.wait(120) for writer in writers] == [0] * 4
    for each in (path, tmp_path / "archive.old"):
        if each.exists():
            found = Archive(each)
            found.load(key(0))
            assert found.size == each.stat().st_size
            assert {found.load(key(number)) for number in range(1000)} <= {None, *map(content, range(1000))}


def test_a_process_that_was_stopped_while_it_wrote_stops_nobody(path):
    filled(path, 1)
    locking = "import fcntl, sys, time; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX); print(1, flush=True); time.sleep(60)"
    if not hasattr(os, "fork"):
        pytest.skip("this system has no fcntl")
    other = subprocess.Popen([sys.executable, "-c", locking, path], stdout=subprocess.PIPE)
    other.stdout.readline()
    found = Archive(path)
    found.append(key(1), content(1))
    assert found.load(key(0)) == content(0) and found.load(key(1)) is None
    other.kill()
    other.wait()
    found.append(key(1), content(1))
    assert found.load(key(1)) == content(1)


def test_random_histories(path):
    random.seed(0)
    archives = [Archive(path) for _ in range(3)]
    for _ in range(2000):
        each, number = random.choice(archives), random.randrange(60)
        match random.randrange(8):
            case 0:
                each.move(path.with_suffix(".old"), 2000)
            case 1 if path.exists():
                os.truncate(path, random.randrange(path.stat().st_size + 1))
            case 2:
                each.append(key(number), content(number))
            case _:
                assert each.load(key(number)) in (content(number), None)
