"""Where the intermediate values of a record lie in its block of memory, and the source of the calls that launch its kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ._launcher import CONSTANT, Base, launcher, stage_of
from ._tape import Ref, Step

ALIGNMENT = 64  # bytes: each value starts at a multiple, one cache line


def layout(steps: Sequence[Step], sizes: Mapping[int, int]) -> tuple[dict[int, int], int]:
    """The offset of each storage of `sizes` (its bytes) in one block, and the size of the block.

    A storage takes the place of another one after the last step that uses the other one.
    """
    last = {ref.storage: k for k, step in enumerate(steps) for ref in refs(step)}
    rounded = {number: max(1, size) + ALIGNMENT - 1 & -ALIGNMENT for number, size in sizes.items()}
    places: dict[int, int] = {}
    free: list[tuple[int, int]] = []  # (bytes, offset)
    end = 0
    for k, step in enumerate(steps):
        touched = list(dict.fromkeys(ref.storage for ref in refs(step)))
        for number in touched:
            if number not in rounded or number in places:
                continue
            size = rounded[number]
            fitting = min((each for each in free if each[0] >= size), default=None)
            if fitting is None:
                places[number], end = end, end + size
            else:
                free.remove(fitting)
                places[number] = fitting[1]
                if fitting[0] > size:
                    free.append((fitting[0] - size, fitting[1] + size))
        for number in touched:
            if number in rounded and last[number] == k:
                free.append((rounded[number], places[number]))
    return places, end


def refs(step: Step) -> Iterable[Ref]:
    return (each for each in step.arguments if type(each) is Ref)


class Bases:
    """The variables of a generated function that hold addresses: `find(ref)` gives a variable and an offset behind it.

    `find` gives None as the variable of memory that is always at the same place. With `describe`, which says what the launcher gets
    for a variable, the variables hold tensors and storages, and the launcher checks the tensors; then all steps must be native.
    """

    def __init__(
        self, find: Callable[[Ref], tuple[str | None, int]], describe: Callable[[str], Base] | None = None
    ):
        self.find, self.describe = find, describe

    def launches(self, steps: Sequence[Step], known: dict[str, Any]) -> list[str]:
        """Source lines that run the steps; their objects are added to the namespace `known`."""
        lines: list[str] = []
        native: list[Step] = []
        for step in steps:
            if stage_of(step.keepalive) is not None:
                native.append(step)
                continue
            self._native(native, known, lines)
            native = []
            entry = f"entry{len(known)}"
            known[entry] = step.entry
            known[f"keepalive{len(known)}"] = step.keepalive
            given = [self._python(each, known) for each in step.arguments]
            lines.append(f"    {entry}({', '.join(given)})")
        self._native(native, known, lines)
        return lines

    def _python(self, argument: Any, known: dict[str, Any]) -> str:
        if type(argument) is not Ref:
            known[constant := f"constant{len(known)}"] = argument
            return constant
        variable, offset = self.find(argument)
        if variable is None:
            return str(offset)
        return f"{variable} + {offset}" if offset else variable

    def _native(self, steps: list[Step], known: dict[str, Any], lines: list[str]) -> None:
        if not steps:
            return
        variables: dict[str, int] = {}
        launches = []
        for step in steps:
            stage = stage_of(step.keepalive)
            assert stage is not None
            *given, _, count = step.arguments  # without meta, which the stage has
            words: list[tuple[int, Any]] = []
            for each in given:
                if type(each) is not Ref:
                    words.append((CONSTANT, each))
                    continue
                variable, offset = self.find(each)
                base = CONSTANT if variable is None else variables.setdefault(variable, len(variables))
                words.append((base, offset))
            launches.append((stage, count, words))
        bases = [self.describe(each) if self.describe else Base() for each in variables]
        function, keepalive = launcher(launches, bases)
        name = f"launch{len(known)}"
        known[name] = function
        known[f"keepalive{len(known)}"] = keepalive, steps
        call = f"{name}({', '.join(variables)})"
        tensors = [each for each, base in zip(variables, bases, strict=True) if base.type is not None]
        if not tensors:
            lines.append(f"    {call}")
            return
        lines += [
            f"    done = {call}",
            "    if done is not True:",
            "        if done is MISS: return MISS",
            f"        for each in ({', '.join(tensors)},): each._storage.ptr",
            f"        if {call} is not True: return function(*args, **kwargs)",
        ]
