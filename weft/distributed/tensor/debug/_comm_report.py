"""What CommDebugMode has found, as a table and as JSON.

The noise level says how much: 0 has the collectives of each module; 1 also parameters, and operations of DTensors; 2 also other operations; 3 also
those that compute nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ._module_tracker import ROOT, CommModuleTracker

# Views, and changes of dtype, device or history. Steps between DTensors and parts are such changes.
TRIVIAL = frozenset(
    (
        *(f"aten.{name}" for name in ("detach", "t", "view", "_to_copy", "as_strided", "transpose")),
        *("weft.from_local", "weft.to_copy", "weft.to_local"),
    )
)
_YELLOW, _RED, _PLAIN = "\033[1;33m", "\033[1;31m", "\033[0m"

Counts = Mapping[str, Mapping[str, Mapping[Any, int]]]  # by module, "forward" or "backward", and operator
Operation = dict[str, Any]


class CommReport:
    """Tables of one context, at one noise level."""

    def __init__(
        self,
        modules: CommModuleTracker,
        counts: Counts,
        operations: Mapping[str, Sequence[Operation]],
        noise_level: int,
    ) -> None:
        self._modules, self._counts, self._operations, self._level = modules, counts, operations, noise_level

    def _is_shown(self, operation: Operation) -> bool:
        if self._level < 1 or self._level == 1 and not operation["input_sharding"]:
            return False
        return self._level > 2 or operation["name"] not in TRIVIAL

    def _shown(self, name: str) -> dict[str, list[Operation]]:
        """The operations of a module by pass."""
        found: dict[str, list[Operation]] = {"forward": [], "backward": [], "checkpointing": []}
        for each in filter(self._is_shown, self._operations.get(name, ())):
            again = each["is_activation_checkpointing"]
            found["checkpointing" if again else "backward" if each["is_bw"] else "forward"].append(each)
        return found

    def _collectives(self, name: str, way: str) -> list[tuple[str, int]]:
        return [(str(packet), count) for packet, count in self._counts.get(name, {}).get(way, {}).items()]

    def _about(self, name: str) -> dict[str, Any]:
        """The type and the parameters of a module."""
        return self._modules.module_helper_dict[name] if self._level > 0 else {}

    # ---- The table

    def table(self) -> str:
        """The modules in the order of their first calls, with colours for terminals."""
        return "".join(f"{line}\n" for name in self._modules.module_helper_dict for line in self._lines(name))

    def _lines(self, name: str) -> Iterator[str]:
        about = self._about(name)
        indent = " " * (4 * self._modules.module_helper_dict[name]["depth"])
        yield f"{indent}{name}"
        if "module_type" in about:
            yield f"{indent}*module type: {about['module_type']}"
        if "parameters" in about:
            yield f"{indent}*Parameter List"
            yield from (f"{indent} *{own}: {places}" for own, places in about["parameters"].items())
        operations = self._shown(name)
        for way, title in (
            ("forward", "FORWARD PASS"),
            ("backward", "BACKWARD PASS"),
            ("checkpointing", "ACTIVATION CHECKPOINTING"),
        ):
            collectives = self._collectives(name, way)
            if collectives or operations[way]:
                yield f"{indent}  {title}"
            for packet, count in collectives:
                yield f"{_YELLOW}{indent}    *{packet}: {count}{_PLAIN}"
            for each in operations[way]:
                yield from _operation_lines(each, indent)

    # ---- JSON

    def tree(self, name: str = ROOT) -> dict[str, Any]:
        """A module and those that it called, as values that JSON has."""
        about, operations = self._about(name), self._shown(name)
        children = self._modules.parent_dict.get(name, ())
        return {
            "fqn": name,
            "module_type": about.get("module_type", ""),
            "parameters": list(about.get("parameters", {}).items()),
            "children": [self.tree(each) for each in children],
            "collectives_forward": self._collectives(name, "forward"),
            "collectives_backward": self._collectives(name, "backward"),
            **{f"operations_{way}": list(map(_as_text, found)) for way, found in operations.items()},
        }


def _operation_lines(operation: Operation, indent: str) -> Iterator[str]:
    yield f"{_YELLOW}{indent}    **{operation['name']}{_PLAIN}"
    if operation["input_shape"]:
        for title, key in (
            ("shape", "input_shape"),
            ("sharding", "input_sharding"),
            ("device mesh", "device_mesh"),
        ):
            yield f"{_RED}{indent}      {title}: {operation[key]}{_PLAIN}"


def _as_text(operation: Operation) -> Operation:
    texts = {key: [str(each) for each in operation[key]] for key in ("input_shape", "input_sharding")}
    return {**operation, **texts}
