import os
import sys

import weft
from weft import compat
from weft.compat.binding import STARTUP


def test_every_torch_import_is_the_weft_module(run_weft):
    code = """
import torch, torch.linalg, torch.utils.benchmark as benchmark, importlib
from torch import linalg
from torch.utils import benchmark as again
import weft, weft.utils.benchmark
assert torch is weft and torch.linalg is linalg is weft.linalg
assert benchmark is again is weft.utils.benchmark
assert importlib.import_module("torch.utils") is weft.utils
assert (weft.linalg.__name__, weft.linalg.__spec__.name) == ("torch.linalg", "weft.compat.torch.linalg")
print(torch.__version__)
"""
    done = run_weft("run", "-c", code)
    assert done.stdout == "2.13.0+weft\n", done.stderr


def test_modules_are_loaded_once(run_weft):
    code = """
import torch.distributions
from torch.distributions import kl
assert torch.distributions.kl is kl and vars(torch.distributions)["kl"] is kl
assert torch.distributions.Normal is torch.distributions.normal.Normal
import torch.optim.adam, torch.optim
assert vars(torch.optim)["adam"] is torch.optim.adam
"""
    done = run_weft("run", "-c", code)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_torch_module_runs_as_the_program(run_weft):
    done = run_weft("run", "-m", "torch.utils.model_zoo")
    assert (done.returncode, done.stderr) == (0, "")


def test_asking_for_a_module_is_not_importing_it(run_weft):
    code = "from importlib.util import find_spec; print(find_spec('torch') is None, find_spec('torch.zzz'))"
    done = run_weft("run", "-c", code)
    assert done.stdout == "False None\n", done.stderr


def test_processes_that_the_script_starts(run_weft, tmp_path):
    (tmp_path / "script.py").write_text("""
import multiprocessing, subprocess, sys
import torch

def work(x):
    return torch.__name__, __name__, torch.tensor(x).tolist()

if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(method, pool.apply(work, ([1, 2],)), flush=True)
    subprocess.run([sys.executable, "-c", "import torch; print('subprocess', torch.__name__)"], check=True)
""")
    done = run_weft("run", "script.py")
    assert done.stdout.splitlines() == [
        "fork ('torch', '__main__', [1, 2])",
        "spawn ('torch', '__mp_main__', [1, 2])",
        "forkserver ('torch', '__mp_main__', [1, 2])",
        "subprocess torch",
    ], done.stderr


def test_ahead_of_an_installed_torch_and_of_another_weft(run_weft, tmp_path):
    for name in ("torch", "weft"):
        (tmp_path / f"{name}.py").write_text("raise AssertionError('the wrong module')")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "torch.py").write_text("raise AssertionError('the wrong module')")
    (tmp_path / "script.py").write_text("import torch; print(torch.__version__)")
    done = run_weft("run", "script.py", PYTHONPATH=str(tmp_path / "elsewhere"), PYTHONSAFEPATH="1")
    assert done.stdout == "2.13.0+weft\n", done.stderr


def test_modules_and_what_they_define_have_torch_names(run_weft):
    code = """
import inspect, pickle, sys
import torch
from torch import nn
from torch.optim import adam
print(torch.__name__, nn.__name__, adam.__name__, sys.modules["torch.nn"] is nn)
print(nn.Linear.__module__, nn.init.uniform_.__module__, inspect.getmodule(nn.Linear).__name__)
print(pickle.loads(pickle.dumps((nn.Linear, nn.init.uniform_))) == (nn.Linear, nn.init.uniform_))
print(any(name.startswith("weft") for name in pickle.dumps(nn.Linear(1, 1)).decode("latin1").split("\\n")))
"""
    done = run_weft("run", "-c", code)
    assert done.stdout.splitlines() == [
        "torch torch.nn torch.optim.adam True",
        "torch.nn.modules.linear torch.nn.init torch.nn.modules.linear",
        "True",
        "False",
    ], done.stderr


def test_the_distribution_is_called_torch(run_weft):
    code = """
import importlib.metadata as metadata
print(metadata.version("torch"), metadata.distribution("torch").metadata["Name"])
print(sum(each.metadata["Name"] == "torch" for each in metadata.distributions()) >= 1)
print(metadata.files("torch"), metadata.requires("torch"))
"""
    done = run_weft("run", "-c", code)
    assert done.stdout == "2.13.0+weft torch\nTrue\nNone None\n", done.stderr


def test_the_users_sitecustomize_still_runs(run_weft, tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import sys; sys.greeting = __file__")
    code = "import sys, sitecustomize; print(sys.greeting == sitecustomize.__file__, sys.greeting)"
    done = run_weft("run", "-c", code, PYTHONPATH=str(folder))
    assert done.stdout == f"True {folder / 'sitecustomize.py'}\n", done.stderr


def test_tools_can_import_the_start_up_file(run_weft):
    code = """
import sys, torch.compat.startup.sitecustomize
print(sum(type(finder).__name__ == "_Binding" for finder in sys.meta_path))
"""
    assert run_weft("run", "-c", code).stdout == "1\n"


def test_start_up_does_not_import_weft(run_weft):
    code = "import sys; print(any(name in sys.modules for name in ('weft', 'numpy', 'llvmlite')))"
    assert run_weft("run", "-c", code).stdout == "False\n"


def test_install_and_uninstall_within_a_program(monkeypatch):
    for name in [name for name in sys.modules if name == "torch" or name.startswith("torch.")]:
        monkeypatch.delitem(sys.modules, name)
    before = object()
    monkeypatch.setitem(sys.modules, "torch", before)
    monkeypatch.setitem(sys.modules, "torch.mine", before)
    monkeypatch.setenv("PYTHONPATH", "mine")
    path = list(sys.meta_path)

    compat.install()
    compat.install()
    try:
        import torch

        assert torch is weft
        assert (torch.__name__, torch.nn.Linear.__module__) == ("torch", "torch.nn.modules.linear")
        assert "torch.mine" not in sys.modules
        assert os.environ["PYTHONPATH"] == os.pathsep.join((STARTUP, "mine"))
    finally:
        compat.uninstall()
        compat.uninstall()
    assert (weft.__name__, weft.nn.Linear.__module__) == ("weft", "weft.nn.modules.linear")
    assert sys.modules["torch"] is sys.modules["torch.mine"] is before
    assert sys.meta_path == path
    assert os.environ["PYTHONPATH"] == "mine"


def test_modules_whose_names_only_begin_like_torch_are_left_alone(run_weft, tmp_path):
    (tmp_path / "torchish.py").write_text("name = 'mine'")
    done = run_weft("run", "-c", "import sys; sys.path.insert(0, '.'); import torchish; print(torchish.name)")
    assert done.stdout == "mine\n", done.stderr
