"""What a name that weft does not have says: that weft does not have it, and what to use instead or which names come nearest."""

import importlib
import pkgutil
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib.machinery import PathFinder
from types import FrameType, ModuleType
from typing import Any, NoReturn

from ..core.names import INNER, ROOT, set_name
from . import declared, served


def module_getattr(
    module_name: str, lazy: Collection[str] | None = None, names: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """A `__getattr__` for the module `module_name`, which Python calls for names that the module lacks.

    It imports the submodules named in `lazy`, all public ones without `lazy`, when they are first used, takes what `names` lists from the submodules that it
    says, and makes the names that are only declared (declared.py). For other names it raises AttributeError, or ImportError
    if they are wanted by `from module import name`.

    >>> __getattr__ = module_getattr("weft.compat")
    >>> __getattr__("uninstal")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    AttributeError: module 'weft.compat' has no attribute 'uninstal': weft does not have it; nearest names: ...
    """

    def __getattr__(name: str) -> Any:
        module = sys.modules[module_name]
        is_lazy = _is_public_submodule(module, name) if lazy is None else name in lazy
        if is_lazy or served.serves(f"{module_name}.{name}"):
            return importlib.import_module(f"{module_name}.{name}")
        if names is not None and name in names:
            found = getattr(importlib.import_module(f"{module_name}.{names[name]}"), name)
            setattr(module, name, found)
            return found
        if not name.startswith("__") and declared.has(module_name, name):
            return declared.resolve(module, name)
        reason = "weft does not have it"
        # Python itself probes for many a __name__, and `from package import submodule` before it loads the submodule.
        if not name.startswith("_") and sys._getframe(1).f_code.co_name != "_handle_fromlist":
            submodules = _submodules(module) if lazy is None else lazy
            candidates = [*vars(module), *submodules, *declared.names(module_name)]
            reason += _instead(module.__name__, name) or _nearest(name, candidates)
        # In an import cycle `from package import submodule` looks in sys.modules after an AttributeError.
        if _imports_from(sys._getframe(1)) and f"{module_name}.{name}" not in sys.modules:
            raise ImportError(
                f"cannot import name {name!r} from {module.__name__!r}: {reason}", name=module.__name__
            )
        raise AttributeError(
            f"module {module.__name__!r} has no attribute {name!r}: {reason}", name=name, obj=module
        )

    return __getattr__


def package_names(name: str, table: Mapping[str, str]) -> tuple[list[str], Callable[[str], Any]]:
    """`__all__` and `__getattr__` of a package that takes names from its modules: `table` lists them for each module.

    >>> import weft.ao.nn.qat.modules
    >>> __all__, __getattr__ = package_names("weft.ao.nn.qat.modules", {"conv": "Conv1d Conv2d", "linear": "Linear"})
    >>> __all__, __getattr__("Linear").__name__
    (['Conv1d', 'Conv2d', 'Linear'], 'Linear')
    """
    homes = {each: module for module, names in table.items() for each in names.split()}
    return sorted(homes), module_getattr(name, table, homes)


def missing_module(torch_name: str) -> ModuleNotFoundError:
    """The error for `import torch.x`, where weft has no module `weft.x`."""
    parent_name, _, name = torch_name.rpartition(".")
    parent = sys.modules[parent_name]
    found = _submodules(parent)
    submodules = [
        name
        for name in (*found, *served.inside(parent.__name__))
        if parent_name != "torch" or name not in INNER
    ]
    hint = _instead(parent_name, name) or _nearest(name, submodules)
    message = f"No module named {torch_name!r}: weft does not have it{hint}"
    return ModuleNotFoundError(message, name=torch_name)


def missing_function(torch_name: str, instead: str) -> Callable[..., NoReturn]:
    """A function that weft does not have, of a module that scripts import: it says so when it is called.

    >>> missing_function("torch.hub.load", "build the model yourself")()
    Traceback (most recent call last):
    NotImplementedError: torch.hub.load: weft does not have it: build the model yourself
    """

    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{torch_name}: weft does not have it: {instead}")

    place, _, name = torch_name.removeprefix("torch").rpartition(".")
    set_name(function, f"{ROOT}{place}", name)
    return function


def _is_public_submodule(module: ModuleType, name: str) -> bool:
    if name.startswith("_") or "__path__" not in vars(module):
        return False
    return PathFinder.find_spec(f"{module.__name__}.{name}", module.__path__) is not None


def _submodules(module: ModuleType) -> list[str]:
    return [info.name for info in pkgutil.iter_modules(vars(module).get("__path__", ()))]


def _instead(module: str, name: str) -> str:
    from .instead import instead  # only names that are missing need it

    advice = instead(module, name)
    return f"; {advice}" if advice else ""


def _nearest(name: str, candidates: Iterable[str]) -> str:
    from difflib import get_close_matches  # only names that are missing need it

    found = get_close_matches(name, dict.fromkeys(each for each in candidates if not each.startswith("_")))
    return f"; nearest name{'s' if len(found) > 1 else ''}: {', '.join(found)}" if found else ""


def _imports_from(frame: FrameType) -> bool:
    """Whether `frame` carries out a `from ... import`, which would put its own words for an AttributeError."""
    from opcode import opmap

    return frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]
