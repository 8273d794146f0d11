"""Saving: the old file or the new one, whole, whatever happens; to anything that can be written to."""

import errno
import io
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
import torch

import weft
from weft.serialization import atomic, saving

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def start(program: str, *arguments) -> subprocess.Popen:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": ROOT}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


# ---- Whole or not at all ---------------------------------------------------------------------------------------------

SAVES = """
import sys, weft
path, value, size = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
state = {"value": value, **{str(k): weft.full((size,), value) for k in range(4)}}
print("ready", flush=True)
for _ in range(int(sys.argv[4])):
    weft.save(state, path)
"""


def check_whole(path, values) -> None:
    found = weft.load(path)
    assert found["value"] in values
    for key in "0123":
        assert bool((found[key] == found["value"]).all())


KILLED = """
import os, signal, sys, weft
from weft.serialization import atomic, saving
place, wanted, seen = sys.argv[2], int(sys.argv[3]), 0
def killing(function):
    def call(*arguments, **options):
        global seen
        seen += 1
        if seen > wanted:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return call
if place == "write":
    saving._File.write = killing(saving._File.write)
else:
    setattr(os, place, killing(getattr(os, place)))
weft.save({"value": 1.0, **{str(k): weft.ones(100_000) for k in range(4)}}, sys.argv[1])
"""


@pytest.mark.parametrize(
    ("place", "count"),
    [("write", 0), ("write", 1), ("write", 9), ("write", 20), ("fsync", 0), ("replace", 0)],
)
def test_killed_while_saving(tmp_path, place, count):
    """`kill -9` leaves the old file, and nothing of what was being written, unless it had its name for an instant."""
    path = tmp_path / "a.pt"
    weft.save({"value": 0.0, **{key: weft.zeros(100_000) for key in "0123"}}, path)
    child = start(KILLED, path, place, count)
    child.communicate()
    assert child.returncode == -signal.SIGKILL
    check_whole(path, [0])
    if hasattr(os, "O_TMPFILE") and place != "replace":
        assert os.listdir(tmp_path) == ["a.pt"]


def test_two_processes_save_to_one_path(tmp_path):
    path = tmp_path / "a.pt"
    children = [start(SAVES, path, value, 50_000, 20) for value in (1, 2)]
    while not path.exists():
        assert any(child.poll() is None for child in children)
        time.sleep(0.001)
    while any(child.poll() is None for child in children):
        check_whole(path, (1, 2))
    assert [child.communicate() and child.returncode for child in children] == [0, 0]
    assert os.listdir(tmp_path) == ["a.pt"]


def test_interrupted_by_ctrl_c(tmp_path, monkeypatch):
    path = tmp_path / "a.pt"
    weft.save("old", path)

    def interrupted(self, content):
        raise KeyboardInterrupt

    monkeypatch.setattr(saving._File, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        weft.save("new", path)
    assert os.listdir(tmp_path) == ["a.pt"] and weft.load(path) == "old"


def test_a_full_disk(tmp_path):
    """As a limit on the size of files, which the system reports in the same way."""
    weft.save("old", tmp_path / "a.pt")
    program = """
import resource, signal, sys, weft
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
for options in ({}, {"_use_new_zipfile_serialization": False}):
    try:
        weft.save(weft.ones(1_000_000), sys.argv[1], **options)
    except RuntimeError as error:
        print(error)
"""
    output, _ = start(program, tmp_path / "a.pt").communicate()
    assert output.count("failed writing file") == 2 and "File too large" in output
    assert os.listdir(tmp_path) == ["a.pt"] and weft.load(tmp_path / "a.pt") == "old"


@pytest.mark.parametrize("zipped", [True, False])
def test_what_cannot_be_pickled_leaves_the_file_alone(tmp_path, zipped):
    path = tmp_path / "a.pt"
    weft.save("old", path)
    x = weft.ones(2)
    for value, error in (
        (lambda: 0, (pickle.PicklingError, AttributeError)),
        ([x, x.view(weft.int32)], RuntimeError),
    ):
        with pytest.raises(error):
            weft.save(value, path, _use_new_zipfile_serialization=zipped)
    assert os.listdir(tmp_path) == ["a.pt"] and weft.load(path) == "old"


def test_access_rights_and_links_stay(tmp_path):
    real, link = tmp_path / "real.pt", tmp_path / "link.pt"
    weft.save(1, real)
    real.chmod(0o640)
    link.symlink_to(real)
    weft.save(2, link)
    assert link.is_symlink() and weft.load(real) == 2 and real.stat().st_mode & 0o777 == 0o640
    mask = os.umask(0o027)
    try:
        weft.save(3, tmp_path / "new.pt")
    finally:
        os.umask(mask)
    assert (tmp_path / "new.pt").stat().st_mode & 0o777 == 0o640


@pytest.fixture
def folder_as_nobody():
    """An empty folder that everybody may use, with the rights of nobody in particular, if we have those of root."""
    with tempfile.TemporaryDirectory() as parent:
        os.chmod(parent, 0o777)
        was_root = os.geteuid() == 0
        if was_root:
            os.seteuid(65534)
        try:
            folder = Path(parent, "folder")
            folder.mkdir()
            yield folder
        finally:
            folder.chmod(0o777)
            if was_root:
                os.seteuid(0)


def test_protected_files_and_folders(folder_as_nobody):
    """As in PyTorch: a file is written if it may be written to."""
    path = folder_as_nobody / "a.pt"
    weft.save(1, path)
    path.chmod(0o444)
    with pytest.raises(RuntimeError, match="Permission denied"):
        weft.save(2, path)
    assert weft.load(path) == 1
    path.chmod(0o600)
    folder_as_nobody.chmod(0o555)
    weft.save(3, path)
    assert weft.load(path) == 3
    with pytest.raises(RuntimeError, match="Permission denied"):
        weft.save(4, folder_as_nobody / "b.pt")
    assert os.listdir(folder_as_nobody) == ["a.pt"]


def test_a_file_that_the_system_does_not_let_us_replace(tmp_path, monkeypatch):
    """Such as another user's in /tmp, or one that a container has mounted."""

    def busy(old, new):
        raise OSError(errno.EBUSY, "Device or resource busy")

    path = tmp_path / "a.pt"
    weft.save("old", path)
    number = path.stat().st_ino
    monkeypatch.setattr(os, "replace", busy)
    weft.save("new", path)
    assert weft.load(path) == "new" and path.stat().st_ino == number
    with pytest.raises(RuntimeError, match="resource busy"):
        weft.save("new", tmp_path / "b.pt")
    assert os.listdir(tmp_path) == ["a.pt"]


@pytest.mark.parametrize("nameless", [True, False])
def test_nobody_reads_a_private_file_while_it_is_replaced(tmp_path, monkeypatch, nameless):
    path = tmp_path / "a.pt"
    weft.save(1, path)
    path.chmod(0o600)
    if not nameless:
        monkeypatch.setattr(atomic, "_nameless", lambda folder: None)
    with atomic.replacing(path) as file:
        assert os.fstat(file.fileno()).st_mode & 0o777 == 0o600


def test_an_old_mapping_survives_a_new_file(tmp_path):
    path = tmp_path / "a.pt"
    weft.save(weft.zeros(10_000), path)
    mapped = weft.load(path, mmap=True)
    weft.save(weft.ones(10_000), path)
    assert not mapped.any() and weft.load(path).all()


# ---- Where to --------------------------------------------------------------------------------------------------------


class Forward:
    """A file object that only takes bytes, some at a time."""

    def __init__(self):
        self.content = b""

    def write(self, content):
        part = bytes(content[:1000])
        self.content += part
        return len(part)

    def flush(self):
        pass


@pytest.mark.parametrize("zipped", [True, False])
def test_streams_that_do_not_seek(zipped):
    file = Forward()
    weft.save({"a": weft.arange(5000.0)}, file, _use_new_zipfile_serialization=zipped)
    for library in (weft, torch):
        assert library.load(io.BytesIO(file.content))["a"][4999] == 4999


@pytest.mark.parametrize("told", [None, True, "all of it", 10**9])
def test_what_write_returns_may_be_no_number_of_bytes(told):
    class Mute(io.BytesIO):
        def write(self, content):
            super().write(content)
            return told

    file = Mute()
    weft.save(weft.arange(5000.0), file)
    file.seek(0)
    assert weft.load(file)[4999] == 4999


def test_streams_that_take_nothing():
    class Full(io.BytesIO):
        def write(self, content):
            return 0

    class Blocked(io.RawIOBase):
        def writable(self):
            return True

        def write(self, content):
            return None

    for file in (Full(), Blocked()):
        with pytest.raises(RuntimeError, match="takes no more bytes"):
            weft.save(1, file)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_pipes_and_devices(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=weft.save, args=(weft.ones(3), tmp_path / "pipe"))
    writer.start()
    content = (tmp_path / "pipe").read_bytes()
    writer.join()
    assert weft.load(io.BytesIO(content)).tolist() == [1, 1, 1]
    weft.save(weft.ones(3), os.devnull)
    reading, writing = os.pipe()
    weft.save(weft.ones(3), f"/dev/fd/{writing}")
    os.close(writing)
    with open(reading, "rb") as file:
        assert weft.load(io.BytesIO(file.read())).tolist() == [1, 1, 1]
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system does not name open files")
def test_an_open_file_without_a_name(tmp_path):
    with open(tmp_path / "gone", "w+b") as file:
        os.unlink(tmp_path / "gone")
        weft.save(weft.ones(3), f"/proc/self/fd/{file.fileno()}")
        assert weft.load(file).tolist() == [1, 1, 1]
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["a" * 250 + ".pt", "é" * 120 + ".pt", "名" * 84, "\udcff.pt"])
def test_long_and_strange_names(tmp_path, name):
    weft.save(1, tmp_path / name)
    assert os.listdir(tmp_path) == [name] and weft.load(tmp_path / name) == 1


def test_what_is_no_place(tmp_path):
    with pytest.raises(RuntimeError, match="Parent directory .* does not exist"):
        weft.save(1, tmp_path / "none" / "a.pt")
    with pytest.raises(RuntimeError, match="Is a directory"):
        weft.save(1, tmp_path)
    for path in ("", f"{tmp_path}/", f"{tmp_path}/new/"):
        with pytest.raises(RuntimeError, match="invalid file name"):
            weft.save(1, path)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(RuntimeError, match="levels of symbolic links"):
        weft.save(1, tmp_path / "loop")
    assert (tmp_path / "loop").is_symlink()
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like object"):
        weft.save(1, 5)


@pytest.mark.filterwarnings("ignore")
def test_pickle_protocols_and_modules():
    for protocol in (2, 3, 4, 5):
        file = io.BytesIO()
        weft.save([weft.ones(2), weft.float32], file, pickle_protocol=protocol)
        options = {} if protocol == 2 else {"weights_only": False}
        for library in (weft, torch):
            if protocol <= 3 or library is torch:
                tensor, dtype = library.load(io.BytesIO(file.getvalue()), **options)
                assert tensor.tolist() == [1, 1] and dtype is library.float32

    class Python:
        __name__ = "python"
        Pickler, Unpickler = pickle._Pickler, pickle._Unpickler

    file = io.BytesIO()
    weft.save(weft.ones(2), file, pickle_module=Python)
    assert weft.load(io.BytesIO(file.getvalue())).tolist() == [1, 1]


def test_skipped_data(tmp_path):
    path = tmp_path / "a.pt"
    with weft.serialization.skip_data():
        weft.save(weft.ones(1_000_000), path)
        with pytest.raises(RuntimeError, match="skip_data"):
            weft.save(1, path, _use_new_zipfile_serialization=False)
    assert path.stat().st_blocks * 512 < 1_000_000
    assert not weft.load(path).any()
    weft.save(weft.ones(10), path)
    with weft.serialization.skip_data():
        assert weft.load(path).shape == (10,)


# ---- Progress --------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_shown_to_whoever_watches(tmp_path, monkeypatch):
    monkeypatch.setattr(saving, "PROGRESS", 1000)
    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        weft.save(weft.ones(10_000), tmp_path / "a.pt")
        assert ("torch.save: 100%" in stream.getvalue()) == shown
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    weft.save(weft.ones(10), tmp_path / "a.pt")
    assert terminal.getvalue() == ""
