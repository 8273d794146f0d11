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

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

Monomial = tuple[int, ...]  # the numbers of its atoms, sorted
Polynomial = dict[Monomial, int]  # with the coefficients, which are not 0


class Untraceable(Exception):
    """Planning does something with a Symbol that needs its value, so the plan holds for these sizes alone."""


class Guard:
    """A comparison of a polynomial with 0, which held for the sizes of the trace: `relation` is ">=", "==" or "!="."""

    __slots__ = ("polynomial", "relation")

    def __init__(self, polynomial: Polynomial, relation: str):
        self.polynomial, self.relation = polynomial, relation


class Trace:
    """The notes of one run of planning code on Symbols."""

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
        self._decided: dict[tuple, bool] = {}
        self._known: dict[tuple, bool] = {}  # what `_at_least` has found

    # -- symbols -------------------------------------------------------------------------------------------------------

    def atom(self, value: int, least: int = 2, term: Any = None, static: bool = False) -> Symbol:
        """A new atom."""
        if static:
            self.static.add(len(self.values))
        self.values.append(value)
        self.least.append(least)
        self.terms.append(term)
        return self.symbol({(len(self.values) - 1,): 1})

    def symbol(self, polynomial: Polynomial) -> Any:
        """The Symbol for a polynomial; an int if the polynomial is a constant."""
        if not polynomial:
            return 0
        if len(polynomial) == 1 and () in polynomial:
            return polynomial[()]
        key = frozenset(polynomial.items())
        found = self._symbols.get(key)
        if found is None:
            found = self._symbols[key] = Symbol(self, polynomial)
        return found

    def value_of(self, polynomial: Polynomial) -> int:
        """The value for the sizes of the trace."""
        return _value(polynomial, self.values)

    def quotient(self, operator: str, a: Any, b: Any) -> Any:
        """`a // b` or `a % b`."""
        exact = _divided(polynomial_of(a), polynomial_of(b))
        if exact is not None:
            return self.symbol(exact) if operator == "//" else 0
        key = (operator, *map(_key, (a, b)))
        if key not in self.memo:
            x, y = (self.value_of(polynomial_of(each)) for each in (a, b))
            is_positive = self._at_least(polynomial_of(a), 0) and self._at_least(polynomial_of(b), 1)
            value = x // y if operator == "//" else x % y
            self.memo[key] = self.atom(value, 0 if is_positive else -(2**63), (operator, a, b))
        return self.memo[key]

    # -- comparisons ---------------------------------------------------------------------------------------------------

    def is_at_least(self, a: Any, b: Any) -> bool:
        """Whether a >= b."""
        difference = _sum(polynomial_of(a), polynomial_of(b), -1)
        if self._at_least(difference, 0):
            return True
        if self._at_least(_scaled(difference, -1), 1):
            return False
        if self.value_of(difference) >= 0:
            return self._guard(difference, ">=", True)
        return self._guard(_sum(_scaled(difference, -1), {(): 1}, -1), ">=", False)

    def is_equal(self, a: Any, b: Any) -> bool:
        difference = _sum(polynomial_of(a), polynomial_of(b), -1)
        if not difference:
            return True
        if self.differs(difference):
            return False
        if self.value_of(difference) == 0:
            return self._guard(difference, "==", True)
        return self._guard(difference, "!=", False)

    def never_equal(self, a: Any, b: Any) -> bool:
        """Whether a and b are known to differ."""
        return self.differs(_sum(polynomial_of(a), polynomial_of(b), -1))

    def is_known_at_least(self, a: Any, bound: int) -> bool:
        """Whether a >= bound for all sizes for which the notes count."""
        return self._at_least(polynomial_of(a), bound)

    def differs(self, difference: Polynomial) -> bool:
        """Whether a polynomial is known not to be 0."""
        return self._at_least(difference, 1) or self._at_least(_scaled(difference, -1), 1)

    def _guard(self, polynomial: Polynomial, relation: str, answer: bool) -> bool:
        key = frozenset(polynomial.items()), relation
        if key not in self._decided:
            self._decided[key] = True
            self.guards.append(Guard(polynomial, relation))
        return answer

    def _at_least(self, polynomial: Polynomial, bound: int) -> bool:
        """Whether a polynomial is known to be at least `bound`, alone or because of one guard."""
        if self.value_of(polynomial) < bound:
            return False
        key = frozenset(polynomial.items()), bound
        if (
            key not in self._known
        ):  # a guard that comes later may decide it, but what is known without it holds as well
            self._known[key] = self._follows(polynomial, bound)
        return self._known[key]

    def _follows(self, polynomial: Polynomial, bound: int) -> bool:
        """As `_at_least`, by the present guards."""
        if self._is_bounded(polynomial, bound):
            return True
        negative = [monomial for monomial, factor in polynomial.items() if factor < 0]
        for guard in self.guards:
            if guard.relation == ">=" and _may_outweigh(guard.polynomial, negative, polynomial):
                if self._is_bounded(_sum(polynomial, guard.polynomial, -1), bound):
                    return True
        return False

    def _is_bounded(self, polynomial: Polynomial, bound: int) -> bool:
        """Whether a polynomial is at least `bound` for all values of its atoms.

        With each atom x replaced by least + x', where x' >= 0, that is so if no coefficient is negative, and the constant is at
        least `bound`.
        """
        if _value(polynomial, self.least) < bound:
            return False
        shifted: Polynomial = {}
        for monomial, factor in polynomial.items():
            for kept in itertools.product((False, True), repeat=len(monomial)):
                part, own = [], factor
                for atom, keep in zip(monomial, kept, strict=True):
                    if keep:
                        part.append(atom)
                    else:
                        own *= self.least[atom]
                if own:
                    key = tuple(part)
                    shifted[key] = shifted.get(key, 0) + own
        constant = shifted.pop((), 0)
        return constant >= bound and all(factor >= 0 for factor in shifted.values())

    def needed_guards(self) -> Iterator[Guard]:
        """The guards that do not follow from the others."""
        for guard in list(self.guards):
            if guard.relation == ">=":
                self.guards.remove(guard)
                if self._follows(guard.polynomial, 0):
                    continue
                self.guards.append(guard)
            elif guard.relation == "!=":
                if self._follows(guard.polynomial, 1) or self._follows(_scaled(guard.polynomial, -1), 1):
                    self.guards.remove(guard)
                    continue
            yield guard

    def fail(self, reason: str) -> Untraceable:
        """The exception to raise. The trace remembers it, because planning code may catch exceptions."""
        self.failure = reason
        return Untraceable(reason)


class Symbol:
    """An int whose value a trace does not know. Anything but arithmetic and comparisons raises Untraceable."""

    __slots__ = ("trace", "polynomial")

    def __init__(self, trace: Trace, polynomial: Polynomial):
        self.trace, self.polynomial = trace, polynomial

    def __add__(self, other: Any) -> Any:
        if not _is_integer(other):
            return NotImplemented
        return self.trace.symbol(_sum(self.polynomial, polynomial_of(other), 1))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if not _is_integer(other):
            return NotImplemented
        return self.trace.symbol(_sum(self.polynomial, polynomial_of(other), -1))

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __neg__(self) -> Any:
        return self.trace.symbol(_scaled(self.polynomial, -1))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __mul__(self, other: Any) -> Any:
        if not _is_integer(other):
            return NotImplemented  # a tuple or a list raises for a factor without a value
        return self.trace.symbol(_product(self.polynomial, polynomial_of(other)))

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
            value = self.trace.values[monomial[0]]
            self.trace.is_equal(self, value)
            return value
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
        return f"<Symbol {self.polynomial} = {self.trace.value_of(self.polynomial)}>"


def _is_integer(value: Any) -> bool:
    return type(value) is int or type(value) is Symbol or type(value) is bool


def polynomial_of(value: Any) -> Polynomial:
    """The polynomial of a Symbol or an int."""
    if type(value) is Symbol:
        return value.polynomial
    return {(): int(value)} if value else {}


def _key(value: Any) -> Any:
    return frozenset(polynomial_of(value).items())


def _may_outweigh(guard: Polynomial, negative: list[Monomial], polynomial: Polynomial) -> bool:
    """Whether a polynomial may be bounded because a guard is at least 0: it has to take away a negative term, if there is one."""
    if negative:
        return any(
            [
                factor < 0 and set(each) <= set(monomial)
                for monomial, factor in guard.items()
                for each in negative
            ]
        )
    return any([monomial in guard for monomial in polynomial])


def _value(polynomial: Polynomial, values: list[int]) -> int:
    total = 0
    for monomial, factor in polynomial.items():
        for atom in monomial:
            factor *= values[atom]
        total += factor
    return total


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


def _scaled(a: Polynomial, factor: int) -> Polynomial:
    return {monomial: factor * own for monomial, own in a.items()}


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    result: Polynomial = {}
    for left, x in a.items():
        for right, y in b.items():
            monomial = tuple(sorted(left + right))
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
        trace = symbolic(arguments)
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
