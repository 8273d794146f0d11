import os
import stat
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from weft.engine import archive, diskcache
from weft.engine.diskcache import LIMIT, DiskCache, _private, cache_root

# In a slow process the thread that optimizes kernels starts before the end, and what it makes comes to the cache, too.
WORK = """
import weft
from weft.engine import tiers
tiers.QUIET_S = tiers.LONGEST_S = 1e9
x = weft.ones(5) * 3
assert (x + x).sum().item() == 30
"""


@pytest.fixture
def cache(tmp_path):
    return DiskCache(tmp_path, "salt")


def again(cache):
    """The cache as another process sees it."""
    return DiskCache(cache.directory, "salt")


def test_what_is_stored_is_found(cache):
    key = cache.key("source")
    assert cache.load(key) is None
    cache.store(key, b"code")
    assert cache.load(key) == again(cache).load(key) == b"code"
    assert key != cache.key("other source") and DiskCache(cache.directory, "other").load(key) is None


def test_no_directory_is_harmless():
    cache = DiskCache(None, "salt")
    cache.store(cache.key("source"), b"code")
    assert cache.load(cache.key("source")) is None


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720, 0o702, 0o722])
def test_a_directory_that_others_can_write_is_not_trusted(tmp_path, mode):
    shared = tmp_path / "shared"
    shared.mkdir()
    cache = DiskCache(shared, "salt")
    cache.store(cache.key("source"), b"code")
    shared.chmod(mode)
    assert _private(shared) is None
    assert again(cache).load(cache.key("source")) is None
    shared.chmod(0o755)
    assert _private(shared) == shared
    assert again(cache).load(cache.key("source")) == b"code"
    mine = _private(tmp_path / "mine")
    assert mine is not None and stat.S_IMODE(mine.stat().st_mode) == 0o700


def test_a_file_in_its_place_is_harmless(tmp_path):
    (tmp_path / "file").write_text("")
    assert _private(tmp_path / "file" / "below") is None


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


@pytest.mark.parametrize("keep", [0, 7, 16, 300])
def test_corrupt_kernels_are_compiled_anew(tmp_path, keep):
    environment = {"WEFT_CACHE_DIR": str(tmp_path / "kernels")}
    assert python(WORK, **environment).returncode == 0
    (path,) = (tmp_path / "kernels").iterdir()
    content = path.read_bytes()
    path.write_bytes(content[:keep] + b"\xcc" * (len(content) - keep))
    for _ in range(2):
        run = python(WORK, **environment)
        assert run.returncode == 0, run.stderr
    path.write_bytes(content[:keep])
    run = python(WORK, **environment)
    assert run.returncode == 0, run.stderr


def test_the_environment_chooses_the_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    assert cache_root() == tmp_path


# ---- What is left behind, and what is too much -------------------------------------------------------------------


def aged(path, days):
    os.utime(path, (time.time() - 86400 * days,) * 2)


def test_a_full_archive_becomes_the_old_one_which_is_still_read(cache, monkeypatch):
    monkeypatch.setattr(diskcache, "_FULL", 5000)
    keys = [cache.key(str(number)) for number in range(14)]
    for key in keys:
        cache.store(key, b"x" * 928)  # 1000 bytes with its header
        assert again(cache).load(key) is not None and cache.load(keys[0]) is not None
    assert cache.size() <= 12_000
    assert sorted(path.suffix for path in cache.directory.iterdir()) == [".old", ".young"]
    assert again(cache).load(keys[0]) and again(cache).load(keys[1]) is None


def test_archives_that_are_not_used_are_removed(cache):
    files = [f"{number:016x}.young" for number in range(6)] + ["0" * 64, "tmp" + "0" * 16]
    for number, name in enumerate(files):
        (cache.directory / name).write_bytes(b"x" * 1000)
        aged(cache.directory / name, number)
    cache.tidy(limit=8000)
    assert sorted(os.listdir(cache.directory)) == files[:6]
    assert LIMIT == 128 << 20


def test_the_directory_is_tidied_when_an_archive_begins(cache, monkeypatch):
    calls = []
    monkeypatch.setattr(DiskCache, "tidy", lambda self: calls.append(self))
    for number in range(256):
        cache.store(cache.key(str(number)), b"code")
    assert len(calls) == 1


def test_an_archive_that_is_used_gets_a_new_time(cache):
    cache.store(cache.key("source"), b"code")
    (path,) = cache.directory.iterdir()
    aged(path, 3)
    assert again(cache).load(cache.key("source"))
    assert time.time() - path.stat().st_mtime < 86400


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="this system has no access rights of this kind")
@pytest.mark.parametrize("owner, trusted", [("me", True), ("root", True), ("other", False)])
def test_files_of_another_user_than_root_are_not_trusted(tmp_path, monkeypatch, owner, trusted):
    directory = _private(tmp_path / "kernels")
    assert directory is not None
    uid = {"me": 1234, "root": 0, "other": 1235}[owner]
    monkeypatch.setattr(os, "getuid", lambda: 1234)
    monkeypatch.setattr(os, "stat", lambda _: SimpleNamespace(st_uid=uid, st_mode=0o40755))
    assert diskcache._is_ours(directory) is trusted
    assert archive.is_private(SimpleNamespace(st_uid=uid, st_mode=0o100600)) is trusted


def test_a_directory_that_cannot_be_written_is_read(cache, monkeypatch):
    key = cache.key("source")
    cache.store(key, b"code")
    (path,) = cache.directory.iterdir()
    aged(path, 3)
    open_file = os.open

    def refuse(*arguments):
        if (
            len(arguments) > 1
            and isinstance(arguments[1], int)
            and not arguments[1] & (os.O_RDWR | os.O_WRONLY)
        ):
            return open_file(*arguments)
        raise PermissionError

    for name in ("utime", "replace", "unlink", "open"):
        monkeypatch.setattr(os, name, refuse)
    other = again(cache)
    assert other.load(key) == b"code"
    other.store(key, b"other")
    other.store(cache.key("more"), b"other")
    assert other.load(key) == b"code" and other.load(cache.key("more")) is None and other.clear() == 0


def test_a_directory_in_the_place_of_an_archive_is_harmless(cache):
    (cache.directory / f"{cache._stem}.young").mkdir()
    cache.store(cache.key("source"), b"code")
    assert cache.load(cache.key("source")) is None
    cache.tidy(limit=0)
    assert (cache.directory / f"{cache._stem}.young").is_dir()


TIDY = """
import os, pathlib, sys, weft.engine.diskcache as diskcache
diskcache._FULL = 5000
cache = diskcache.DiskCache(pathlib.Path(sys.argv[1]), "salt")
for number in range(300):
    key = cache.key(f"{sys.argv[2]} {number}")
    cache.store(key, b"x" * 928)
    if number % 50 == 0:
        cache.tidy(limit=8_000)
    assert cache.load(key) in (b"x" * 928, None)
"""


def test_two_processes_may_fill_and_tidy_one_directory(tmp_path):
    processes = [
        subprocess.Popen([sys.executable, "-c", TIDY, tmp_path, name], stderr=subprocess.PIPE)
        for name in "ab"
    ]
    for process in processes:
        assert process.communicate(timeout=120)[1] == b""
        assert process.returncode == 0
    assert 0 < DiskCache(tmp_path, "salt").size() <= 14_000


def test_clearing_removes_kernels_and_nothing_else(cache):
    mine = cache.directory / "letters.txt"
    mine.write_text("kept")
    for source in ("a", "b"):
        cache.store(cache.key(source), b"code")
    assert cache.clear() > 8
    assert list(cache.directory.iterdir()) == [mine]
    assert cache.load(cache.key("c")) is None
    cache.store(cache.key("c"), b"code")
    assert again(cache).load(cache.key("c")) == b"code"


def test_a_user_without_a_folder_has_no_cache_on_disk(monkeypatch):
    def home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("pathlib.Path.home", home)
    for name in ("WEFT_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    assert DiskCache.for_user("salt").directory is None
