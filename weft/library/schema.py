"""Schemas of operators: `aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`, read, printed and asked."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor
from ..layouts.quantized.script_object import ScriptObject
from .types import (
    DTYPE_CODES,
    LAYOUT_CODES,
    MEMORY_FORMAT_CODES,
    NAMED,
    WRAPPING,
    ClassType,
    DictType,
    ListType,
    OptionalType,
    TupleType,
    Type,
    _Coded,
)

_TOKEN = re.compile(
    r"""\s*(?: (?P<arrow>->) | (?P<dots>\.\.\.) | (?P<string>"(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*')
      | (?P<number>-?(?:inf|nan)\b | -?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
      | (?P<name>[A-Za-z_][\w]*) | (?P<mark>::|[()\[\]{},.=*?!|]) | (?P<bad>\S) )""",
    re.VERBOSE,
)
# Dtypes by the names that C++ has for them.
_C_NAMES = {
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "half": "float16",
    "float": "float32",
    "double": "float64",
}
MISSING = object()
# Types of values that arguments take or refuse without looking at the value, and those derived from ScriptObject.
_BY_TYPE = frozenset({Tensor, int, float, bool, type(None)})


def _is_by_type(kind: type) -> bool:
    return kind in _BY_TYPE or issubclass(kind, ScriptObject)


class _AliasInfo:
    """Which memory an argument shares, and whether it is written."""

    def __init__(self, before: Sequence[str], after: Sequence[str], is_write: bool):
        self.before_set, self.after_set, self.is_write = set(before), set(after), is_write
        self._names = "|".join(before), "|".join(after)

    def __str__(self) -> str:
        before, after = self._names
        return f"({before}{'!' if self.is_write else ''}{'' if before == after else f' -> {after}'})"


class Argument:
    """An argument or a result of a `FunctionSchema`."""

    def __init__(
        self,
        name: str,
        real_type: Type,
        text: str,
        default: Any = MISSING,
        default_text: str = "",
        kwarg_only: bool = False,
        alias_info: _AliasInfo | None = None,
    ):
        self.name, self.real_type, self.kwarg_only, self.alias_info = name, real_type, kwarg_only, alias_info
        self.type = real_type.dynamic()
        self._text, self._default, self._default_text = text, default, default_text

    @property
    def N(self) -> int | None:  # noqa: N802 (PyTorch's name)
        """The length that a list is declared with, so that one number stands for that many."""
        inner = self.real_type
        inner = inner.getElementType() if isinstance(inner, OptionalType) else inner
        return inner.length if isinstance(inner, ListType) else None

    @property
    def default_value(self) -> Any:
        """The default, or None."""
        return None if self._default is MISSING else self._default

    def has_default_value(self) -> bool:
        """Whether there is a default."""
        return self._default is not MISSING

    @property
    def is_write(self) -> bool:
        """Whether the operator writes to it."""
        return self.alias_info is not None and self.alias_info.is_write

    @property
    def is_out(self) -> bool:
        """Whether it is an argument such as `out`, which receives the result."""
        return self.kwarg_only and self.is_write

    def _resembles(self, other: Argument) -> bool:
        """Whether name, length of a list and aliasing are the same, and this is no keyword argument unless `other` is one."""
        mine, theirs = (None if each.alias_info is None else str(each.alias_info) for each in (self, other))
        same = (self.name, self.N, mine) == (other.name, other.N, theirs)
        return same and (other.kwarg_only or not self.kwarg_only)

    def _takes_calls_of(self, old: Argument) -> bool:
        """Whether each value for `old` is one for this argument, and calls without one mean the same."""
        keeps_default = not old.has_default_value() or self._has_default_of(old)
        return self._resembles(old) and keeps_default and old.type.isSubtypeOf(self.type)

    def _fits_calls_by(self, old: Argument) -> bool:
        """Whether each value for this argument is one for `old`, and calls without one mean the same."""
        return self._resembles(old) and self._has_default_of(old) and self.type.isSubtypeOf(old.type)

    def _has_default_of(self, old: Argument) -> bool:
        return self.has_default_value() == old.has_default_value() and self.default_value == old.default_value

    def __str__(self) -> str:
        name = f" {self.name}" if self.name else ""
        return f"{self._text}{name}" + ("" if self._default is MISSING else f"={self._default_text}")


class FunctionSchema:
    """The name, arguments and results of an operator; `str` gives the text that `parse_schema` reads.

    >>> import weft as torch
    >>> schema = torch._C.parse_schema("my::op(Tensor x, int[2] k=1, *, float eps=1e-5) -> (Tensor, Tensor)")
    >>> schema
    my::op(Tensor x, int[2] k=1, *, float eps=1.0000000000000001e-05) -> (Tensor, Tensor)
    >>> [argument.name for argument in schema.arguments]
    ['x', 'k', 'eps']
    """

    def __init__(
        self,
        name: str,
        overload_name: str,
        arguments: Sequence[Argument],
        returns: Sequence[Argument],
        is_vararg: bool = False,
        is_varret: bool = False,
    ):
        self.name, self.overload_name = name, overload_name
        self.arguments, self.returns = list(arguments), list(returns)
        self.is_vararg, self.is_varret = is_vararg, is_varret
        self.positional = [each for each in self.arguments if not each.kwarg_only]
        # The types of positional arguments that `bind` returns as they are; their values do not matter.
        self._kept: set[tuple[bool, tuple[type, ...]]] = set()
        self._defaults = [each.default_value for each in self.arguments]

    @property
    def is_mutable(self) -> bool:
        """Whether the operator writes to one of its arguments."""
        return any(each.is_write for each in self.arguments)

    @property
    def qualified(self) -> str:
        """Name and overload: `aten::add.Tensor`."""
        return f"{self.name}.{self.overload_name}" if self.overload_name else self.name

    def _is_view_op(self) -> bool:
        if self.is_mutable:
            return False
        return any(each.alias_info is not None for each in self.returns)

    def is_backward_compatible_with(self, old: FunctionSchema) -> bool:
        """Whether programs that were saved with `old` run with this schema.

        So arguments may come after those of `old` if they have defaults, and may take more types than before.
        """
        inputs, outs = self._inputs_and_outs()
        old_inputs, old_outs = old._inputs_and_outs()
        return (
            self._is_of_the_form_of(old)
            and all(
                known._takes_calls_of(each) for each, known in zip(self.returns, old.returns, strict=True)
            )
            and len(inputs) >= len(old_inputs)
            and len(outs) >= len(old_outs)
            and all(
                each._takes_calls_of(known)
                for each, known in [*zip(inputs, old_inputs), *zip(outs, old_outs)]
            )
            and all(each.has_default_value() for each in inputs[len(old_inputs) :])
        )

    def check_forward_compatible_with(self, old: FunctionSchema) -> tuple[bool, str]:
        """Whether programs that are saved with this schema run with `old`, which leaves out defaults; if not, why.

        >>> import weft as torch
        >>> old, new = map(torch._C.parse_schema, ("a(Tensor x) -> Tensor", "a(Tensor x, int k) -> Tensor"))
        >>> new.check_forward_compatible_with(old)[0]
        False
        """
        if not self._is_of_the_form_of(old):
            return False, ""
        inputs, outs = self._inputs_and_outs()
        old_inputs, old_outs = old._inputs_and_outs()
        if len(outs) != len(old_outs):
            return False, "Function schema should have the same number of out arguments"
        for each, known in zip(inputs, old_inputs):
            if not each._fits_calls_by(known):
                return False, f"'{each.name}' is not forward compatible with the older version of the schema"
        for each in inputs[len(old_inputs) :]:
            new = f"Function schema is not forward compatible since the new argument '{each.name}' of type {each.type.str()}"
            if not each.has_default_value():
                return False, f"{new} did not provide a default value."
            if isinstance(each.default_value, (list, dict)):
                return False, f"{new} has a container type as its default value."
        for each, known in zip(outs, old_outs):
            if not each._fits_calls_by(known):
                return False, f"Out argument '{known.name}' is not FC with the older version of the schema"
        return True, ""

    def _is_of_the_form_of(self, old: FunctionSchema) -> bool:
        mine, theirs = (
            (each.qualified, each.is_vararg, each.is_varret, len(each.returns)) for each in (self, old)
        )
        return mine == theirs

    def _inputs_and_outs(self) -> tuple[list[Argument], list[Argument]]:
        """The arguments before the first that receives a result, and from it on."""
        outs = (place for place, each in enumerate(self.arguments) if each.is_out)
        first = next(outs, len(self.arguments))
        return self.arguments[:first], self.arguments[first:]

    def __str__(self) -> str:
        parts: list[str] = []
        named = False
        for each in self.arguments:
            if each.kwarg_only and not named:
                parts.append("*")
                named = True
            parts.append(str(each))
        if self.is_vararg:
            parts.append("...")
        results = [str(each) for each in self.returns]
        if self.is_varret:
            results.append("...")
        single = len(results) == 1 and not (self.returns and results[0].startswith("("))
        shown = results[0] if single else f"({', '.join(results)})"
        return f"{self.qualified}({', '.join(parts)}) -> {shown}"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionSchema) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self):
        return parse_schema, (str(self),)

    # -- Calls -----------------------------------------------------------------------------------------------------

    def bind(
        self, args: Sequence[Any], kwargs: dict[str, Any], numbers_as_tensors: bool = False
    ) -> list[Any]:
        """The value of each argument in a call, converted to its type, with defaults.

        Raises: RuntimeError if the call does not fit the schema.
        """
        kinds = numbers_as_tensors, tuple(map(type, args))
        if not kwargs and kinds in self._kept:
            return [*args, *self._defaults[len(args) :]]
        values = self._bound(args, kwargs, numbers_as_tensors)
        if all(map(_is_by_type, kinds[1])) and all(map(operator.is_, args, values)):
            if all(each.has_default_value() for each in self.arguments[len(args) :]):
                self._kept.add(kinds)
        return values

    def _bound(self, args: Sequence[Any], kwargs: dict[str, Any], numbers_as_tensors: bool) -> list[Any]:
        """As `bind`, for a call of which nothing is known."""
        positional = self.positional
        if len(args) > len(self.arguments):
            raise RuntimeError(
                f"{self.name}() expected at most {len(self.arguments)} argument(s) but received {len(args)} argument(s). "
                f"Declaration: {self}"
            )
        if len(args) > len(positional):
            raise RuntimeError(
                f"{self.name}() takes {len(positional)} positional argument(s) but {len(args)} was/were given.  "
                f"Declaration: {self}"
            )
        values = [
            self._converted(each, value, position, numbers_as_tensors)
            for position, (each, value) in enumerate(zip(positional, args, strict=False))
        ]
        used = 0
        for position, each in enumerate(self.arguments[len(values) :], len(values)):
            if each.name in kwargs:
                values.append(self._converted(each, kwargs[each.name], position, numbers_as_tensors))
                used += 1
            elif each.has_default_value():
                values.append(each.default_value)
            else:
                raise RuntimeError(
                    f"{self.name}() is missing value for argument '{each.name}'. Declaration: {self}"
                )
        if used < len(kwargs):
            known = {each.name for each in self.arguments}
            for name in kwargs:
                if name not in known:
                    raise RuntimeError(
                        f"Unknown keyword argument '{name}' for operator '{self.name}'. Schema: {self}"
                    )
            taken = next(each.name for each in positional[: len(args)] if each.name in kwargs)
            raise RuntimeError(
                f"Argument '{taken}' specified both as positional and keyword argument. Schema: {self}"
            )
        return values

    def _converted(self, argument: Argument, value: Any, position: int, numbers_as_tensors: bool) -> Any:
        try:
            return argument.real_type.convert(value, numbers_as_tensors)
        except (TypeError, ValueError, RuntimeError) as error:
            shown = repr(value)
            raise RuntimeError(
                f"{self.name}() Expected a value of type '{argument.type}' for argument '{argument.name}' but instead "
                f"found type '{type(value).__name__}'.\nPosition: {position}\nValue: {shown}\nDeclaration: {self}\n"
                f"Cast error details: {error}"
            ) from None


# ---- Reading ----------------------------------------------------------------------------------------------------------


def parse_schema(schema: str) -> FunctionSchema:
    """Read a schema.

    Raises: RuntimeError if the text is none, with the place.
    """
    return _Reader(schema).schema()


class _Reader:
    """Reads a schema from left to right."""

    def __init__(self, text: str):
        self.text = text
        self.tokens = [
            (each.lastgroup or "", each.group(each.lastgroup or 0), each.start(each.lastgroup or 0))
            for each in _TOKEN.finditer(text)
        ]
        self.tokens.append(("eof", "eof", len(text)))
        self.place = 0

    def error(self, wanted: str) -> RuntimeError:
        kind, found, start = self.tokens[self.place]
        shown = kind if kind in ("eof", "arrow", "number") else found
        return RuntimeError(f"expected {wanted} but found '{shown}' here:{self.marked(start, len(found))}")

    def marked(self, start: int, length: int) -> str:
        return f"\n{self.text}\n{' ' * start}{'~' * max(length, 1)} <--- HERE\n"

    def peek(self) -> str:
        kind, found, _ = self.tokens[self.place]
        return found if kind in ("mark", "arrow", "dots", "eof") else ""

    def take(self, *wanted: str) -> bool:
        if self.peek() in wanted:
            self.place += 1
            return True
        return False

    def want(self, mark: str) -> None:
        if not self.take(mark):
            raise self.error("arrow" if mark == "->" else mark)

    def name(self) -> str:
        kind, found, _ = self.tokens[self.place]
        if kind != "name" and found not in ("inf", "nan"):
            raise self.error("ident")
        self.place += 1
        return found

    def schema(self) -> FunctionSchema:
        name = self.name()
        if self.take("::"):
            name = f"{name}::{self.name()}"
        overload = self.name() if self.take(".") else ""
        arguments, is_vararg = self.arguments()
        if is_vararg and any(each.has_default_value() for each in arguments):
            raise RuntimeError(f"\nschemas with vararg (...) can't have default value args:\n{self.text}")
        self.want("->")
        returns, is_varret = self.returns()
        if self.peek() != "eof":
            raise self.error("eof")
        return FunctionSchema(name, overload, arguments, returns, is_vararg, is_varret)

    def arguments(self) -> tuple[list[Argument], bool]:
        found: list[Argument] = []
        kwarg_only = is_vararg = False
        self.want("(")
        while not self.take(")"):
            if self.take("..."):
                is_vararg = True
            elif self.take("*"):
                kwarg_only = True
            else:
                found.append(self.argument(kwarg_only))
            if not self.take(","):
                self.want(")")
                break
        return found, is_vararg

    def returns(self) -> tuple[list[Argument], bool]:
        if self.take("..."):
            return [], True
        if not self.take("("):
            return [self.result()], False
        found: list[Argument] = []
        varying = False
        while not self.take(")"):
            if self.take("..."):
                varying = True
            else:
                found.append(self.result())
            if not self.take(","):
                self.want(")")
                break
        return found, varying

    def result(self) -> Argument:
        kind, text, alias = self.type()
        named = self.tokens[self.place][0] == "name"
        return Argument(self.name() if named else "", kind, text, alias_info=alias)

    def argument(self, kwarg_only: bool) -> Argument:
        kind, text, alias = self.type()
        name = self.name()
        default, shown = MISSING, ""
        if self.take("="):
            default, shown = self.default(kind)
        return Argument(name, kind, text, default, shown, kwarg_only, alias)

    def type(self) -> tuple[Type, str, _AliasInfo | None]:
        kind, text = self.bare_type()
        alias = self.alias()
        text += str(alias or "")
        while True:
            if self.take("?"):
                kind, text = OptionalType(kind), f"{text}?"
            elif self.take("["):
                length = None
                if self.tokens[self.place][0] == "number":
                    length = int(self.tokens[self.place][1])
                    self.place += 1
                self.want("]")
                kind, text = ListType(kind, length), f"{text}[{'' if length is None else length}]"
                outer = self.alias()
                if outer is not None:
                    alias, text = outer, text + str(outer)
            else:
                return kind, text, alias

    def bare_type(self) -> tuple[Type, str]:
        if self.take("("):
            parts = []
            while not self.take(")"):
                parts.append(self.type())
                if not self.take(","):
                    self.want(")")
                    break
            return TupleType([each[0] for each in parts]), f"({', '.join(each[1] for each in parts)})"
        start = self.tokens[self.place][2]
        name = self.name()
        if name == "Dict":
            self.want("(")
            key, key_text, _ = self.type()
            self.want(",")
            value, value_text, _ = self.type()
            self.want(")")
            return DictType(key, value), f"Dict({key_text}, {value_text})"
        if name in WRAPPING:
            self.want("(")
            element, text, _ = self.type()
            self.want(")")
            return WRAPPING[name](element), f"{name}({text})"
        if name == "__torch__":
            while self.take("."):
                name += f".{self.name()}"
            return ClassType(name), name
        if name in NAMED:
            return NAMED[name], NAMED[name].str()
        if name[0] == "t" and (len(name) < 3 or name[1].isupper()):
            return Type("VarType", name), name
        raise RuntimeError(
            "\nunknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool, Scalar:"
            + self.marked(start, len(name))
        )

    def alias(self) -> _AliasInfo | None:
        if self.peek() != "(":
            return None
        self.want("(")
        before, is_write = self.alias_sets()
        after = self.alias_sets()[0] if self.take("->") else before
        self.want(")")
        return _AliasInfo(before, after, is_write)

    def alias_sets(self) -> tuple[list[str], bool]:
        found = []
        while True:
            found.append("*" if self.take("*") else self.name())
            if not self.take("|"):
                break
        return found, self.take("!")

    # -- Defaults --------------------------------------------------------------------------------------------------

    def default(self, kind: Type) -> tuple[Any, str]:
        inner: Type = kind
        if isinstance(inner, OptionalType):
            inner = inner.getElementType()
        token, found, _ = self.tokens[self.place]
        if (token, found) == ("name", "None"):
            self.place += 1
            return None, "None"
        if kind.kind() == "TensorType":
            raise self.error("None")
        if isinstance(inner, ListType):
            return self.default_list(inner)
        return self.default_value(inner)

    def default_list(self, kind: ListType) -> tuple[Any, str]:
        element = kind.getElementType()
        if not self.take("["):  # one number for each of them
            value, text = self.default_value(element)
            return ([value] * (kind.length or 1), text) if kind.length else ([value], f"[{text}]")
        values, texts = [], []
        while not self.take("]"):
            value, text = self.default_value(element)
            values.append(value)
            texts.append(text)
            if not self.take(","):
                self.want("]")
                break
        return values, f"[{', '.join(texts)}]"

    def default_value(self, kind: Type) -> tuple[Any, str]:
        token, found, start = self.tokens[self.place]
        self.place += 1
        if token == "string":
            value = found[1:-1].encode().decode("unicode_escape")
            return value, _quoted(value)
        if token == "name" and found in ("True", "False"):
            return found == "True", found
        if isinstance(kind, _Coded):
            code = int(found) if token == "number" else _code(found)
            return code, str(code)
        if token == "name" and found in ("Mean", "contiguous_format"):
            value = ("none", "Mean").index("Mean") if found == "Mean" else 0
            return value, str(value)
        if token == "number":
            whole = (
                kind.kind() in ("IntType", "SymIntType")
                or kind.kind() == "NumberType"
                and found.lstrip("-").isdigit()
            )
            try:
                number = int(found) if whole else float(found)
            except ValueError:
                raise RuntimeError(
                    "\ninvalid numeric default value:" + self.marked(start, len(found))
                ) from None
            return number, str(number) if whole else _shown(number)
        self.place -= 1
        raise self.error("number")


def _code(name: str) -> int:
    name = _C_NAMES.get(name, name)
    for codes in (DTYPE_CODES, LAYOUT_CODES, MEMORY_FORMAT_CODES):
        if name in codes:
            return codes.index(name)
    raise RuntimeError(f"\ninvalid default value {name!r}")


def _shown(number: float) -> str:
    """As C++ prints it with all digits: 1. and 1.0000000000000001e-05."""
    text = f"{number:.17g}"
    return f"{text}." if text.lstrip("-").isdigit() else text


def _quoted(text: str) -> str:
    for character, escape in (
        ("\\", "\\\\"),
        ('"', '\\"'),
        ("'", "\\'"),
        ("\n", "\\n"),
        ("\t", "\\t"),
        ("\f", "\\f"),
        ("\v", "\\v"),
    ):
        text = text.replace(character, escape)
    return f'"{text}"'
