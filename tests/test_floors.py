"""The folders of weft import from lower floors only. The docstring of weft lists the floors."""

import ast
import re
from pathlib import Path

import pytest

import weft
from weft.compat import served
from weft.core import above

PACKAGE = Path(weft.__file__).parent
FLOORS = re.findall(r"^    ([a-z_.]+)(?:  |$)", weft.__doc__, re.MULTILINE)
# Folders of `compat` that are on floors of their own.
_INNER = {floor.partition(".")[2] for floor in FLOORS if "." in floor}
# `import_module` with the name of a module of weft.
_LOADS = re.compile(r'import_module\(\s*(ROOT|f"\{ROOT\}|f?"weft|f?"\.|"\."\.join\(\(ROOT)')
_PATHS = sorted(PACKAGE.rglob("*.py"))
_MODULES = {}  # name -> path
for _path in _PATHS:
    _parts = ("weft", *_path.relative_to(PACKAGE).with_suffix("").parts)
    _MODULES[".".join(_parts[:-1] if _parts[-1] == "__init__" else _parts)] = _path


def floor(module):
    """The floor of a module of weft, by its name."""
    _, *parts = served.own_name(module).split(".")
    if not parts:
        return "weft"
    return ".".join(parts[:2]) if parts[0] == "compat" and parts[1:] and parts[1] in _INNER else parts[0]


def _run(node):
    """The nodes of a program, without those that only a type checker reads."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from _run(child)


def imports(module, path):
    """(line, module) for each import of a module of weft, also of those inside of functions."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in _run(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (
                (node.lineno, each.name) for each in node.names if each.name.partition(".")[0] == "weft"
            )
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join(
                    [*package.split(".")[: len(package.split(".")) - node.level + 1], *filter(None, [base])]
                )
            if base.partition(".")[0] == "weft":
                for each in node.names:
                    inner = f"{base}.{each.name}"
                    yield node.lineno, inner if inner in _MODULES or served.serves(inner) else base


def test_the_list_has_all_folders():
    assert {floor(module) for module in _MODULES} == set(FLOORS)
    assert len(FLOORS) == len(set(FLOORS))


def test_the_root_is_small():
    """People look there first. PyTorch's private modules are in weft/compat/torch."""
    names = {name.split(".")[1] for name in _MODULES if name != "weft"}
    assert len(names) <= 35
    assert [name for name in names if name.startswith("_")] == ["__main__"]


@pytest.mark.parametrize("name", FLOORS)
def test_imports_go_down(name):
    wrong = [
        f"{path.relative_to(PACKAGE.parent)}:{line}: {name} imports {target}, which is higher"
        for module, path in _MODULES.items()
        if floor(module) == name
        for line, target in imports(module, path)
        if FLOORS.index(floor(target)) > FLOORS.index(name)
    ]
    assert not wrong, "\n".join(wrong)


def test_nothing_else_is_loaded_by_name():
    """`import_module` of a module of weft would go around the floors. core/above.py lists what goes up."""
    # The last three load modules whose names programs and files give.
    allowed = {
        *("__init__.py", "core/above.py", "layouts/__init__.py", "accelerator/_module.py"),
        *("cli/mentions.py", "serialization/names.py", "serialization/locations.py"),
    }
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in _PATHS
        if "compat" not in path.parts and _LOADS.search(path.read_text())
    }
    assert found == allowed


def test_what_goes_up_is_used():
    """Each module that core/above.py lists is asked for where the table says."""
    for pattern, reason in above._MODULES.items():
        asked = re.escape(pattern).replace(r"\*", '[^"]*')
        for place in re.findall(r"[\w/]+\.py", reason):
            assert re.search(rf'above\(f?"{asked}"\)', (PACKAGE / place).read_text()), (pattern, place)
