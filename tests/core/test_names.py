"""Public functions and classes say where they are public, so that they pickle; their annotations can be evaluated."""

import importlib
import inspect
import json
import operator
import pickle
import pkgutil
import subprocess
import sys
import typing
from collections import Counter
from types import FunctionType

import pytest
import torch

import weft
from weft.compat import served
from weft.core import dtype as dtypes
from weft.core import layout as layouts
from weft.core.names import INNER
from weft.core.registry import FUNCTIONS


def modules_of_weft():
    yield weft
    for info in pkgutil.walk_packages(weft.__path__, "weft."):
        top = info.name.split(".")[1]
        if top not in INNER and top not in ("io", "__main__"):
            yield importlib.import_module(info.name)
    for name in sorted({*served.NAMES, *served.ELSEWHERE}):
        module = importlib.import_module(f"weft.{name}")
        yield module
        for info in pkgutil.walk_packages(vars(module).get("__path__", ()), f"weft.{name}."):
            yield importlib.import_module(info.name)


def public_members(module):
    """What a module offers and weft has made: the names of `__all__`, else those that do not begin with `_`."""
    names = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
    for name in names:
        value = getattr(module, name)
        if isinstance(value, (FunctionType, type)) and value.__module__.partition(".")[0] == "weft":
            yield name, value


def theirs(path):
    """The names of a module of PyTorch."""
    try:
        module = importlib.import_module(path)
    except ImportError:
        return []
    return getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])


def all_public():
    """Every public function and class of weft that PyTorch has under the same name, once."""
    seen = {}
    for module in modules_of_weft():
        known = theirs(module.__name__.replace("weft", "torch", 1))
        for name, value in public_members(module):
            if name in known:
                seen.setdefault(id(value), (f"{module.__name__}.{name}", value))
    return list(seen.values())


def test_public_names_pickle_by_reference():
    """`Pool.map(torch.exp, ...)` and a loader's workers get functions this way."""
    lost = []
    for path, value in all_public():
        try:
            same = pickle.loads(pickle.dumps(value)) is value
        except Exception:
            same = False
        if not same:
            lost.append(f"{path} says that it is {value.__module__}.{value.__qualname__}")
    assert not lost


def test_a_function_a_dtype_and_a_layout_have_different_names():
    """`weft/__init__.py` gives the namespace all of them, so that a second object of a name would replace the first."""
    kinds = (layouts.Layout, layouts.MemoryFormat)
    names = [*FUNCTIONS, *dtypes.DTYPES, *dtypes.ALIASES]
    names += [each.name for each in vars(layouts).values() if isinstance(each, kinds)]
    assert [name for name, count in Counter(names).items() if count > 1] == []


def test_no_public_name_says_that_it_is_from_an_inner_module():
    inner = tuple(f"weft.{name}" for name in INNER)
    assert not [path for path, value in all_public() if f"{value.__module__}.".startswith(inner)]


def members_of(cls):
    for name, member in vars(cls).items():
        if isinstance(member, (staticmethod, classmethod)):
            member = member.__func__
        if isinstance(member, FunctionType):
            yield name, member


def test_type_hints():
    """transformers asks for them where a model is defined, FastAPI and pydantic where a function is."""
    failed = []
    for path, value in all_public():
        things = [(path, value)]
        if isinstance(value, type):
            things += [(f"{path}.{name}", member) for name, member in members_of(value)]
        for name, each in things:
            try:
                typing.get_type_hints(each)
            except Exception as error:
                failed.append(f"{name}: {error}")
    assert not failed


def test_methods_pickle():
    for name in ("add", "sum", "exp_", "view", "dim", "numpy"):
        method = getattr(weft.Tensor, name)
        assert method.__qualname__ == f"Tensor.{name}"
        assert pickle.loads(pickle.dumps(method)) is method


def test_names_that_handlers_see():
    for path in ("exp", "add", "linalg.inv", "fft.fft", "special.i1", "nn.functional.gelu"):
        own, other = weft, torch
        for part in path.split("."):
            own, other = getattr(own, part), getattr(other, part)
        assert own.__name__ == other.__name__


@pytest.mark.parametrize(
    "name", ["exp", "linalg.inv", "nn.functional.relu", "fft.fft", "special.i1", "masked.amax"]
)
def test_a_function_knows_its_namespace(name):
    function = weft
    for part in name.split("."):
        function = getattr(function, part)
    place, _, last = f"weft.{name}".rpartition(".")
    assert (function.__module__, function.__qualname__) == (place, last)


@pytest.mark.parametrize(
    "path",
    "nn.Module nn.Linear nn.Sequential nn.ModuleList nn.ParameterDict nn.MultiheadAttention nn.Parameter nn.LSTM optim.Adam "
    "optim.Adafactor optim.lr_scheduler.StepLR optim.lr_scheduler.LRScheduler func.grad func.functional_call Tensor "
    "Size device finfo UntypedStorage TypedStorage FloatStorage no_grad save load set_num_threads".split(),
)
def test_homes_are_those_of_pytorch(path):
    own, other = weft, torch
    for part in path.split("."):
        own, other = getattr(own, part), getattr(other, part)
    assert own.__module__.replace("weft", "torch", 1) == (other.__module__ or "torch")
    assert own.__qualname__.rpartition(".")[2] == other.__qualname__.rpartition(".")[2]


def test_dir():
    listed = dir(weft)
    assert not (INNER - {"ops"}).intersection(
        listed
    )  # `torch.ops` is another module than weft's package `ops`
    assert {"nn", "optim", "func", "fft", "linalg", "utils", "distributions", "io", "exp", "Tensor"} <= set(
        listed
    )
    assert listed == sorted(listed)


def test_dir_leaves_out_packages_that_pytorch_does_not_have():
    """Also packages that are loaded later: libraries compare two lists of names.

    `io` and `viz` are public in weft. `functorch` is a package beside torch.
    """
    names = {each.name for each in pkgutil.iter_modules(weft.__path__) if not each.name.startswith("_")}
    own = {name for name in names if not hasattr(torch, name)} - {"io", "viz", "functorch"}
    for name in own:
        importlib.import_module(f"weft.{name}")
    assert "batching" in own and not own.intersection(dir(weft))


def test_star_brings_the_names_that_it_brings_in_pytorch():
    """No modules of weft, and no name that would hide one of the program."""
    brought = {}
    exec("from weft import *", brought)
    assert set(weft.__all__) == set(brought) - {"__builtins__"}
    only = set(weft.__all__) - set(torch.__all__)
    assert all(name == "align_tensors" or name.endswith("_") for name in only)  # functions that PyTorch lacks
    # In a process of its own: a declared name is among those of dir() once a program has asked for it.
    program = "import json, weft; print(json.dumps([name for name in dir(weft) if name not in weft.__all__]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not set(torch.__all__).intersection(json.loads(done.stdout))


def test_signature_is_kept():
    assert list(inspect.signature(weft.nn.functional.softmax).parameters)[:2] == ["input", "dim"]


def test_aliases_are_functions_of_their_own_where_they_are_in_pytorch():
    """`__torch_function__` and graphs tell `absolute` from `abs` by the function."""
    pairs = "abs absolute, mul multiply, cat concat, cat concatenate, sub subtract, sigmoid special.expit, tanh nn.functional.tanh"
    shared = "conv2d nn.functional.conv2d, pdist nn.functional.pdist, prelu nn.functional.prelu"
    for pair in f"{pairs}, {shared}".split(", "):
        own, other = (
            [operator.attrgetter(name)(library) for name in pair.split()] for library in (weft, torch)
        )
        assert (own[0] is own[1]) == (other[0] is other[1]), pair
        assert [each.__name__ for each in own] == [each.__name__ for each in other]
        assert pickle.loads(pickle.dumps(own[1])) is own[1]


def test_handlers_see_the_alias():
    class Asked:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func

    for name in ("absolute", "multiply", "concat", "subtract", "special.expit", "linalg.matmul"):
        function = operator.attrgetter(name)(weft)
        given = (
            ([Asked()],)
            if name == "concat"
            else (Asked(), Asked())[: 1 + (name[0] in "ml" or name == "subtract")]
        )
        assert function(*given) is function
