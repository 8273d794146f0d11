"""The stubs of modules whose functions are set at run time: weft, weft.linalg, weft.nn.functional."""

from __future__ import annotations

import re
from types import FunctionType, ModuleType
from typing import Any

import weft as torch
from weft.compat.served import serves
from weft.core.names import INNER
from weft.core.registry import FUNCTIONS

from . import annotations, by_hand, homes, signatures
from .forms import definition

HEADER = "# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.\n"
# Overloads of schemas may overlap, as operators that take numbers and tensors do.
CHECKER = '# mypy: disable-error-code="overload-overlap, overload-cannot-match, override, misc, no-redef"\n'
_CONSTANTS = {
    "bool": "_bool",
    "int": "_int",
    "float": "_float",
    "str": "str",
    "dtype": "DType",
    "layout": "Layout",
    "memory_format": "MemoryFormat",
    "Generator": "Generator",
}


def with_imports(lines: list[str], depth: int) -> str:
    """A stub with these lines and the imports that they need. `depth` folders lie between the stub and the root."""
    body = "\n".join(lines)
    root = "." * (depth + 1)
    used = []
    for line in (annotations.IMPORTS + annotations.OURS.format(root=root)).splitlines():
        if line.startswith("import"):
            used += [line] if "np." in body else []
            continue
        head, _, names = line.partition(" import ")
        kept = [name for name in names.split(", ") if re.search(rf"\b{name.rpartition(' ')[2]}\b", body)]
        kept = [
            name
            for name in kept
            if f" import {name}\n" not in body and f" import {name} as {name}\n" not in body
        ]
        used += [f"{head} import {', '.join(kept)}"] if kept else []
    if "return_types." in body:
        used.append(f"from {root} import return_types")
    checker = CHECKER if "@overload" in body or "class " in body or "import *" in body else ""
    return HEADER + checker + "".join(f"{line}\n" for line in used) + body + "\n"


def functions(module: str) -> list[str]:
    """The definitions of the public functions of a namespace, such as "linalg."."""
    lines = []
    for name in sorted(FUNCTIONS):
        own = name.removeprefix(module)
        if not name.startswith(module) or "." in own:
            continue
        function = FUNCTIONS[name]
        if isinstance(function, FunctionType):
            forms = by_hand.forms(name, "input: Tensor") or signatures.forms(name, function)
            found = homes.of(function)
            if found is not None and forms == [signatures.at_run_time(function)]:  # the source says all
                lines += public_import(*found, own)
            else:
                lines.append(definition(own, forms))
        else:
            lines += class_lines(own, function)
    return lines


def class_lines(name: str, value: Any) -> list[str]:
    """A public class: imported from the file that defines it, if one does."""
    found = homes.of(value)
    if found is None:
        base = "Tensor" if name.endswith("Tensor") else "Any"
        return [f"class {name}({base}): ..."]
    module, own = found
    return public_import(module, own, name)


def public_import(module: str, own: str, name: str) -> list[str]:
    """What makes a name of another module public under `name`: in stubs `import x as x` does, and `import x as y` does not."""
    if own == name:
        return [f"from {module} import {own} as {name}"]
    return [f"from {module} import {own} as _{own}", f"{name} = _{own}"]


def root_stub() -> str:
    """The stub of weft itself."""
    lines = []
    imported = homes.imports(torch.__file__)
    lazy = torch._LAZY_NAMES
    for name in sorted(dir(torch)):
        if name in ("torch", "annotations", "__version__"):
            continue
        value = getattr(torch, name)
        if name.startswith("_") or name == "ops":  # private modules, and the namespace of operators
            is_module = isinstance(value, ModuleType) and serves(value.__name__)
            lines += [f"{name}: Any"] if is_module or name == "ops" else []
            continue
        if name in imported and not isinstance(value, ModuleType):
            module, own = imported[name]
            lines += public_import(module, own, name)
        elif isinstance(value, ModuleType):
            if value.__name__.startswith(f"{torch.__name__}.") and name not in INNER | {"mps"}:
                lines.append(f"from . import {name} as {name}")
        elif name in FUNCTIONS:
            continue
        elif name in lazy:
            found = homes.of(value)
            lines += public_import(*found, name) if found else [f"{name}: Any"]
        else:
            kind = type(value).__name__
            lines.append(f"{name}: {_CONSTANTS.get(kind, 'None' if value is None else 'Any')}")
    lines += [line for line in functions("")]
    return with_imports(["__version__: str", *lines], 0)
