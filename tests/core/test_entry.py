"""The one place where public functions ask modes and classes."""

import pathlib
import re

import pytest
import torch

import weft
from weft.core.entry import entry
from weft.core.registry import add_function, add_member, add_method

LIBRARIES = pytest.mark.parametrize("lib", [weft, torch], ids=["weft", "torch"])
PACKAGE = pathlib.Path(weft.__file__).parent


def test_one_place_asks():
    calls = [
        (path.relative_to(PACKAGE).as_posix(), line.strip())
        for path in PACKAGE.rglob("*.py")
        for line in path.read_text().splitlines()
        if re.search(r"(?<!def )\b(overridden|found_override)\(", line)
    ]
    # torch.overrides.handle_torch_function is PyTorch's way for programs to ask.
    assert sorted({path for path, _ in calls}) == ["core/entry.py", "overrides.py"]
    assert len([path for path, _ in calls if path == "core/entry.py"]) == 2


def told_of(lib):
    class Told(lib.Tensor):
        functions: list = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.functions.append((func.__name__, args, kwargs))
            return super().__torch_function__(func, types, args, kwargs or {})

    return Told


CALLS = {
    "x += mine": lambda lib, x, mine: x.__iadd__(mine),
    "x ** mine": lambda lib, x, mine: x**mine,
    "2 ** mine": lambda lib, x, mine: 2**mine,
    "x / mine": lambda lib, x, mine: x / mine,
    "1 / mine": lambda lib, x, mine: 1 / mine,
    "x @ mine": lambda lib, x, mine: x @ mine,
    "add alpha": lambda lib, x, mine: lib.add(x, mine, alpha=2),
    "x.add alpha": lambda lib, x, mine: x.add(mine, alpha=2),
    "x.sub_": lambda lib, x, mine: x.sub_(mine),
    "subtract": lambda lib, x, mine: lib.subtract(x, mine),
    "sum": lambda lib, x, mine: lib.sum(mine, axis=0),
    "out": lambda lib, x, mine: lib.exp(x, out=mine),
    "clamp": lambda lib, x, mine: lib.clamp(x, mine),
    "clamp_": lambda lib, x, mine: x.clamp_(mine),
    "copy_": lambda lib, x, mine: x.copy_(mine),
    "to": lambda lib, x, mine: x.to(mine),
    "setitem": lambda lib, x, mine: x.__setitem__(0, mine[0]),
    "where": lambda lib, x, mine: lib.where(x > 0, mine, 0.0),
    "einsum": lambda lib, x, mine: lib.einsum("i,i", [x, mine]),
    "stack": lambda lib, x, mine: lib.stack([x, mine]),
    "meshgrid": lambda lib, x, mine: lib.meshgrid(x, mine, indexing="ij"),
    "linear": lambda lib, x, mine: lib.nn.functional.linear(x, mine),
}


@pytest.mark.parametrize("name", CALLS)
def test_handlers_are_told_the_same_as_in_pytorch(name):
    def told(lib):
        kind = told_of(lib)
        x, mine = lib.ones(2), lib.full((2,), 2.0).as_subclass(kind)
        kind.functions.clear()
        CALLS[name](lib, x, mine)
        return [(func, len(args), sorted(kwargs or {})) for func, args, kwargs in kind.functions]

    assert told(weft) == told(torch)


def test_a_taken_name_is_refused():
    for add, name in ((add_function, "add"), (add_method, "add"), (add_member, "shape")):
        with pytest.raises(ValueError, match="taken|already"):
            add(name, len)


def test_memory_errors_and_missing_attributes_are_explained():
    def raising(input: "Tensor", error: type):  # noqa: F821 (annotations of weft are text)
        raise error("inside")

    with pytest.raises(RuntimeError, match="allocate"):
        entry(raising)(weft.ones(1), MemoryError)
    with pytest.raises(AttributeError, match="inside"):
        entry(raising)(weft.ones(1), AttributeError)
    with pytest.raises(
        TypeError, match=r"raising\(\): argument 'input' \(position 1\) must be Tensor, not int"
    ):
        entry(raising)(1, AttributeError)


@LIBRARIES
def test_classes_are_asked_before_autocast_converts(lib):
    seen = []

    class Seeing(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is lib.mm:
                seen.append(args[0].dtype)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = lib.ones(2, 2).as_subclass(Seeing)
    with lib.autocast("cpu"):
        result = lib.mm(x, x)
    assert seen == [lib.float32] and result.dtype == lib.bfloat16


@LIBRARIES
def test_redispatching_asks_once(lib):
    from importlib import import_module

    overrides = import_module(f"{lib.__name__}.overrides")
    told = []

    class Mode(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            told.append(func.__name__)
            return func(*args, **kwargs or {})

    with Mode():
        lib.add(lib.ones(1), 1, alpha=2)
    assert told == ["ones", "add"]


def test_overridable_functions_are_those_of_pytorch():
    import torch.overrides

    def names(lib):
        return {lib.overrides.resolve_name(function) for function in lib.overrides.get_testing_overrides()}

    # Functions of other devices, of quantized tensors and of PyTorch's inside that weft does not have are missing.
    own, reference = names(weft), names(torch)
    assert len(own & reference) > 1320
    assert own - reference <= {
        "torch.Tensor.__abs__", "torch.Tensor.__idiv__", "torch.Tensor.__neg__", "torch.Tensor.__pos__",
        "torch.Tensor.__rdiv__", "torch.Tensor.to_device", "torch.Tensor.unravel_index", "torch.dsmm", "torch.hsmm",
        "torch.mm", "torch.native_channel_shuffle", "torch.quantized_gru", "torch.quantized_lstm", "torch.saddmm", "torch.segment_reduce", "torch.to_dlpack",
        # PyTorch has given up named tensors.
        "torch.Tensor.align_as", "torch.Tensor.align_to", "torch.Tensor.has_names", "torch.Tensor.names.__get__", "torch.align_tensors",
        "torch.Tensor.refine_names", "torch.Tensor.rename", "torch.Tensor.rename_",
    }  # fmt: skip
    for name in ("torch.functional.einsum", "torch.nn.functional.conv1d", "torch.nn.init.uniform_"):
        assert name in own & reference
