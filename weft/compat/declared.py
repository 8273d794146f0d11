"""Names that weft declares but does not implement yet: what several processes, GPUs or quantized tensors would need.

Programs import such names, annotate with them and ask `isinstance(x, DTensor)`, and most never call them. So
each exists with PyTorch's signature, and raises NotImplementedError when it is called or instantiated. Enumerations,
exceptions and tables of settings are real, because there is nothing in them to implement.

The files `interface/*.txt` hold the declarations, one file for each subpackage of torch:

    # the reason that the errors of the following modules give
    torch.x.y
        from torch.x.z: First, second as other; from .beside: Third
        class Base(size, *, bias=True); class Derived(...) of Base, torch.nn.Module: reset, forward
        function, another(input, dim=0); is_there(...) = False; LIMIT = 16

`.beside` lies in the same package as the module. An entry ends with its line or with a semicolon; a line that is indented further
continues it. Functions or classes that take the same arguments share an entry. `(...)` stands for arguments of any kind, and a class
without arguments is made as its base is. What a function answers instead of raising stands behind it.

Where weft has a module of that name, its own names come first: `module_getattr` asks here for a name that the module lacks.
Other modules are made by `Finder`. tests/compat/interface.py writes the files from PyTorch's interface.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from .served import public_name

FOLDER = Path(__file__).parent / "interface"
_ENTRY = re.compile(
    r"""
    from\ (?P<home>[\w.]+):\ (?P<imports>.+)
  | class\ (?P<cls>\w+(?:,\ \w+)*) (?:\((?P<arguments>.*?)\))? (?:\ of\ (?P<bases>[\w., ]+))? (?::\ (?P<methods>[\w, ]+))?
  | (?P<function>\w+(?:,\ \w+)*) \((?P<parameters>.*?)\) (?:\ =\ (?P<answer>.+))?
  | (?P<constant>\w+)\ =\ (?P<value>.+)
    """,
    re.VERBOSE,
)
# What the values of constants are written with.
_VOCABULARY = """
from collections import namedtuple
from dataclasses import field, make_dataclass
from enum import Enum, Flag, IntEnum, IntFlag
from functools import partial
"""


class Section:
    """The declarations of one module: by name, the reason that its error gives and the entry that declares it."""

    def __init__(self, module: str):
        self.module = module
        self.entries: dict[str, tuple[str, re.Match[str]]] = {}

    def add(self, reason: str, lines: list[str]) -> None:
        for text in (entry for line in lines for entry in line.split("; ")):
            entry = _ENTRY.fullmatch(text)
            if entry is None:
                raise SyntaxError(f"{self.module}: not a declaration: {text}")
            for name in _declared_names(entry):
                self.entries[name] = reason, entry

    def public_names(self) -> list[str]:
        return [name for name in self.entries if not name.startswith("_")]


def declares_module(name: str) -> bool:
    """Whether `weft.x.y` is a declared module, or a package of declared modules.

    >>> declares_module("weft.cuda.nccl"), declares_module("weft.cuda.ncc")
    (True, False)
    """
    return name in _file(_area(name)) or _is_package(name)


def has(module: str, name: str) -> bool:
    """Whether `name` is declared in `module`, as a name or as a submodule."""
    section = _section(module)
    return (section is not None and name in section.entries) or declares_module(f"{module}.{name}")


def resolve(module: ModuleType, name: str) -> Any:
    """The declared object `name` of `module`; the module keeps it."""
    full_name = _weft_name(module)
    section = _section(full_name)
    if section is None or name not in section.entries:
        return importlib.import_module(f"{full_name}.{name}")
    value = _make(section, name, module)
    setattr(module, name, value)
    return value


def names(module: str) -> list[str]:
    """The public names that are declared in `module`."""
    section = _section(module)
    return section.public_names() if section is not None else []


class Finder:
    """Finds the modules that exist as declarations only. It stands last on `sys.meta_path`."""

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not fullname.startswith("weft.") or not declares_module(fullname):
            return None
        # A package, so that its submodules are looked for; those come from this finder as well.
        return ModuleSpec(fullname, _Loader(), is_package=True)  # type: ignore[arg-type]


class _Loader:
    def create_module(self, spec: ModuleSpec) -> None:
        """The default: an empty module."""

    def exec_module(self, module: ModuleType) -> None:
        from .missing import module_getattr

        full_name = _weft_name(module)
        module.__doc__ = f"`{_torch_name(full_name)}`, declared and not implemented yet."
        module.__getattr__ = module_getattr(full_name)  # type: ignore[method-assign]
        module.__all__ = names(full_name)  # type: ignore[attr-defined]
        module.__dir__ = lambda: sorted({*vars(module), *names(full_name)})  # type: ignore[method-assign]


# ---- From text to objects ---------------------------------------------------------------------------------------


def _weft_name(module: ModuleType) -> str:
    assert module.__spec__ is not None
    # `__name__` begins with torch where `import torch` is bound to weft.
    return public_name(module.__spec__.name)


def _torch_name(module: str) -> str:
    return "torch" + module.removeprefix("weft")


@functools.cache
def _file(area: str) -> dict[str, list[tuple[str, list[str]]]]:
    """By module, the reasons and the lines of its sections in `interface/area.txt`."""
    path = FOLDER / f"{area}.txt"
    found: dict[str, list[tuple[str, list[str]]]] = {}
    reason = ""
    lines: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        indent = len(line) - len(line.lstrip())
        if line.startswith("# "):
            reason = line[2:]
        elif indent == 0:
            lines = []
            found.setdefault("weft" + line.removeprefix("torch"), []).append((reason, lines))
        elif indent == 4:
            lines.append(line.strip())
        else:
            lines[-1] += " " + line.strip()
    return found


def _area(module: str) -> str:
    return module.split(".")[1] if "." in module else "torch"


def _is_package(name: str) -> bool:
    return any(other.startswith(name + ".") for other in _file(_area(name)))


@functools.cache
def _section(module: str) -> Section | None:
    parts = _file(_area(module)).get(module)
    if parts is None:
        return None
    section = Section(module)
    for reason, lines in parts:
        section.add(reason, lines)
    return section


def _declared_names(entry: re.Match[str]) -> list[str]:
    if entry["home"]:
        return list(_imported(entry))
    return (entry["cls"] or entry["function"] or entry["constant"]).split(", ")


def _imported(entry: re.Match[str]) -> dict[str, str]:
    """By the name under which a module imports something, the name in its home."""
    pairs = [each.split(" as ") for each in entry["imports"].split(", ")]
    return {pair[-1]: pair[0] for pair in pairs}


class _Names(dict):
    """The names that a declaration may use: others of its module, declared or not."""

    def __init__(self, section: Section, module: ModuleType):
        super().__init__()
        self.section = section
        self.module = module

    def __missing__(self, name: str) -> Any:
        if name in vars(self.module):
            return vars(self.module)[name]
        if name in self.section.entries:
            return resolve(self.module, name)
        raise KeyError(name)


@functools.cache
def _vocabulary() -> dict[str, Any]:
    words: dict[str, Any] = {}
    exec(_VOCABULARY, words)
    return words


def _make(section: Section, name: str, module: ModuleType) -> Any:
    reason, entry = section.entries[name]
    if entry["home"]:
        home = entry["home"]
        beside = section.module.rpartition(".")[0] + home
        full_name = beside if home.startswith(".") else "weft" + home.removeprefix("torch")
        return getattr(importlib.import_module(full_name), _imported(entry)[name])
    torch_name = _torch_name(section.module)
    words = {
        **_vocabulary(),
        "__name__": module.__name__,
        "torch": sys.modules["weft"],
        "_refuse": functools.partial(_refuse, reason),
    }
    names = _Names(section, module)
    exec(
        compile(
            _source(entry, name, torch_name), f"<weft interface of {torch_name}>", "exec", dont_inherit=True
        ),
        words,
        names,
    )
    value = names[name]
    if getattr(value, "__module__", None) == "types":  # what make_dataclass of Python 3.11 says
        value.__module__ = module.__name__
    return value


def _source(entry: re.Match[str], name: str, path: str) -> str:
    """The Python code of what an entry declares under a name. It raises when it is called."""
    if entry["constant"]:
        return entry.string
    if entry["function"]:
        body = f"return {entry['answer']}" if entry["answer"] else f"_refuse('{path}.{name}')"
        return f"def {name}({_parameters(entry['parameters'])}): {body}"
    lines = [f"class {name}({entry['bases'] or ''}):", "    pass"]
    if entry["arguments"] is not None:
        lines.append(f"    def __init__(self, {_parameters(entry['arguments'])}): _refuse('{path}.{name}')")
    for method in entry["methods"].split(", ") if entry["methods"] else ():
        lines.append(f"    def {method}(*args, **kwargs): _refuse('{path}.{name}.{method}')")
    return "\n".join(lines)


def _parameters(text: str) -> str:
    return "*args, **kwargs" if text == "..." else text


def _refuse(reason: str, path: str) -> NoReturn:
    raise NotImplementedError(f"{path}: weft declares this name but does not implement it yet: {reason}")


sys.meta_path.append(Finder)
