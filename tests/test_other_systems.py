"""weft on systems that lack what Linux has; tests/other_system.py takes it away."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).with_name("other_system.py")
SYSTEMS = pytest.mark.parametrize("system", ["win32", "darwin"])

PROGRAM = """
import os
import weft as torch
from weft.engine import host, tiers
from weft.io import safetensors

x = torch.arange(12.0).reshape(3, 4).requires_grad_()
(x @ x.t()).softmax(-1).sum().backward()
assert x.grad.shape == (3, 4)

torch.set_num_threads(3)  # which share the loops
large = torch.rand(3000, 1000)
assert torch.allclose((large * 2 + 1).sum(), 2 * large.double().sum().float() + 3e6)

for _ in range(2):  # the second file replaces the first
    torch.save({"large": large, "name": "grün"}, "file.pt")
    assert torch.equal(torch.load("file.pt")["large"], large)
    assert torch.equal(torch.load("file.pt", mmap=True)["large"], large)
safetensors.save_file({"large": large}, "file.safetensors")
assert torch.equal(safetensors.load_file("file.safetensors")["large"], large)

data = torch.utils.data.TensorDataset(large)
assert len(list(torch.utils.data.DataLoader(data, batch_size=500))) == 6
assert torch.equal(torch.compile(torch.relu)(large), large)
torch.fx.symbolic_trace(torch.nn.ReLU()).to_folder("module")

tiers.finish()
print(host.disk_cache().directory.is_relative_to(os.environ["HOME"]))
torch.multiprocessing.set_sharing_strategy("file_system")
try:
    print(torch.ones(3).share_memory_().is_shared())
except NotImplementedError as error:
    print(error)
"""
SHARED = {"win32": "memory shared between processes on Windows", "darwin": "True"}


@SYSTEMS
def test_a_program_runs(run, tmp_path, system):
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    folders = {"WEFT_CACHE_DIR": "", "HOME": str(tmp_path), "LOCALAPPDATA": str(tmp_path)}
    for _ in range(2):  # the second process finds the kernels of the first
        done = run(TOOL, system, "program.py", **folders)
        assert (done.stdout.splitlines(), done.stderr) == (["True", SHARED[system]], "")


ARCHIVES = """
from pathlib import Path
from weft.engine.archive import Archive

archive, keys = Archive(Path("new")), [bytes([k]) * 32 for k in range(3)]
for key in keys[:2]:
    archive.append(key, b"code")
with open("new", "rb"):
    archive.move(Path("old"), 1)
print(Path("new").exists(), Path("old").exists())
archive.move(Path("old"), 1)
print(Path("new").exists(), Path("old").exists())
archive.append(keys[2], b"code")
print([Archive(Path("old")).load(key) for key in keys], Archive(Path("new")).load(keys[2]))
"""


def test_windows_renames_an_archive_that_no_process_has_open(run, tmp_path):
    (tmp_path / "program.py").write_text(ARCHIVES)
    done = run(TOOL, "win32", "program.py")
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["True False", "False True", "[b'code', b'code', None] b'code'"]


STORE = """
import sys
from weft.distributed import FileStore

store = FileStore("store", 3)
for _ in range(300):
    store.add("count", 1)
    store.set("lines", "\\n\\r\\n")
assert store.get("lines") == b"\\n\\r\\n"
print(store.add("done", 1), store.add("count", 0))
"""


@SYSTEMS
def test_processes_share_a_file_store(tmp_path, system):
    (tmp_path / "program.py").write_text(STORE)
    command = [sys.executable, str(TOOL), system, "program.py"]
    environment = {"PYTHONPATH": str(TOOL.parents[1])}
    processes = [
        subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    printed = [process.communicate(timeout=300)[0] for process in processes]
    assert max(printed) == "3 900\n"


def test_the_fence_says_that_windows_has_none(run, tmp_path):
    (tmp_path / "program.py").write_text("import weft")
    done = run(TOOL, "win32", "program.py", WEFT_FENCE="after")
    assert done.stderr.splitlines()[-1].startswith("ValueError: WEFT_FENCE needs memory whose pages")
