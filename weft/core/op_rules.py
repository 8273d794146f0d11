"""A table of rules for ops: what a watcher of `dispatch.py` does in place of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Rule = Callable[..., Any]


class OpRules:
    """Rules by class of op and method of the class. A subclass has the rule of its base unless it has its own, as a single op may have.

    >>> rules = OpRules()
    >>> @rules.of_families(int)
    ... def _(op):
    ...     return "a number"
    >>> rules.find(True, "run")(True), rules.find("text", "run")
    ('a number', None)
    """

    def __init__(self) -> None:
        self._of_families: dict[tuple[type, str], Rule] = {}
        self._of_ops: dict[tuple[int, str], Rule] = {}
        self._with_own: set[type] = set()
        # Those that were found, by class and method, if no op of the class has a rule of its own.
        self.known: dict[tuple[type, str], Rule] = {}

    def of_families(self, *families: type, method: str = "run") -> Callable[[Rule], Rule]:
        """Register the rule of all ops of some classes; a decorator."""

        def decorate(rule: Rule) -> Rule:
            self._of_families.update(dict.fromkeys([(family, method) for family in families], rule))
            self.known.clear()
            return rule

        return decorate

    def of_ops(self, *ops: Any, method: str = "run") -> Callable[[Rule], Rule]:
        """Register the rule of single ops; a decorator."""

        def decorate(rule: Rule) -> Rule:
            self._of_ops.update(dict.fromkeys([(id(op), method) for op in ops], rule))
            self._with_own.update(map(type, ops))
            self.known.clear()
            return rule

        return decorate

    def find(self, op: Any, method: str) -> Rule | None:
        """The rule of an op; None if there is none."""
        kind = type(op)
        if (found := self.known.get((kind, method))) is not None:
            return found
        if (found := self._of_ops.get((id(op), method))) is not None:
            return found
        for family in kind.__mro__:
            if (found := self._of_families.get((family, method))) is not None:
                if kind not in self._with_own:
                    self.known[kind, method] = found
                return found
        return None
