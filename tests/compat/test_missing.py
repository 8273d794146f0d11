import importlib
import sys
import types

import pytest

from weft import compat
from weft.compat.missing import module_getattr


@pytest.fixture
def module(monkeypatch):
    module = types.ModuleType("weft.shapes")
    module.square, module.circle, module._cirle = 1, 2, 3
    module.__getattr__ = module_getattr("weft.shapes")
    monkeypatch.setitem(sys.modules, "weft.shapes", module)
    return module


def test_attribute(module):
    with pytest.raises(AttributeError) as caught:
        module.cirle  # noqa: B018
    message = "module 'weft.shapes' has no attribute 'cirle': weft does not have it; nearest name: circle"
    assert str(caught.value) == message
    assert (caught.value.name, caught.value.obj) == ("cirle", module)
    assert not hasattr(module, "zzz") and getattr(module, "zzz", 5) == 5


def test_from_import(module):
    message = "cannot import name 'squares' from 'weft.shapes': weft does not have it; nearest name: square"
    with pytest.raises(ImportError, match=message):
        from weft.shapes import squares  # noqa: F401


def test_from_import_of_a_half_imported_submodule(module, monkeypatch):
    """Python finds it in sys.modules, once the attribute is missing: import cycles live on that."""
    monkeypatch.setitem(sys.modules, "weft.shapes.cycle", types.ModuleType("weft.shapes.cycle"))
    from weft.shapes import cycle

    assert cycle is sys.modules["weft.shapes.cycle"]


def test_lazy_submodule(monkeypatch):
    package = types.ModuleType("weft.lazy")
    package.__getattr__ = module_getattr("weft.lazy", lazy=("later",))
    later = types.ModuleType("weft.lazy.later")
    monkeypatch.setitem(sys.modules, "weft.lazy", package)
    monkeypatch.setitem(sys.modules, "weft.lazy.later", later)
    assert package.later is later
    with pytest.raises(AttributeError, match="nearest name: later"):
        package.latter  # noqa: B018


def test_public_submodules_without_a_list(monkeypatch, tmp_path):
    for name in ("later", "_private"):
        (tmp_path / f"{name}.py").write_text("")
    package = types.ModuleType("weft.lazy")
    package.__path__ = [str(tmp_path)]
    package.__getattr__ = module_getattr("weft.lazy")
    monkeypatch.setitem(sys.modules, "weft.lazy", package)
    assert package.later.__name__ == "weft.lazy.later"
    monkeypatch.delitem(sys.modules, "weft.lazy.later")
    with pytest.raises(AttributeError):
        package._private  # noqa: B018
    del package.later
    with pytest.raises(AttributeError, match="nearest name: later"):
        package.latter  # noqa: B018


def test_no_advice_on_private_names(module):
    with pytest.raises(AttributeError, match="weft does not have it$"):
        module._circle  # noqa: B018


def test_the_whole_namespace_answers():
    import weft

    with pytest.raises(AttributeError, match="weft does not have it; nearest names?: .*arange"):
        weft.arrange  # noqa: B018
    with pytest.raises(
        ImportError, match="cannot import name 'arrange' from 'weft': weft does not have it; nearest"
    ):
        from weft import arrange  # noqa: F401


def test_module():
    compat.install()
    try:
        with pytest.raises(
            ModuleNotFoundError, match="'torch.utilz': weft does not have it; nearest name: utils"
        ) as caught:
            importlib.import_module("torch.utilz")
        assert caught.value.name == "torch.utilz"
        with pytest.raises(ModuleNotFoundError, match="No module named 'torch.zzzz': weft does not have it$"):
            import torch.zzzz  # noqa: F401
    finally:
        compat.uninstall()
