import os
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from weft.engine import diskcache
from weft.engine.diskcache import LIMIT, DiskCache, _private, cache_root

WORK = "import weft; x = weft.ones(5) * 3; assert (x + x).sum().item() == 30"


@pytest.fixture
def cache(tmp_path):
    return DiskCache(tmp_path, "salt")


def test_what_is_stored_is_found(cache):
    key = cache.key("source")
    assert cache.load(key) is None
    cache.store(key, b"code")
    assert cache.load(key) == b"code"
    assert key != cache.key("other source") and key != DiskCache(cache.directory, "other").key("source")


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 100])
def test_damage_is_a_miss(cache, damage):
    key = cache.key("source")
    cache.store(key, b"code" * 100)
    (cache.directory / key).write_bytes(damage)
    assert cache.load(key) is None


def test_one_flipped_bit_is_a_miss(cache):
    key = cache.key("source")
    cache.store(key, b"code" * 100)
    content = bytearray((cache.directory / key).read_bytes())
    content[50] ^= 1
    (cache.directory / key).write_bytes(content)
    assert cache.load(key) is None


def test_no_directory_is_harmless():
    cache = DiskCache(None, "salt")
    cache.store("key", b"code")
    assert cache.load("key") is None


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720, 0o702, 0o722])
def test_a_directory_that_others_can_write_is_not_trusted(tmp_path, mode):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)
    assert _private(shared) is None
    shared.chmod(0o755)
    assert _private(shared) == shared
    mine = _private(tmp_path / "mine")
    assert mine is not None and stat.S_IMODE(mine.stat().st_mode) == 0o700


def test_a_file_in_its_place_is_harmless(tmp_path):
    (tmp_path / "file").write_text("")
    assert _private(tmp_path / "file" / "below") is None


def test_many_writers_leave_one_good_file(cache):
    key = cache.key("source")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: cache.store(key, bytes([n]) * 10_000), range(64)))
    code = cache.load(key)
    assert code is not None and len(set(code)) == 1
    assert os.listdir(cache.directory) == [key]


def python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True
    )


def test_kernels_survive_their_process(tmp_path):
    environment = {"WEFT_CACHE_DIR": str(tmp_path / "kernels")}
    assert python(WORK, **environment).returncode == 0
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "kernels").iterdir()}
    assert files
    assert python(WORK, **environment).returncode == 0
    assert files == {path: path.stat().st_mtime_ns for path in (tmp_path / "kernels").iterdir()}


def test_corrupt_kernels_are_compiled_anew(tmp_path):
    environment = {"WEFT_CACHE_DIR": str(tmp_path / "kernels")}
    assert python(WORK, **environment).returncode == 0
    for path in (tmp_path / "kernels").iterdir():
        path.write_bytes(b"\0" * 64 + b"nonsense")
    run = python(WORK, **environment)
    assert run.returncode == 0, run.stderr


def test_the_environment_chooses_the_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    assert cache_root() == tmp_path


# ---- What is left behind, and what is too much -------------------------------------------------------------------


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_store_that_fails_leaves_no_file(cache, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(os, "replace", fail)
    key = cache.key("source")
    if isinstance(error, OSError):
        cache.store(key, b"code")
    else:
        with pytest.raises(KeyboardInterrupt):
            cache.store(key, b"code")
    assert os.listdir(cache.directory) == []


def aged(path, days):
    os.utime(path, (time.time() - 86400 * days,) * 2)


def test_what_killed_processes_left_is_removed(cache):
    old, new, kernel = f"tmp{1:016x}", f"tmp{2:016x}", f"{1:064x}"
    for name, days in ((old, 3), (new, 0)):
        (cache.directory / name).write_bytes(b"half")
        aged(cache.directory / name, days)
    cache.store(kernel, b"code")
    cache.tidy()
    assert sorted(os.listdir(cache.directory)) == [kernel, new]


def test_the_directory_is_tidied_now_and_then(cache, monkeypatch):
    calls = []
    monkeypatch.setattr(DiskCache, "tidy", lambda self: calls.append(self))
    for number in range(256):
        cache.store(f"{number:02x}", b"code")
    assert len(calls) == 1


def test_the_least_recently_used_files_go_first(cache):
    names = [f"{number:064x}" for number in range(8)]
    for number, name in enumerate(names):
        cache.store(name, b"x" * 968)  # with their digests they take 1000 bytes
        aged(cache.directory / name, 20 - number)
    assert cache.load(names[0]) is not None  # used just now
    cache.tidy(limit=8000)
    assert cache.size() == 8000
    cache.tidy(limit=7000)
    assert sorted(os.listdir(cache.directory)) == [names[0], *names[4:]]  # room for a quarter of the bound
    assert cache.size() <= 7000 * 3 // 4
    assert LIMIT == 512 << 20


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="this system has no access rights of this kind")
@pytest.mark.parametrize("owner, trusted", [("me", True), ("root", True), ("other", False)])
def test_a_directory_of_another_user_than_root_is_not_trusted(tmp_path, monkeypatch, owner, trusted):
    directory = _private(tmp_path / "kernels")
    assert directory is not None
    uid = {"me": 1234, "root": 0, "other": 1235}[owner]
    monkeypatch.setattr(os, "getuid", lambda: 1234)
    monkeypatch.setattr(os, "stat", lambda _: SimpleNamespace(st_uid=uid, st_mode=0o40755))
    assert diskcache._is_ours(directory) is trusted


def test_a_directory_that_cannot_be_written_is_read(cache, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError

    key = cache.key("source")
    cache.store(key, b"code")
    aged(cache.directory / key, 3)
    for name in ("utime", "replace", "unlink"):
        monkeypatch.setattr(os, name, refuse)
    assert cache.load(key) == b"code"
    cache.store(key, b"other")
    cache.remove(key)
    assert cache.load(key) == b"code" and cache.clear() == 0


def test_foreign_files_are_left_alone(cache):
    key = cache.key("source")
    (cache.directory / key).mkdir()
    assert cache.load(key) is None
    cache.store(key, b"code")
    cache.remove(key)
    cache.tidy(limit=0)
    assert (cache.directory / key).is_dir()


TIDY = """
import os, pathlib, sys, weft.engine.diskcache as diskcache
cache = diskcache.DiskCache(pathlib.Path(sys.argv[1]), "salt")
for number in range(300):
    key = cache.key(f"{sys.argv[2]} {number}")
    cache.store(key, b"x" * 968)
    cache.tidy(limit=20_000)
    assert cache.load(key) in (b"x" * 968, None)
"""


def test_two_processes_may_tidy_one_directory(tmp_path):
    processes = [
        subprocess.Popen([sys.executable, "-c", TIDY, tmp_path, name], stderr=subprocess.PIPE)
        for name in "ab"
    ]
    for process in processes:
        assert process.communicate(timeout=120)[1] == b""
        assert process.returncode == 0
    cache = DiskCache(tmp_path, "salt")
    assert 10_000 <= cache.size() <= 21_000  # one store may come after the last look
    assert not [name for name in os.listdir(tmp_path) if name.startswith("tmp")]


def test_clearing_removes_kernels_and_nothing_else(cache):
    mine = cache.directory / "letters.txt"
    mine.write_text("kept")
    for source in ("a", "b"):
        cache.store(cache.key(source), b"code")
    assert cache.clear() == 2
    assert list(cache.directory.iterdir()) == [mine]
    assert cache.load(cache.key("a")) is None
