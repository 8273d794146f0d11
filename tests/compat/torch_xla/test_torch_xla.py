"""`torch_xla` under `weft run`, in processes of their own: JAX forbids forks."""

import importlib.util
import os

import pytest

# As the founding documents and PyTorch/XLA's introduction have it.
SCRIPT = """
import sys
import torch
import torch_xla
import torch_xla.core.xla_model as xm
assert "jax" not in sys.modules
dev = xm.xla_device()
t = torch.ones(2, 3).to(dev)
print(t, t.device, t.is_xla, dev == torch_xla.device(), torch_xla.device_count() == len(torch_xla.devices()) > 0)
print(torch.ones(2, device=dev) + torch.ones(2, device="xla:0"), torch_xla.real_devices()[0], xm.xla_device_hw(dev))
"""

FUNCTIONS = """
import io
import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as met
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_multiprocessing as xmp
import torch_xla.runtime as xr

dev = torch_xla.device()
assert xm.get_xla_supported_devices() == [str(each) for each in torch_xla.devices()]
assert xr.device_type() == xm.xla_device_hw(dev) and xr.world_size() == 1 and xr.global_ordinal() == 0
assert xr.global_runtime_device_count() == torch_xla.device_count() and xm.is_master_ordinal()
xm.master_print("hello")

# What libraries call
one = torch.ones(2, device=dev)
assert xm.all_reduce("sum", one, scale=0.5).tolist() == [0.5, 0.5] and xm.all_reduce("sum", [one], scale=2.0) is None
assert one.tolist() == [2.0, 2.0]
xm.set_replication(dev, xm.get_xla_supported_devices())

# Steps
met.clear_all()
weight = torch.nn.Parameter(torch.ones(3, device=dev))
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(4):
    optimizer.zero_grad()
    (weight * 2).sum().backward()
    xm.optimizer_step(optimizer, barrier=True)
assert met.counter_value("MarkStep") == 4 and met.counter_value("UncachedCompile") <= 2, met.metrics_report()
assert met.counter_value("CachedCompile") >= 2 and "Counter: MarkStep" in met.metrics_report()
torch.testing.assert_close(weight.cpu().detach(), torch.full((3,), 0.2))
with torch_xla.step():
    a = weight + 1
torch_xla.sync(wait=True)
xm.wait_device_ops()
closed = []
xm.add_step_closure(closed.append, (1,))
xm.mark_step()
assert closed == [1]

# Compiled functions
@torch_xla.compile(full_graph=True)
def reads(x):
    return x.sum().item()

try:
    reads(a)
except RuntimeError as error:
    assert "before the end of the full graph" in str(error)
else:
    raise AssertionError
double = torch_xla.compile(lambda x: x * 2, max_different_graphs=1)
assert double(torch.ones(2, device=dev)).tolist() == double(torch.ones(2, device=dev)).tolist() == [2, 2]
try:
    double(torch.ones(3, device=dev))
except RuntimeError as error:
    assert "2 different graphs" in str(error)
else:
    raise AssertionError

# Mixed precision
from torch_xla.amp import autocast
with autocast(dev):
    assert torch.nn.functional.linear(torch.ones(1, 3, device=dev), weight[None]).dtype == torch.bfloat16

# Random numbers
torch_xla.manual_seed(3)
first, state = torch.rand(2, device=dev).tolist(), xm.get_rng_state()
second = torch.rand(2, device=dev).tolist()
xm.set_rng_state(state)
assert torch.rand(2, device=dev).tolist() == second
xm.set_rng_state(3)
assert torch.rand(2, device=dev).tolist() == first

# Files, loaders, processes
file = io.BytesIO()
xm.save({"weight": weight}, file)
file.seek(0)
assert torch.load(file)["weight"].device.type == "cpu"
batches = list(pl.MpDeviceLoader(torch.utils.data.DataLoader(torch.arange(4), batch_size=2), dev))
assert [each.tolist() for each in batches] == [[0, 1], [2, 3]] and batches[0].is_xla
xmp.spawn(lambda index, word: print(index, word), ("spawned",))
print("done")
"""

IMPORTS_JAX = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")


def run_script(run_weft, tmp_path, text):
    path = tmp_path / "script.py"
    path.write_text(text)
    done = run_weft("run", path, PYTHONPATH=os.environ.get("PYTHONPATH", ""))  # where JAX may be
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@IMPORTS_JAX
def test_the_script_of_the_founding_documents(run_weft, tmp_path):
    found = run_script(run_weft, tmp_path, SCRIPT)
    assert found.splitlines()[:2] == [
        "tensor([[1., 1., 1.],",
        "        [1., 1., 1.]], device='xla:0') xla:0 True True True",
    ]
    assert "tensor([2., 2.], device='xla:0')" in found


@IMPORTS_JAX
def test_the_functions_of_torch_xla(run_weft, tmp_path):
    assert run_script(run_weft, tmp_path, FUNCTIONS).splitlines() == ["hello", "0 spawned", "done"]


HIDES_JAX = """
import importlib.util
import os
import sys
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *package: None if name == "jax" else find_spec(name, *package)
"""


def test_without_jax_the_error_says_what_to_install(run_weft, tmp_path):
    text = f"""{HIDES_JAX}
import torch
assert importlib.util.find_spec("torch_xla") is None
for use in (lambda: __import__("torch_xla"), lambda: torch.ones(1, device="xla")):
    try:
        use()
    except (ModuleNotFoundError, RuntimeError) as error:
        print(error)
"""
    first, second = run_script(run_weft, tmp_path, text).splitlines()
    assert first == "torch_xla needs JAX, which is not installed: pip install 'weft[xla]'"
    assert second.endswith("which is not installed: pip install 'weft[xla]'")


LIBRARY = """
import importlib.util
try:
    import torch_xla
    found = True
except ImportError:
    found = False
asked = importlib.util.find_spec("torch_xla") is not None
"""


@IMPORTS_JAX
def test_libraries_find_it_once_the_program_has_imported_it(run_weft, tmp_path):
    """Those that find it compute on it, and JAX may be installed for other reasons."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / f"{name}.py").write_text(LIBRARY)
    (tmp_path / "script.py").write_text(
        "import one\nprint(one.found, one.asked)\nimport torch_xla, two\nprint(two.found, two.asked)\n"
    )
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    done = run_weft("run", tmp_path / "script.py", PYTHONPATH=path)
    assert (done.returncode, done.stdout) == (0, "False False\nTrue True\n"), done.stderr
