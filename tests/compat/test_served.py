"""Modules under PyTorch's names whose files lie elsewhere."""

import importlib
import pickle
import subprocess
import sys

import pytest

import weft
from weft.compat import served


@pytest.mark.parametrize("name", sorted({*served.NAMES, *served.ELSEWHERE}))
def test_one_module_has_two_names(name):
    module = importlib.import_module(f"weft.{name}")
    assert module is importlib.import_module(served.own_name(f"weft.{name}"))
    assert served.public_name(module.__spec__.name) == f"weft.{name}" == module.__name__


@pytest.mark.parametrize("name", sorted(served.ELSEWHERE))
def test_each_entry_of_the_table_is_there(name):
    """In a process of its own, because the other name may be loaded already."""
    program = f"import weft, sys; print(sys.modules[weft.{name}.__name__] is weft.{name})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr


@pytest.mark.parametrize("name", sorted(served.MOVED))
def test_old_names_are_names_of_the_module_of_today(name):
    old, new = importlib.import_module(f"weft.{name}"), importlib.import_module(f"weft.{served.MOVED[name]}")
    assert old is new and new.__name__ == f"weft.{served.MOVED[name]}"


@pytest.mark.parametrize("bound", [False, True])
def test_functions_of_a_moved_package_hide_its_modules(bound, run, run_weft):
    """Importing `quantize`, the module, by its old name gives the package no attribute."""
    code = """
import {0}.quantization.quantize, {0}.quantization, {0}.ao.quantization
print({0}.quantization.quantize is {0}.ao.quantization.quantize, callable({0}.quantization.quantize))
"""
    done = run_weft("run", "-c", code.format("torch")) if bound else run("-c", code.format("weft"))
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_modules_with_names_of_pytorch_answer_for_names_that_they_lack():
    """Modules of weft's own have no `__getattr__`, because it makes reading their attributes slower."""
    with pytest.raises(AttributeError, match="weft does not have it; nearest names: .*Interpreter"):
        weft.fx.interpreter.Interpretter  # noqa: B018
    assert not hasattr(importlib.import_module("weft.core.spec"), "__getattr__")
    assert not hasattr(importlib.import_module("weft.compat.served"), "__getattr__")


def test_packages_list_them():
    """`functorch` is a package beside torch."""
    assert set(served.inside("weft")) - {"functorch"} <= set(dir(weft))
    assert "parameter" in dir(weft.nn) and "hooks" in dir(weft.utils)


def test_classes_have_the_module_that_they_have_in_pytorch():
    assert weft.futures.Future.__module__ == "weft.futures"
    assert weft.utils.hooks.RemovableHandle.__module__ == "weft.utils.hooks"
    handle = weft._C.Future()
    assert type(pickle.loads(pickle.dumps(type(handle)))) is type(type(handle))
    assert pickle.loads(pickle.dumps(weft._C.Future)) is weft._C.Future


def test_submodules_of_served_packages_are_loaded_once():
    import weft._C._settings as by_public_name
    import weft.compat.torch._C._settings as by_file

    assert by_public_name is by_file


def test_a_module_that_is_not_there():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'weft\._C\.nothing'"):
        importlib.import_module("weft._C.nothing")
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'weft\._nothing'"):
        importlib.import_module("weft._nothing")


def test_a_module_that_fails_is_not_kept(monkeypatch):
    """The second import tries again, and says the same."""
    monkeypatch.setattr(served._Loader, "exec_module", _failing(served._Loader.exec_module))
    for name in ("weft.monitor", "weft.compat.torch.monitor"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            importlib.import_module("weft.monitor")
        assert "weft.monitor" not in sys.modules and "weft.compat.torch.monitor" not in sys.modules


def _failing(exec_module):
    def changed(self, module):
        self.loader = _Divides(self.loader)
        exec_module(self, module)

    return changed


class _Divides:
    def __init__(self, loader):
        self.name = loader.name

    def get_code(self, name):
        return compile("1 / 0", name, "exec")
