BLIND = "import sys, weft; sys.path.clear(); sys.modules.pop('torch', None)\n"  # nothing else can be imported


def test_import_torch_says_how_weft_stands_for_it(run):
    for statement in (
        "import torch",
        "import torch.nn.functional",
        "from torch import nn",
        "import functorch",
    ):
        error = run("-c", BLIND + statement).stderr.splitlines()[-1]
        assert error.startswith("ModuleNotFoundError: No module named '")
        assert "weft run script.py" in error and "weft.compat.install()" in error


def test_questions_and_attempts_are_answered_as_before(run):
    code = """
import importlib.util, pkgutil
print(importlib.util.find_spec("torch"))
try:
    import torch
except ImportError as error:
    print(type(error).__name__, error.name)
try:
    import torchvision
except ImportError as error:
    print(error)
weft.compat.install()
import torch
print(torch is weft)
"""
    done = run("-c", BLIND + code)
    assert done.stdout.splitlines() == [
        "None",
        "ModuleNotFoundError torch",
        "No module named 'torchvision'",
        "True",
    ], done.stderr
