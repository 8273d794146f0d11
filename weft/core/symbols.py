"""Symbols: sizes whose values planning does not know.

A plan is made by ordinary Python code that computes with sizes and strides. When this code runs on Symbols instead of ints, it
notes what it computes and which comparisons it makes. `core/templates.py` writes a function from these notes that makes the plan
for other sizes without running the planning code again.

A Symbol is a polynomial over *atoms*. An atom is a size or a stride of an operand, which is at least 2, because planning treats
sizes of 0 and 1 differently; or the result of a division. A comparison of two Symbols is answered from the polynomials if they
decide it (`rows * columns >= columns`). Otherwise the actual sizes decide it, and the comparison becomes a *guard*: the notes
count only for sizes for which all guards hold.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

Monomial = tuple[int, ...]  # the numbers of its atoms, sorted
Polynomial = dict[Monomial, int]  # with the coefficients, which are not 0


class Untraceable(Exception):
    """Planning does something with a Symbol that needs its value, so the plan holds for these sizes alone."""


class Guard:
    """A comparison of a Symbol with 0, which held for the sizes of the trace: `relation` is ">=", "==" or "!="."""

    __slots__ = ("symbol", "relation")

    def __init__(self, symbol: Symbol, relation: str):
        self.symbol, self.relation = symbol, relation

    @property
    def polynomial(self) -> Polynomial:
        return self.symbol.polynomial


class Trace:
    """The notes of one run of planning code on Symbols.

    Planning repeats itself: every Spec asks for the product of its sizes, every plan compares it with the same limits. So results and
    answers are remembered, and a Symbol keeps what is derived from its polynomial.
    """

    def __init__(self) -> None:
        self.values: list[int] = []  # of the atoms, for the sizes of the trace
        self.least: list[int] = []  # a lower bound of each atom
        self.terms: list[Any] = []  # for each atom: None, or (operator, dividend, divisor)
        self.guards: list[Guard] = []
        self.specs: list[Any] = []  # the specs with symbols
        self.memo: dict[Any, Any] = {}  # what planning code looked up for symbols, see `core/plans.py`
        self.failure: str | None = None
        self.static: set[int] = set()  # atoms that are static arguments, which may turn out to be no sizes
        self._symbols: dict[frozenset, Symbol] = {}
        self._results: dict[tuple, Any] = {}  # of arithmetic
        self._answers: dict[tuple, bool] = {}  # to comparisons
        self._guarded: set[tuple] = set()
        self._above: dict[Monomial, Polynomial] = {}  # see `_above_least`

    # -- symbols -------------------------------------------------------------------------------------------------------

    def atom(self, value: int, least: int = 2, term: Any = None, static: bool = False) -> Symbol:
        """A new atom."""
        if static:
            self.static.add(len(self.values))
        self.values.append(value)
        self.least.append(least)
        self.terms.append(term)
        return self._symbol({(len(self.values) - 1,): 1}, value)

    def _symbol(self, polynomial: Polynomial, value: int) -> Any:
        """The Symbol for a polynomial; an int if the polynomial is a constant."""
        if not polynomial:
            return 0
        if len(polynomial) == 1 and () in polynomial:
            return polynomial[()]
        key = frozenset(polynomial.items())
        found = self._symbols.get(key)
        if found is None:
            found = self._symbols[key] = Symbol(self, polynomial, key, value)
        return found

    def value_of(self, polynomial: Polynomial) -> int:
        """The value for the sizes of the trace."""
        total = 0
        for monomial, factor in polynomial.items():
            for atom in monomial:
                factor *= self.values[atom]
            total += factor
        return total

    def total(self, a: Any, b: Any, factor: int) -> Any:
        """a + factor * b."""
        key = (factor, _token(a), _token(b))
        found = self._results.get(key)
        if found is None:
            polynomial = _sum(polynomial_of(a), polynomial_of(b), factor)
            found = self._results[key] = self._symbol(polynomial, value_of(a) + factor * value_of(b))
        return found

    def product(self, a: Any, b: Any) -> Any:
        key = ("*", _token(a), _token(b))
        found = self._results.get(key)
        if found is None:
            polynomial = _product(polynomial_of(a), polynomial_of(b))
            found = self._results[key] = self._symbol(polynomial, value_of(a) * value_of(b))
        return found

    def quotient(self, operator: str, a: Any, b: Any) -> Any:
        """`a // b` or `a % b`."""
        key = (operator, _token(a), _token(b))
        found = self._results.get(key)
        if found is None:
            found = self._results[key] = self._divided(operator, a, b)
        return found

    def _divided(self, operator: str, a: Any, b: Any) -> Any:
        x, y = value_of(a), value_of(b)
        exact = _divided(polynomial_of(a), polynomial_of(b))
        if exact is not None:
            return self._symbol(exact, x // y) if operator == "//" else 0
        is_positive = x >= 0 and y >= 1 and self._is_known(a, 0) and self._is_known(b, 1)
        value = x // y if operator == "//" else x % y
        return self.atom(value, 0 if is_positive else -(2**63), (operator, a, b))

    # -- comparisons ---------------------------------------------------------------------------------------------------

    def is_at_least(self, a: Any, b: Any) -> bool:
        """Whether a >= b."""
        key = (">=", _token(a), _token(b))
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = value_of(a) >= value_of(b)
            if answer:
                self._require(self.total(a, b, -1))
            else:
                self._require(self.total(self.total(b, a, -1), 1, -1))
        return answer

    def _require(self, difference: Any) -> None:
        """Note that a number is at least 0, unless that is known."""
        if not self._is_known(difference, 0):
            self._guard(difference, ">=")

    def is_equal(self, a: Any, b: Any) -> bool:
        key = ("==", _token(a), _token(b))
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = value_of(a) == value_of(b)
            difference = self.total(a, b, -1)
            if type(difference) is Symbol and not self._is_not_zero(difference):
                self._guard(difference, "==" if answer else "!=")
        return answer

    def never_equal(self, a: Any, b: Any) -> bool:
        """Whether a and b are known to differ."""
        return self._is_not_zero(self.total(a, b, -1))

    def is_known_at_least(self, a: Any, bound: int) -> bool:
        """Whether a >= bound for all sizes for which the notes count."""
        return self._is_known(a, bound)

    def _is_not_zero(self, difference: Any) -> bool:
        """Whether a number is known not to be 0."""
        value = value_of(difference)
        if value > 0:
            return self._is_known(difference, 1)
        return value < 0 and self._is_known(self.total(0, difference, -1), 1)

    def _guard(self, symbol: Symbol, relation: str) -> None:
        key = symbol.key, relation
        if key not in self._guarded:
            self._guarded.add(key)
            self.guards.append(Guard(symbol, relation))

    def _is_known(self, number: Any, bound: int) -> bool:
        """Whether a number is known to be at least `bound`, alone or because of one guard."""
        if type(number) is not Symbol:
            return number >= bound
        own = self._above_least(number)
        if own.get((), 0) >= bound and all([factor >= 0 for monomial, factor in own.items() if monomial]):
            return True
        for guard in self.guards:
            if guard.relation == ">=" and _covers(own, self._above_least(guard.symbol), bound):
                return True
        return False

    def _above_least(self, symbol: Symbol) -> Polynomial:
        """The polynomial of a Symbol in how far each atom is above its lower bound, which is never negative.

        So a number is at least the constant of this polynomial if it has no negative coefficient.
        """
        found = symbol.above_least
        if found is None:
            found = symbol.above_least = {}
            for monomial, factor in symbol.polynomial.items():
                for part, own in self._expanded(monomial).items():
                    found[part] = found.get(part, 0) + factor * own
        return found

    def _expanded(self, monomial: Monomial) -> Polynomial:
        """The product of atoms, with each atom x replaced by least + x'."""
        found = self._above.get(monomial)
        if found is None:
            found = {(): 1}
            if monomial:
                last = monomial[-1:]
                found = _product(self._expanded(monomial[:-1]), {(): self.least[last[0]], last: 1})
            self._above[monomial] = found
        return found

    def needed_guards(self) -> Iterator[Guard]:
        """The guards that do not follow from the others."""
        for guard in list(self.guards):
            if guard.relation == ">=":
                self.guards.remove(guard)
                if self._is_known(guard.symbol, 0):
                    continue
                self.guards.append(guard)
            elif guard.relation == "!=" and self._is_not_zero(guard.symbol):
                self.guards.remove(guard)
                continue
            yield guard

    def fail(self, reason: str) -> Untraceable:
        """The exception to raise. The trace remembers it, because planning code may catch exceptions."""
        self.failure = reason
        return Untraceable(reason)


# The traces that are being made, by all threads. While there are none, nobody has symbols.
traces: list[Trace] = []


class Symbol:
    """An int whose value a trace does not know. Anything but arithmetic and comparisons raises Untraceable."""

    __slots__ = ("trace", "polynomial", "key", "value", "above_least")

    def __init__(self, trace: Trace, polynomial: Polynomial, key: frozenset, value: int):
        self.trace, self.polynomial = trace, polynomial
        self.key = key  # stands for the Symbol in keys of dictionaries
        self.value = value  # for the sizes of the trace
        self.above_least: Polynomial | None = None  # see `Trace._above_least`

    def __add__(self, other: Any) -> Any:
        return self.trace.total(self, other, 1) if _is_integer(other) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self.trace.total(self, other, -1) if _is_integer(other) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return self.trace.total(other, self, -1) if _is_integer(other) else NotImplemented

    def __neg__(self) -> Any:
        return self.trace.total(0, self, -1)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __mul__(self, other: Any) -> Any:
        # A tuple or a list raises for a factor without a value.
        return self.trace.product(self, other) if _is_integer(other) else NotImplemented

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return self.trace.quotient("//", self, other) if _is_integer(other) else NotImplemented

    def __rfloordiv__(self, other: Any) -> Any:
        return self.trace.quotient("//", other, self) if _is_integer(other) else NotImplemented

    def __mod__(self, other: Any) -> Any:
        return self.trace.quotient("%", self, other) if _is_integer(other) else NotImplemented

    def __rmod__(self, other: Any) -> Any:
        return self.trace.quotient("%", other, self) if _is_integer(other) else NotImplemented

    def __ge__(self, other: Any) -> Any:
        return self.trace.is_at_least(self, other) if _is_integer(other) else self._against_float(other, ">=")

    def __le__(self, other: Any) -> Any:
        return self.trace.is_at_least(other, self) if _is_integer(other) else self._against_float(other, "<=")

    def __gt__(self, other: Any) -> Any:
        return (
            not self.trace.is_at_least(other, self) if _is_integer(other) else self._against_float(other, ">")
        )

    def __lt__(self, other: Any) -> Any:
        return (
            not self.trace.is_at_least(self, other) if _is_integer(other) else self._against_float(other, "<")
        )

    def __eq__(self, other: Any) -> Any:
        return self.trace.is_equal(self, other) if _is_integer(other) else False

    def __ne__(self, other: Any) -> Any:
        return not self == other

    def __bool__(self) -> bool:
        return not self.trace.is_equal(self, 0)

    def _against_float(self, other: Any, relation: str) -> Any:
        raise self.trace.fail(f"a size is compared with {other!r} by {relation}")

    def __hash__(self) -> int:
        raise Untraceable("a size is part of the key of a dictionary")  # which callers may do without

    def __index__(self) -> int:
        (monomial,) = self.polynomial if len(self.polynomial) == 1 else ((),)
        if len(monomial) == 1 and monomial[0] in self.trace.static:  # the number of a dim, for instance
            self.trace.is_equal(self, self.value)
            return self.value
        raise self.trace.fail("the value of a size is needed")

    __int__ = __float__ = __index__  # type: ignore[assignment]

    def __truediv__(self, other: Any) -> Any:
        raise self.trace.fail("a size is divided to a float")

    __rtruediv__ = __truediv__

    def __str__(self) -> str:
        raise self.trace.fail("a size becomes a part of a text")

    def __format__(self, specification: str) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"<Symbol {self.polynomial} = {self.value}>"


def _is_integer(value: Any) -> bool:
    kind = type(value)
    return kind is int or kind is Symbol or kind is bool


def polynomial_of(value: Any) -> Polynomial:
    """The polynomial of a Symbol or an int."""
    if type(value) is Symbol:
        return value.polynomial
    return {(): int(value)} if value else {}


def value_of(number: Any) -> int:
    """The value of a Symbol for the sizes of its trace; that of an int."""
    return number.value if type(number) is Symbol else number


def _token(number: Any) -> Any:
    """What stands for a Symbol or an int in the key of a dictionary."""
    return number.key if type(number) is Symbol else number


def _covers(polynomial: Polynomial, guard: Polynomial, bound: int) -> bool:
    """Whether polynomial - guard has no negative coefficient and a constant of at least `bound`."""
    if polynomial.get((), 0) - guard.get((), 0) < bound:
        return False
    for monomial, factor in guard.items():
        if monomial and factor > polynomial.get(monomial, 0):
            return False
    return all([factor >= 0 or monomial in guard for monomial, factor in polynomial.items() if monomial])


def _sum(a: Polynomial, b: Polynomial, factor: int) -> Polynomial:
    """a + factor * b."""
    result = dict(a)
    for monomial, own in b.items():
        total = result.get(monomial, 0) + factor * own
        if total:
            result[monomial] = total
        else:
            result.pop(monomial, None)
    return result


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    result: Polynomial = {}
    for left, x in a.items():
        for right, y in b.items():
            monomial = tuple(sorted(left + right)) if left and right else left or right
            result[monomial] = result.get(monomial, 0) + x * y
    return {monomial: factor for monomial, factor in result.items() if factor}


def _divided(a: Polynomial, b: Polynomial) -> Polynomial | None:
    """a / b, if b is one term that divides each term of a."""
    if len(b) != 1:
        return None
    ((divisor, factor),) = b.items()
    result = {}
    for monomial, own in a.items():
        left = list(monomial)
        for atom in divisor:
            if atom not in left:
                return None
            left.remove(atom)
        if own % factor:
            return None
        result[tuple(left)] = own // factor
    return result


def trace_of(values: Iterable[Any]) -> Trace | None:
    """The trace of the first Symbol among values; None if there is none."""
    for value in values:
        if type(value) is Symbol:
            return value.trace
    return None


# ---- Work that needs values --------------------------------------------------------------------------------------------


class Later:
    """A call of `function` that needs values, so that it is made for each plan; a placeholder of its result."""

    __slots__ = ("function", "arguments", "trace")

    def __init__(self, function: Callable, arguments: tuple, trace: Trace):
        self.function, self.arguments, self.trace = function, arguments, trace

    @property
    def is_derived(self) -> bool:
        """Whether this is a part of what another Later stands for."""
        return self.function in (getattr, operator.add, operator.getitem)

    def __getattr__(self, name: str) -> Later:
        if name.startswith("__"):
            raise AttributeError(name)
        return Later(getattr, (self, name), self.trace)

    def __add__(self, offset: Any) -> Later:
        return Later(operator.add, (self, offset), self.trace)

    def __getitem__(self, position: int) -> Later:
        return Later(operator.getitem, (self, position), self.trace)

    def __iter__(self) -> Any:
        raise self.trace.fail(f"the parts of what {self.function} returns are needed")

    def __bool__(self) -> bool:
        raise self.trace.fail(f"what {self.function} returns is needed")

    __len__ = __int__ = __index__ = __bool__  # type: ignore[assignment]

    def __eq__(self, other: Any) -> bool:
        raise self.trace.fail(f"what {self.function} returns is compared")

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Later {self.function} {self.arguments}>"


def per_plan(function: Callable) -> Callable:
    """Decorator for a function that planning code calls with sizes, and which needs their values.

    Where arguments are Symbols, or contain them, the call is noted, and is made for each plan.
    """

    def call(*arguments: Any) -> Any:
        trace = symbolic(arguments) if traces else None
        return function(*arguments) if trace is None else Later(function, arguments, trace)

    call.__name__, call.__qualname__ = function.__name__, function.__qualname__
    call.__doc__, call.__module__ = function.__doc__, function.__module__
    call.__wrapped__ = function  # type: ignore[attr-defined]
    return call


as_float = per_plan(float)


def symbolic(value: Any) -> Trace | None:
    """The trace of a value that contains symbols in lists, tuples, dictionaries and specs; None if it contains none."""
    kind = type(value)
    if kind is Symbol or kind is Later:
        return value.trace
    if isinstance(value, (tuple, list)):
        for each in value:
            if found := symbolic(each):
                return found
        return None
    if kind is dict:
        return symbolic(tuple(value.values()))
    return getattr(value, "symbols", None)  # of a Spec
