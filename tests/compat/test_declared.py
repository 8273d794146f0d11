import importlib
import inspect
import pkgutil

import pytest
import torch

import weft
from weft.compat import declared

AREAS = sorted(path.stem for path in declared.FOLDER.glob("*.txt"))


def sections(area):
    return [declared._section(module) for module in declared._file(area)]


@pytest.mark.parametrize("area", AREAS)
def test_every_declaration_can_be_used(area):
    for section in sections(area):
        module = importlib.import_module(section.module)
        for name in section.entries:
            is_there = hasattr(module, name) or declared.resolve(module, name) is not None
            assert is_there, f"{section.module}.{name}"


def test_nothing_is_declared_that_weft_has(run):
    """Such a declaration would never be seen: `python tests/compat/interface.py` leaves it out."""
    code = """
import importlib
from weft.compat import declared
for path in declared.FOLDER.glob("*.txt"):
    for name in declared._file(path.stem):
        names = vars(importlib.import_module(name))
        found = {each: names[each] for each in declared._section(name).entries if each in names}
        # weft.ao.quantization takes a declared function.
        print(*(f"{name}.{each}" for each in found if "<weft interface of" not in repr(getattr(found[each], "__code__", ""))))
"""
    done = run("-c", code)
    assert not done.stdout.split(), done.stderr


def test_what_is_called_says_what_is_missing():
    with pytest.raises(
        NotImplementedError, match=r"^torch.cuda.nccl.unique_id: weft declares .* devices do not have it"
    ):
        weft.cuda.nccl.unique_id()
    with pytest.raises(
        NotImplementedError, match=r"^torch.ao.quantization.quantize_fx.fuse_fx: .* quantized"
    ):
        weft.ao.quantization.quantize_fx.fuse_fx(None)
    with pytest.raises(AttributeError, match="nearest names: current_device"):
        weft.cuda.curent_device  # noqa: B018
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("weft.cuda.zzz")


def test_what_can_be_answered_is_answered():
    for device in ("cuda", "xpu", "mtia", "mps"):
        ours, theirs = getattr(weft, device), getattr(torch, device)
        assert ours.is_available() is theirs.is_available() is False
        assert ours.device_count() == theirs.device_count() == 0
        ours.manual_seed(0)
    assert weft.cuda.memory_allocated() == 0 and weft.cuda.memory_stats() == {}
    assert not weft.xpu.is_bf16_supported() and not weft.xpu.is_initialized()


@pytest.mark.filterwarnings("ignore")
def test_a_declared_name_that_only_asks_answers():
    """`is_available`, `has_*`, counts and versions of what weft does not have say so, and do not raise NotImplementedError."""
    from compat.interface import asks

    asked = 0
    for area in AREAS:
        for section in sections(area):
            module = importlib.import_module(section.module)
            for name, (_, entry) in section.entries.items():
                if not asks(name) or not entry["function"]:
                    continue
                function = getattr(module, name)
                parameters = inspect.signature(function).parameters.values()
                needed = [
                    each
                    for each in parameters
                    if each.default is each.empty and each.kind < each.VAR_POSITIONAL
                ]
                function(*[weft.ones(1) for _ in needed])
                asked += 1
    assert asked > 20
    assert weft.distributed.rpc.is_available() is False and weft.cuda.nccl.version() is None


def test_classes_can_be_asked_about_and_enumerations_are_real():
    assert not isinstance(weft.ones(1), weft.cuda.Event)
    assert issubclass(weft.ao.nn.quantized.Linear, weft.nn.Module)
    assert weft.cuda.Event.__module__ == "weft.cuda.streams"
    ours, theirs = weft.ao.quantization.QuantType, torch.ao.quantization.QuantType
    assert {each.name: each.value for each in ours} == {each.name: each.value for each in theirs}
    with pytest.raises(weft.cuda.CudaError):
        raise weft.cuda.CudaError("the class is an exception")


def test_modules_under_the_name_of_another_package(run_weft):
    code = """
import torch
import torch.distributed._tensor.experimental as old
import torch.distributed.tensor.experimental as new
from torch.distributed._tensor.device_mesh import DeviceMesh
print(old.local_map is new.local_map, DeviceMesh is torch.distributed.DeviceMesh)
"""
    done = run_weft("run", "-c", code)
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_what_pytorchs_modules_import_can_be_imported_from_them(run_weft):
    code = """
from torch.distributions.multivariate_normal import Distribution, lazy_property
from torch.nn.modules.conv import _pair
from torch.nn.modules.container import Module, Parameter
from torch.optim.adam import Tensor
import torch
print(Distribution is torch.distributions.Distribution, _pair(1), Module is torch.nn.Module, Tensor is torch.Tensor)
try:
    from torch.nn.modules.conv import Conv4d
except ImportError as error:
    print("nearest names" in str(error))
"""
    done = run_weft("run", "-c", code)
    assert done.stdout.splitlines() == ["True (1, 1) True True", "True"], done.stderr


def test_signatures_are_those_of_pytorch():
    for path in ("cuda.set_device", "ao.quantization.quantize_dynamic", "cuda.nccl.all_reduce"):
        ours, theirs = weft, torch
        for part in path.split("."):
            ours, theirs = getattr(ours, part), getattr(theirs, part)
        assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)


@pytest.mark.parametrize("entry", ["class A(x) of: b", "class A: b()", "f(x", "X =", "from torch import x"])
def test_what_is_no_declaration_is_refused(entry):
    with pytest.raises(SyntaxError, match="not a declaration"):
        declared.Section("weft.x").add("", [entry])


def test_entries_of_each_kind():
    section = declared.Section("weft.x")
    lines = [
        "from torch.y: a, b as c; class D(x, y=(1, 2)) of E, F: g, h; class I of J",
        "k, o(l=(1, 2), *, m='=') = {}; N = f(1)",
    ]
    section.add("the reason", lines)
    assert list(section.entries) == ["a", "c", "D", "I", "k", "o", "N"]
    codes = [declared._source(section.entries[name][1], name, "torch.x") for name in ("D", "I", "o", "N")]
    assert codes == [
        "class D(E, F):\n    pass\n"
        "    def __init__(self, x, y=(1, 2)): _refuse('torch.x.D')\n"
        "    def g(*args, **kwargs): _refuse('torch.x.D.g')\n"
        "    def h(*args, **kwargs): _refuse('torch.x.D.h')",
        "class I(J):\n    pass",
        "def o(l=(1, 2), *, m='='): return {}",
        "N = f(1)",
    ]


def public_paths(package):
    """The public modules of a package of PyTorch at any depth, which PyTorch itself can import here."""
    for info in pkgutil.iter_modules(package.__path__):
        name = f"{package.__name__}.{info.name}"
        if info.name.startswith("_") or info.name in ("testing", "test", "tests", "examples"):
            continue
        try:
            module = importlib.import_module(name)
        except Exception:  # needs something that is not installed
            continue
        yield name
        if hasattr(module, "__path__"):
            yield from public_paths(module)


@pytest.mark.filterwarnings("ignore")
def test_every_module_path_imports():
    missing = []
    for path in public_paths(torch):
        try:
            importlib.import_module("weft" + path.removeprefix("torch"))
        except ImportError:
            missing.append(path)
    assert not missing
