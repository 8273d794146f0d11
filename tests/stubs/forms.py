"""A form of a function: parameters and result, as a stub writes them."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

POSITIONAL, KEYWORD = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
STAR, STAR_STAR = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
NO_DEFAULT = inspect.Parameter.empty


@dataclass(frozen=True)
class Parameter:
    name: str
    type: str
    default: Any = NO_DEFAULT  # a literal, or `...` for other values
    kind: Any = POSITIONAL

    def __str__(self) -> str:
        stars = {STAR: "*", STAR_STAR: "**"}.get(self.kind, "")
        text = f"{stars}{self.name}"
        if self.type:
            text += f": {self.type}"
        if self.default is NO_DEFAULT:
            return text
        shown = "..." if self.default is ... else repr(self.default)
        return f"{text}{' = ' if self.type else '='}{shown}"


@dataclass(frozen=True)
class Form:
    parameters: tuple[Parameter, ...]
    returns: str

    def __str__(self) -> str:
        shown, after_star = [], False
        for parameter in self.parameters:
            if parameter.kind is KEYWORD and not after_star:
                shown.append("*")
            after_star |= parameter.kind in (KEYWORD, STAR)
            shown.append(str(parameter))
        return f"({', '.join(shown)}) -> {self.returns}"

    def with_keywords(self, *added: Parameter) -> Form:
        """The form with further parameters at its end, unless it has them."""
        own = {parameter.name for parameter in self.parameters}
        new = tuple(parameter for parameter in added if parameter.name not in own)
        at_end = [parameter for parameter in self.parameters if parameter.kind is STAR_STAR]
        before = [parameter for parameter in self.parameters if parameter.kind is not STAR_STAR]
        return replace(self, parameters=(*before, *new, *at_end))

    def covers(self, other: Form) -> bool:
        """Whether this is another form that takes all calls of `other`, and gives the same."""
        mine, theirs = self._positional(), other._positional()
        keywords = {
            parameter.name: parameter.type for parameter in self.parameters if parameter.kind is KEYWORD
        }
        return (
            self != other
            and self.returns == other.returns
            and [(each.name, each.type, each.kind) for each in mine[: len(theirs)]]
            == [(each.name, each.type, each.kind) for each in theirs]
            and all(
                each.default is not NO_DEFAULT for each in self.parameters if each not in other.parameters
            )
            and all(keywords.get(each.name) == each.type for each in other.parameters if each.kind is KEYWORD)
        )

    def _positional(self) -> list[Parameter]:
        return [parameter for parameter in self.parameters if parameter.kind is not KEYWORD]

    def as_method(self) -> Form:
        """The form of a method: its first parameter becomes `self`."""
        own = self.parameters[0].kind is POSITIONAL if self.parameters else False
        return replace(self, parameters=(Parameter("self", ""), *self.parameters[own:]))


class Text(str):
    """A form that is written down as text."""


def definition(name: str, forms: Sequence[Form | Text], indent: str = "", decorator: str = "") -> str:
    """The lines that define a function with these forms, one line for each."""
    lines = []
    for form in forms:
        if len(forms) > 1:
            lines.append(f"{indent}@overload")
        if decorator:
            lines.append(f"{indent}@{decorator}")
        lines.append(f"{indent}def {name}{form}: ...")
    return "\n".join(lines)


def default(value: Any) -> Any:
    """A default as stubs write it.

    >>> default(1.5), default([1, 2]), default(float("inf"))
    (1.5, Ellipsis, Ellipsis)
    """
    is_literal = value is None or value is NO_DEFAULT or type(value) in (bool, int, str)
    is_number = type(value) is float and value - value == 0
    return value if is_literal or is_number else ...
