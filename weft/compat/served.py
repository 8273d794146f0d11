"""Modules under PyTorch's names whose files lie elsewhere: PyTorch's private and legacy modules.

`weft._C`, `weft.fft` and the like are files of weft/compat/torch. `ELSEWHERE` lists modules that have such a name in PyTorch, but are part of
another folder here. There is one module, found under two names. While it is loaded its `__name__` is PyTorch's already, so its
functions and classes have the module that they have in PyTorch. `__package__` and `__spec__` say where the file is, and relative imports use them.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import CodeType, ModuleType
from typing import Any

from ..core.names import ROOT
from .binding import _binding, alias

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch")
_HOME = f"{ROOT}.compat.torch"
# PyTorch's name -> the module of weft, both without the name of the root. What lies inside of a module is served with it.
ELSEWHERE = {
    "_C._future": "core.future",
    "_C._keys": "library.keys",
    "_C._schema": "library.schema",
    "_C._types": "library.types",
    "__future__": "nn.conversion_settings",
    "_decomp": "library.decompositions",
    "_dynamo.backends": "compiler.backends",
    "_dynamo.config": "compiler.dynamo_config",
    "_dynamo.eval_frame": "compiler.optimized_module",
    "_dynamo.exc": "compiler.errors",
    "_functorch.config": "library.functorch_config",
    "_functorch.vmap": "func.steps",
    "_higher_order_ops": "library.higher_order",
    "_jit_internal": "jit.internal",
    "_library": "library.registry",
    "_ops": "library.namespaces",
    "_subclasses.fake_tensor": "library.fake_tensor",
    "futures": "core.futures",
    "hub": "utils.hub",
    "jit._builtins": "library.builtins",
    "nn.parallel.distributed": "distributed.data_parallel",
    "nn.parameter": "autograd.parameter",
    "nn.utils.stateless": "func.replaced",
    "torch_version": "compat.version",
    "utils._foreach_utils": "optim.foreach_utils",
    "utils._python_dispatch": "library.python_dispatch",
    "utils._pytree": "core.pytree",
    "utils.hooks": "autograd.handles",
    "utils.weak": "core.weak",
}
_OURS = {own: name for name, own in ELSEWHERE.items()}
# Old names that PyTorch keeps -> the names of today, by which the modules know themselves. What lies inside of a module has moved with it.
MOVED = {
    "distributed._shard.checkpoint": "distributed.checkpoint",
    "distributed._sharded_tensor": "distributed._shard.sharded_tensor",
    "distributed._sharding_spec": "distributed._shard.sharding_spec",
    "distributed._tensor.device_mesh": "distributed.device_mesh",
    "distributed._tensor.experimental": "distributed.tensor.experimental",
    "nn.intrinsic": "ao.nn.intrinsic",
    "nn.qat": "ao.nn.qat",
    "nn.quantizable": "ao.nn.quantizable",
    "nn.quantized": "ao.nn.quantized",
    "quantization": "ao.quantization",
    "quantization.fx.fusion_patterns": "ao.quantization.fx.fuse_handler",
    "quantization.fx.quantization_patterns": "ao.quantization.fx.quantize_handler",
    "quantization.fx.quantization_types": "ao.quantization.utils",
}
_SERVED = ELSEWHERE | MOVED
_PACKAGES, _OUR_PACKAGES = (tuple(f"{name}." for name in table) for table in (_SERVED, _OURS))
# Folders whose modules have names of PyTorch's, so that each of them answers for the names that it lacks (missing.py). Modules of other
# folders say so themselves: Python reads attributes of a module with `__getattr__` in 17 ns instead of 4 (AMD Zen 3).
_ANSWERING = tuple(
    f"{ROOT}.{folder}."
    for folder in (
        *(
            "amp",
            "ao",
            "compat.torch",
            "compiler",
            "cuda",
            "distributed",
            "distributions",
            "export",
            "func",
            "fx",
        ),
        *("jit", "library", "masked", "onnx", "profiler", "testing", "utils"),
    )
)
# What weft/compat/torch has: names of modules of the root.
NAMES = frozenset(entry.partition(".")[0] for entry in os.listdir(FOLDER)) - {"__init__", "__pycache__"}


class Finder:
    """Finds served modules under both names. It stands before Python's finders, which would load the files of packages once more."""

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not fullname.startswith(f"{ROOT}."):
            return None
        name = _public(fullname)
        if name is not None or fullname.startswith(_ANSWERING):
            # pytest gives the folder of the file instead of that of the package.
            spec = PathFinder.find_spec(fullname, sys.modules[fullname.rpartition(".")[0]].__path__)
            if spec is not None:
                spec.loader = _Loader(spec.loader, name or fullname)  # type: ignore[assignment]
                return spec
        own = _own(fullname)
        if own is None:
            return None
        try:
            module = importlib.import_module(own)
        except ModuleNotFoundError as error:
            if not f"{own}.".startswith(f"{error.name}."):  # it is there, and what it needs is not installed
                raise
            return None
        return alias(fullname, module)


class _Loader:
    """Loads a file under PyTorch's name, and lets the module answer for names that it lacks."""

    def __init__(self, loader: Any, name: str):
        self.loader = loader
        self.name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__name__ = self.name
        sys.modules[self.name] = module
        try:
            exec(self.loader.get_code(self.loader.name), vars(module))
        except BaseException:
            sys.modules.pop(self.name, None)
            raise
        if "__getattr__" not in vars(module) and self.loader.name.startswith(_ANSWERING):
            from .missing import module_getattr

            module.__getattr__ = module_getattr(self.name)  # type: ignore[method-assign]

    def get_code(self, name: str) -> CodeType:
        return self.loader.get_code(self.loader.name)

    def get_source(self, name: str) -> str:
        return self.loader.get_source(self.loader.name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)


def public_name(name: str) -> str:
    """PyTorch's name of a module, with the root's name; `name` itself if the two are the same.

    >>> public_name("weft.compat.torch.fft"), public_name("weft.nn")
    ('weft.fft', 'weft.nn')
    """
    return _public(name) or name


def own_name(name: str) -> str:
    """The module of weft that PyTorch calls `name`; `name` itself if the two are the same.

    >>> own_name("weft.fft"), own_name("weft.nn")
    ('weft.compat.torch.fft', 'weft.nn')
    """
    return _own(name) or name


def serves(name: str) -> bool:
    """Whether `name` is a module under PyTorch's name.

    >>> serves("weft.fft"), serves("weft.utils.hooks"), serves("weft.utils.data")
    (True, True, False)
    """
    within = name.partition(".")[2]
    return within in _SERVED or within in NAMES


def inside(package: str) -> list[str]:
    """The last parts of the names that are served inside of a package: `weft`, `weft.utils`."""
    within = package.partition(".")[2]
    names = [*_SERVED, *NAMES]
    return sorted(name.rpartition(".")[2] for name in names if name.rpartition(".")[0] == within)


def _public(name: str) -> str | None:
    """The name under which a file of weft is served; None if that is its own."""
    if name.startswith(f"{_HOME}."):
        return ROOT + name.removeprefix(_HOME)
    return _renamed(name, _OURS, _OUR_PACKAGES)


def _own(name: str) -> str | None:
    """The module of weft that PyTorch calls `name`; None if it has no other name here."""
    own = _renamed(name, _SERVED, _PACKAGES)
    rest = name.partition(".")[2]
    if own is None and rest.partition(".")[0] in NAMES:
        return f"{_HOME}.{rest}"
    return own


def _renamed(name: str, table: dict[str, str], packages: tuple[str, ...]) -> str | None:
    """`name` with the part that `table` lists exchanged; `packages` are the names of the table with a dot behind them."""
    rest = name.partition(".")[2]
    other = table.get(rest)
    if other is None and rest.startswith(packages):
        package = next(each for each in packages if rest.startswith(each))
        other = f"{table[package[:-1]]}.{rest.removeprefix(package)}"
    return None if other is None else f"{ROOT}.{other}"


# The binding comes first, because it names what this finder finds.
sys.meta_path.insert(sys.meta_path[:1] == [_binding], Finder)
