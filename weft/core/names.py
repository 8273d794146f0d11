"""Where functions and classes say that they are public: their `__module__` and `__qualname__`."""

import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

# The name of the package. `__module__` of public objects begins with this name, so that pickle finds them.
ROOT = __name__.partition(".")[0]

# Subpackages that PyTorch does not have. Their functions and classes are public under the names of other modules.
INNER = frozenset("batching cli compat core devices engine families interop layouts ops".split())


def set_name(value: Any, module: str, qualname: str, name: str | None = None) -> None:
    """Set `__module__` and `__qualname__` of a function or class, so that pickle finds it as `module.qualname`."""
    if isinstance(value, type):
        _resolve_annotations(value)
    value.__module__, value.__qualname__ = module, qualname
    value.__name__ = name or qualname.rpartition(".")[2]


def named(name: str, doc: str | None = None, **words: Any) -> Callable[[Function], Function]:
    """Decorator for a function that another one makes: sets its name and its docstring, where `{name}` and other words are replaced."""

    def decorate(function: Function) -> Function:
        function.__name__ = function.__qualname__ = name
        template = function.__doc__ or ""
        function.__doc__ = template.format(name=name, **words) if doc is None else doc
        return function

    return decorate


def name_methods(cls: type) -> None:
    """Set `__module__`, `__qualname__` and, unless it is an alias, `__name__` of the methods of a public class."""
    members = vars(cls)
    for name, member in members.items():
        if isinstance(member, (staticmethod, classmethod)):
            member = member.__func__
        if isinstance(member, FunctionType):
            if members.get(member.__name__) is not member:  # else it is an alias
                member.__name__ = name
            member.__module__, member.__qualname__ = cls.__module__, f"{cls.__qualname__}.{member.__name__}"


def name_public(module: str, *private: str) -> None:
    """Set `__module__` of the public functions and classes of a module that are defined in inner modules.

    Inner modules are the subpackages in `INNER` and the modules named in `private` (without ROOT). Objects from other modules
    are public there and stay unchanged. The public names are those in `__all__`, if the module has one.

    >>> import weft
    >>> weft.set_num_threads.__module__ == weft.__name__
    True
    """
    members = vars(sys.modules[module])
    for name in members.get("__all__", [each for each in members if not each.startswith("_")]):
        value = members.get(name)  # a submodule may not be loaded yet
        if not isinstance(value, (FunctionType, type)):
            continue
        top, _, rest = value.__module__.partition(".")
        if top in (ROOT, "torch") and (
            rest.partition(".")[0] in INNER or rest in private
        ):  # torch under `weft run`
            set_name(value, module, name)


def _resolve_annotations(cls: type) -> None:
    """Evaluate the annotations of a class before its `__module__` changes.

    `typing.get_type_hints` looks their names up in the module that `__module__` names.
    """
    own = vars(cls).get("__annotations__")
    if own:
        scope = vars(sys.modules[cls.__module__])
        own.update({name: eval(kind, scope) if isinstance(kind, str) else kind for name, kind in own.items()})
