"""State dicts without nesting: {"model.weight": tensor} for {"model": {"weight": tensor}}."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...core.tensor import Tensor

Path = tuple[str | int, ...]


def _has_parts(value: Any) -> bool:
    """Whether the elements of a list have names of their own: if there is a tensor or a dict in it."""
    return isinstance(value, Mapping | Tensor) or (isinstance(value, list) and any(map(_has_parts, value)))


def walk(
    value: Any, visit: Callable[[Path, tuple[Any, ...], Any], None], path: Path = (), keys: tuple = ()
) -> None:
    """Call `visit(path, keys, leaf)` for every leaf; `path` has the keys of dicts as str, `keys` as they are."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            walk(item, visit, (*path, str(key)), (*keys, key))
    elif isinstance(value, list) and _has_parts(value):
        for place, item in enumerate(value):
            walk(item, visit, (*path, place), (*keys, place))
    else:
        visit(path, keys, value)


def flatten_state_dict(state_dict: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Path]]:
    """The leaves by name, and the path of each name.

    >>> flatten_state_dict({"a": {"b": 1}, "c": [1, 2]})
    ({'a.b': 1, 'c': [1, 2]}, {'a.b': ('a', 'b'), 'c': ('c',)})
    """
    flat: dict[str, Any] = {}
    paths: dict[str, Path] = {}

    def visit(path: Path, keys: tuple, value: Any) -> None:
        name = ".".join(map(str, path))
        if name in flat:
            raise ValueError(f"duplicated flatten key {name}")
        flat[name], paths[name] = value, path

    walk(state_dict, visit)
    return flat, paths


def set_element(root: Any, path: Path, value: Any) -> None:
    """Set the leaf at `path`, with the dicts and lists that are missing on the way."""
    for key, following in zip(path, path[1:]):
        default: Any = [] if isinstance(following, int) else {}
        if isinstance(key, int):
            _lengthen(root, key, default)
            if root[key] is None:
                root[key] = default
        elif key not in root:
            root[key] = default
        root = root[key]
    if isinstance(path[-1], int) and isinstance(root, list):
        _lengthen(root, path[-1], None)
    root[path[-1]] = value


def _lengthen(items: list, place: int, filling: Any) -> None:
    items += [None] * (place + 1 - len(items))


def unflatten_state_dict(state_dict: Mapping[str, Any], mapping: Mapping[str, Path]) -> dict[str, Any]:
    """The nested dict of which `flatten_state_dict` gave the names and paths."""
    nested: dict[str, Any] = {}
    for name, value in state_dict.items():
        set_element(nested, mapping[name], value)
    return nested
