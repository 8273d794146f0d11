"""PyTorch's own test framework on weft: it loads unmodified, and samples of its databases pass its own checks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
MODULES = """
common_utils common_dtype common_device_type common_nn common_methods_invocations common_modules common_optimizers
opinfo.core opinfo.definitions autograd_function_db custom_tensor logging_tensor two_tensor
""".split()


def test_the_framework_loads_and_is_the_wheels(run):
    """Each module comes from the wheel, and no module of PyTorch itself does."""
    code = f"""
import importlib, sys
sys.path.insert(0, {str(HERE)!r})
import framework
framework.bind()
for name in {MODULES}:
    module = importlib.import_module(f"torch.testing._internal.{{name}}")
    assert module.__file__.startswith(str(framework.folder() / "_internal")), module.__file__
foreign = [name for name, module in sys.modules.items() if name.split(".")[0] == "torch" and "/site-packages/torch/"
           in str(getattr(module, "__file__", "")) and not name.startswith("torch.testing._internal")]
assert not foreign, foreign
import torch, weft
assert torch is weft
print("loaded")
"""
    done = run("-c", code)
    assert done.stdout.split() == ["loaded"], done.stderr[-3000:]


@pytest.mark.parametrize("kind", ["TestOpInfos", "TestModuleInfos", "TestOptimizerInfos"])
def test_samples_of_the_databases(kind, tmp_path):
    """infos.py says which operations, modules and optimizers are sampled."""
    log = tmp_path / "log.jsonl"
    command = [sys.executable, str(HERE / "child.py"), "weft", str(HERE / "infos.py"), str(log), "120", kind]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1]), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    last = {line["test"]: line for line in map(json.loads, log.read_text().splitlines())}
    outcomes = [line["outcome"] for line in last.values()]
    bad = {
        name: line["reason"] for name, line in last.items() if line["outcome"] not in ("passed", "skipped")
    }
    assert not bad
    assert outcomes.count("passed") > 2 * outcomes.count("skipped") > 0 or "skipped" not in outcomes


def test_a_run_goes_on_behind_a_test_that_ends_the_process(tmp_path):
    """The runner notes the crash, the hang and the failure, and all other tests run once."""
    sys.path.insert(0, str(HERE))
    try:
        import run
    finally:
        sys.path.remove(str(HERE))
    path = tmp_path / "test_bad.py"
    path.write_text(
        "import os, time, unittest\n"
        "class TestBad(unittest.TestCase):\n"
        "    def test_a_passes(self): pass\n"
        "    def test_b_crashes(self): os._exit(3)\n"
        "    def test_c_hangs(self): time.sleep(600)\n"
        "    def test_d_fails(self): self.assertEqual(1, 2)\n"
        "    def test_e_skips(self): self.skipTest('no reason')\n"
    )
    found = run.outcomes("weft", path, tmp_path / "log.jsonl", 2, "")
    assert {name[8:]: line["outcome"] for name, line in found.items()} == {
        "test_a_passes": "passed",
        "test_b_crashes": "crashed",
        "test_c_hangs": "error",
        "test_d_fails": "failed",
        "test_e_skips": "skipped",
    }
    passed = {name: {"outcome": "passed"} for name in found}
    count, expected, groups = run.compare(found, passed)
    assert (count, expected) == (1, 5)
    assert {reason.partition(":")[0] for reason in groups} == {"crashed", "error", "failed", "skipped"}
