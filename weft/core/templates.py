"""Templates: one plan for all sizes of a kind of call.

The key of a plan has specs and static arguments. Its *kind* is the same key with the sizes left out: the dtypes, the number of
dims, which of them have size 0 or 1, whether memory is row-major. When an op has planned a few calls of one kind, it plans
the next one on symbols (`core/symbols.py`). From the notes a function is written:

    def make(key):
        k0, k1 = key                        the specs of `a + b`
        if k1 is not k0: return unfit        the guards: for other sizes this template says nothing
        s0, s1 = k0.shape
        v0 = s0*s1
        if not (v0 <= 21845): return unfit
        p0 = new(Plan)                      what the planning code would make
        p0.spec = k0
        p0.count = v0
        ...
        return p0

It takes a few microseconds, and the planning code 100 to 1000 (AMD Zen 3).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, ClassVar

from .device import device
from .dtype import DType
from .size import Size
from .spec import Spec, family, kind_of, known_kind, sized_spec, symbolic_spec
from .symbols import (
    Guard,
    Later,
    Monomial,
    Polynomial,
    Symbol,
    Trace,
    Untraceable,
    polynomial_of,
    trace_of,
    traces,
)

# Calls of a kind that are planned by the planning code before its first template. Writing one takes about as long as 10 such calls
# (AMD Zen 3). From the third template on, each waits for more calls.
PLANNED_FIRST = 3
FEW_TEMPLATES = 2
# Parts of other plans are planned so many times more, because those get templates first.
PLANNED_INSIDE = 8
# So many calls more are planned first while sizes are equal by chance.
POSTPONED = 4
# An op whose calls are of many kinds is called with random types and shapes, and most kinds do not come again: in 2,900 calls
# with 8 dtypes and up to 4 dims, 9 of 4742 kinds had more than 11 calls. Each so many kinds, one call more is planned first.
KINDS_PER_CALL = 16
# Templates of a kind: sizes that are equal by chance, or large ones, need templates of their own.
MOST_TEMPLATES = 8
# Kinds of one op.
MOST_KINDS = 512

# What a template returns for a key that it does not hold for; a plan may be None.
UNFIT = object()

# Stands for a static int of at least 2 in the kind of a key.
_SIZE = object()


class Late:
    """The base of plans with slots that calls do not read, so that a template makes a plan in less time.

    LATE: slots that are seldom read. A template leaves them unset, and `rest` sets them when one of them is read.
    OWNING: slots that are never read, and own memory. In plans from templates they have the owners of this memory alone.
    """

    __slots__ = ("rest",)

    LATE: ClassVar[tuple[str, ...]] = ()
    OWNING: ClassVar[tuple[str, ...]] = ()

    rest: tuple[Callable, tuple, tuple]

    def __getattr__(self, name: str) -> Any:  # only for slots that are not set
        if name not in self.LATE:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        set_late, key, shared = self.rest
        set_late(self, key, shared)
        return object.__getattribute__(self, name)


class Kind:
    """What was learned about the calls of one kind."""

    __slots__ = ("planned", "templates", "reason", "sizes")

    def __init__(self) -> None:
        self.planned = 0  # calls that the planning code planned since the last template
        self.templates: list[Callable[[tuple], Any]] = []
        self.reason: str | None = None  # why there is no template
        self.sizes: list[int] = []  # those of the last key that the planning code planned

    def needs_template(self, key: tuple, kinds: int, inner: bool) -> bool:
        """Whether to write a template for a key for which none holds. `kinds`: those of the op.

        inner: the plan is a part of one that the planning code of another op makes, which will soon have a template itself.

        A key in which sizes are equal that were not equal in the key before is a bad one to trace: the template would hold only where
        they are equal again.
        """
        if self.reason is not None:
            return False
        before, self.sizes = self.sizes, sizes_of_key(key)
        self.planned += 1
        first = PLANNED_FIRST * max(1, len(self.templates) - FEW_TEMPLATES) + kinds // KINDS_PER_CALL
        first += PLANNED_INSIDE if inner else 0
        return self.planned > first and (
            self.planned > first + POSTPONED or not _equal_by_chance(self.sizes, before)
        )

    def add(self, make: Callable[[tuple], Any]) -> None:
        """Add a template. If there are too many, the oldest is dropped."""
        self.templates = [make, *self.templates[: MOST_TEMPLATES - 1]]  # other threads read the list
        self.planned = 0


def _equal_by_chance(sizes: Sequence[int], before: Sequence[int]) -> bool:
    """Whether two sizes are equal, and were not equal before."""
    if len(sizes) != len(before):
        return False
    first: dict[int, int] = {}
    return any([before[first.setdefault(size, k)] != before[k] for k, size in enumerate(sizes) if size > 1])


def kind_of_key(key: tuple, with_sizes: bool) -> tuple:
    """The kind of a key. `with_sizes`: static ints are sizes."""
    return tuple(
        [
            (part.kind or kind_of(part)) if type(part) is Spec else _kind_of_part(part, with_sizes)
            for part in key
        ]
    )


def _kind_of_part(part: Any, with_sizes: bool) -> Any:
    kind = type(part)
    if kind is tuple or kind is Size:
        return kind_of_key(part, with_sizes)
    return _SIZE if with_sizes and kind is int and part > 1 else part


def sizes_of_key(key: tuple) -> list[int]:
    """The sizes in a key, and its static ints, one after the other."""
    found: list[int] = []
    for part in key:
        kind = type(part)
        if kind is Spec:
            found += part.shape
        elif kind is int:
            found.append(part)
        elif kind is tuple or kind is Size:
            found += sizes_of_key(part)
    return found


def trace_of_key(key: tuple) -> Trace | None:
    """The trace of the symbols in a key; None if there are none."""
    for part in key:
        kind = type(part)
        if kind is Spec or kind is Symbol:
            found = part.symbols if kind is Spec else part.trace
        else:
            found = trace_of_key(part) if isinstance(part, tuple) else None
        if found is not None:
            return found
    return None


def template(plan: Callable, key: tuple, with_sizes: bool) -> Callable[[tuple], Any]:
    """A function that makes the plan for keys of the kind of this one, or returns UNFIT.

    Raises: Untraceable.
    """
    writer = _Writer(with_sizes)
    symbols = writer.read(key)
    traces.append(writer.trace)
    try:
        made = plan(*symbols)
    except Untraceable:
        raise
    except Exception as error:
        raise Untraceable(writer.trace.failure or f"planning raised {error!r}") from error
    finally:
        traces.remove(writer.trace)
    if writer.trace.failure:
        raise Untraceable(writer.trace.failure)
    return writer.function(made)


class _Writer:
    """Writes the source of a template."""

    def __init__(self, with_sizes: bool):
        self.trace = Trace()
        self.with_sizes = with_sizes
        self.lines: list[str] = []
        self.reading: list[str] = []  # those of the lines that read the key
        self.checks: list[str] = []  # conditions on what was read from the key
        self.known: dict[str, Any] = {
            "unfit": UNFIT,
            "new": object.__new__,
            "sized_spec": sized_spec,
            "Spec": Spec,
            "kind_of": kind_of,
            "Cell": CellType,
        }
        self.names: dict[int, str] = {}  # of atoms
        self.products: dict[Monomial, str] = {(): ""}
        self.polynomials: dict[frozenset, str] = {}
        # The symbols of each value, with their dims counted from the last. Equal sizes of two specs are one symbol. Those of one spec
        # are equal by chance, as in a square matrix, whose template serves other matrices as well.
        self.of_value: dict[int, list[tuple[int, Symbol]]] = {}
        self.of_spec: dict[
            int, tuple[str, Spec]
        ] = {}  # what has been read: the name, and the spec with symbols
        self.written: dict[int, str] = {}  # names of objects that were written
        self.constants: dict[int, str] = {}
        self.contains: dict[int, bool] = {}
        self.alive: list[Any] = []  # so that an id stands for one object
        self.late: list[tuple[str, Late]] = []  # objects that were written without their late slots
        self.owning: list[
            tuple[str, str, Any]
        ] = []  # slots that are set last: the object's name, the slot, the value
        self.count = 0

    # -- the key -------------------------------------------------------------------------------------------------------

    def read(self, key: tuple) -> tuple:
        """The key with symbols in the place of sizes. What the kind of the key says is checked first."""
        return self._read_tuple("key", key)

    def _take(self, line: str) -> None:
        """Add a line that reads the key."""
        self.lines.append(line)
        self.reading.append(line)

    def _require(self, condition: str) -> None:
        self.lines.append(f"if not ({condition}): return unfit")

    def _read_tuple(self, name: str, value: tuple) -> tuple:
        names = [self._name("k") for _ in value]
        self._require(f"len({name}) == {len(names)}")
        if names:
            self._take(f"{', '.join(names)}, = {name}")
        return tuple([self._read(own, part) for own, part in zip(names, value, strict=True)])

    def _read(self, name: str, part: Any) -> Any:
        kind = type(part)
        if kind is Spec:
            return self._read_spec(name, part)
        if kind is tuple or kind is Size:
            self._require(f"type({name}) is {self._constant(kind)}")
            found = self._read_tuple(name, part)
            return tuple.__new__(Size, found) if kind is Size else found
        if self.with_sizes and kind is int and part > 1:
            self._require(f"type({name}) is int and {name} > 1")
            symbol = self.trace.atom(part, static=True)
            self.names[len(self.trace.values) - 1] = name
            return symbol
        self._require(_is_constant(name, kind, self._constant(part)))
        return part

    def _read_spec(self, name: str, spec: Spec) -> Spec:
        if id(spec) in self.of_spec:
            first, found = self.of_spec[id(spec)]
            self._require(f"{name} is {first}")
            return found
        kind = spec.kind or kind_of(spec)
        self._require(f"type({name}) is Spec and ({name}.kind or kind_of({name})) is {self._constant(kind)}")
        sizes = self._read_numbers(f"{name}.shape", spec.shape, kind.sizes, [None] * len(spec.shape))
        if kind.strides is None:
            strides = _row_major(sizes)
        else:
            strides = self._read_numbers(
                f"{name}.stride", spec.stride, kind.strides, _expected_strides(sizes, spec.stride)
            )
        if trace_of((*sizes, *strides)) is None:  # the kind says all of it
            self.of_spec[id(spec)] = name, spec
            return spec
        found = symbolic_spec(self.trace, sizes, strides, spec.dtype, spec.device, spec.conj, spec.neg)
        for first, other in self.of_spec.values():
            if found is other:
                # Equal by the values of this trace, but another object: the strides of dims of size 1 differ, for instance.
                raise self.trace.fail("two specs have the same symbols")
            del first
        self.of_spec[id(spec)] = name, found
        self.written[id(found)] = name
        self.alive.append(found)
        return found

    def _read_numbers(
        self, source: str, values: Sequence[int], classes: Sequence[int], expected: Sequence[Any]
    ) -> list[Any]:
        found: list[Any] = []
        names: list[str] = []
        later: list[tuple[str, Any]] = []
        own: list[tuple[int, int, Symbol]] = []
        for back, value, least, guess in zip(
            range(len(values), 0, -1), values, classes, expected, strict=True
        ):
            if least < 2:
                names.append("_")
                found.append(value)
                continue
            others = self.of_value.get(value)
            known = dict(others).get(back, others[0][1]) if others else None
            if guess is not None and self.trace.value_of(polynomial_of(guess)) == value:
                known = guess
            if known is None:
                known = self.trace.atom(value)
                own.append((value, back, known))
                atom = len(self.trace.values) - 1
                self.names[atom] = f"s{atom}"
                names.append(f"s{atom}")
            else:
                names.append(self._name("t"))
                later.append((names[-1], known))
            found.append(known)
        for value, back, symbol in own:
            self.of_value.setdefault(value, []).append((back, symbol))
        if any(each != "_" for each in names):
            self._take(f"{', '.join(names)}, = {source}")
        self.checks += [f"{name} == {self._polynomial(polynomial_of(known))}" for name, known in later]
        return found

    # -- numbers -------------------------------------------------------------------------------------------------------

    def _polynomial(self, polynomial: Polynomial) -> str:
        """An expression for a polynomial."""
        terms = []
        for monomial, factor in sorted(polynomial.items()):
            product = self._product(monomial)
            if not product:
                terms.append(f"{factor:+d}")
            elif factor in (1, -1):
                terms.append(f"{'+' if factor == 1 else '-'}{product}")
            else:
                terms.append(f"{factor:+d}*{product}")
        return "".join(terms).removeprefix("+") or "0"

    def _product(self, monomial: Monomial) -> str:
        if monomial not in self.products:
            last = self._atom(monomial[-1])
            if len(monomial) == 1:
                return last
            before = self._product(monomial[:-1])
            name = self._name("v")
            self.lines.append(f"{name} = {before}*{last}")
            self.products[monomial] = name
        return self.products[monomial]

    def _atom(self, atom: int) -> str:
        if atom not in self.names:
            operator, a, b = self.trace.terms[atom]
            left, right = (self._polynomial(polynomial_of(each)) for each in (a, b))
            self.names[atom] = self._name("q")
            self.lines.append(f"{self.names[atom]} = ({left}) {operator} ({right})")
        return self.names[atom]

    def _number(self, symbol: Symbol) -> str:
        """A name or a short expression for a symbol."""
        polynomial = symbol.polynomial
        if len(polynomial) == 1 and 1 in polynomial.values():
            return self._polynomial(polynomial)
        key = frozenset(polynomial.items())
        if key not in self.polynomials:
            text = self._polynomial(polynomial)
            self.polynomials[key] = self._name("n")
            self.lines.append(f"{self.polynomials[key]} = {text}")
        return self.polynomials[key]

    def _guard(self, guard: Guard) -> str:
        positive = {each: factor for each, factor in guard.polynomial.items() if factor > 0}
        negative = {each: -factor for each, factor in guard.polynomial.items() if factor < 0}
        return f"{self._polynomial(positive)} {guard.relation} {self._polynomial(negative)}"

    def _name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    # -- objects -------------------------------------------------------------------------------------------------------

    def function(self, made: Any) -> Callable[[tuple], Any]:
        """The template whose result is like `made`."""
        guards = list(self.trace.needed_guards())
        conditions = [*self.checks, *map(self._guard, guards)]
        if conditions:
            self.lines.append(f"if not ({' and '.join(conditions)}): return unfit")
        kind: Any = type(made)
        self._is_symbolic(made)  # raises for a class whose objects cannot be written
        result = self._constant(made) if _is_atom(kind) else self._new(made)
        for name, value in self.late:
            self._write_late(name, value)
        for name, slot, value in self.owning:
            self.lines.append(f"{name}.{slot} = {self._owner(value)}")
        self.lines.append(f"return {result}")
        return self._compiled("make", "key")

    def _compiled(self, name: str, parameters: str) -> Callable:
        source = "\n    ".join([f"def {name}({parameters}):", *self.lines])
        (code,) = [
            each for each in compile(source, "<weft template>", "exec").co_consts if type(each) is CodeType
        ]
        function = FunctionType(code, self.known)
        function.source = source  # type: ignore[attr-defined]
        return function

    def _write_late(self, name: str, value: Any) -> None:
        """Let an object set its late slots when they are read first, see `Late`."""
        part = _LatePart(self)
        for slot in type(value).LATE:
            if hasattr(value, slot):
                part.lines.append(f"plan.{slot} = {part._value(getattr(value, slot))}")
        shared = "".join(f"{each}, " for each in part.shared)
        part.lines.insert(0, f"{shared or '_'} = shared")
        self.lines.append(
            f"{name}.rest = ({self._constant(part._compiled('rest', 'plan, key, shared'))}, key, ({shared}))"
        )

    def _owner(self, value: Any) -> str:
        """A tuple of the objects in a value whose memory launches read."""
        found: dict[str, None] = {}
        seen: set[int] = set()

        def collect(part: Any) -> None:
            kind: Any = type(part)
            if kind is Symbol or kind is Spec or id(part) in seen:
                return
            seen.add(id(part))
            if kind is Later and not part.is_derived:
                if id(part) in self.written:
                    found[self.written[id(part)]] = None
            elif kind is Later:
                collect(part.arguments[0])
            elif not _is_atom(kind):
                for each in _parts(part):
                    collect(each)
            elif kind not in _PLAIN:
                found[self._constant(part)] = None

        collect(value)
        return f"({''.join(f'{each}, ' for each in found)})"

    def _value(self, value: Any) -> str:
        """An expression for a value of a plan."""
        kind: Any = type(value)
        if kind is Symbol:
            return self._number(value)
        if not self._is_symbolic(value):
            return self._constant(value)
        return self._new(value)

    def _constant(self, value: Any) -> str:
        if value is None or value is True or value is False or type(value) is int:
            return repr(value)
        if type(value) is tuple and not value:
            return "()"
        if id(value) not in self.constants:
            name = self.constants[id(value)] = self._name("c")
            self.known[name] = value
        return self.constants[id(value)]

    def _new(self, value: Any) -> str:
        """The name of an object that is made for each plan."""
        if id(value) not in self.written:
            self.alive.append(value)
            self.written[id(value)] = self._write(value)
        return self.written[id(value)]

    def _write(self, value: Any) -> str:
        kind: Any = type(value)
        name = self._name("p")
        if kind is Symbol:
            return self._number(value)
        if kind is Spec:
            text = self._spec(value)
        elif kind is Later:
            text = self._later(value)
        elif kind in (tuple, Size, list):
            text = self._sequence(value)
        elif kind is dict:
            items = ", ".join(f"{self._constant(k)}: {self._value(each)}" for k, each in value.items())
            text = f"{{{items}}}"
        elif isinstance(value, tuple):
            text = f"tuple.__new__({self._constant(kind)}, ({''.join(self._value(each) + ', ' for each in value)}))"
        elif kind is functools.partial:
            given = [value.func, *value.args]
            named = "".join(f", {k}={self._value(each)}" for k, each in value.keywords.items())
            text = f"{self._constant(functools.partial)}({', '.join(map(self._value, given))}{named})"
        elif kind is FunctionType:
            text = self._closure(value)
        elif kind.__new__ is not object.__new__:
            raise Untraceable(f"a plan contains a {kind.__module__}.{kind.__qualname__}")
        else:
            self.lines.append(f"{name} = new({self._constant(kind)})")
            for slot in self._slots_written(name, value):
                if hasattr(value, slot):
                    self.lines.append(f"{name}.{slot} = {self._value(getattr(value, slot))}")
            return name
        self.lines.append(f"{name} = {text}")
        return name

    def _slots_written(self, name: str, value: Any) -> list[str]:
        """The slots of an object that are set at once; notes the others."""
        kind: Any = type(value)
        if not issubclass(kind, Late):
            return list(_slots(kind))
        if kind.LATE:
            self.late.append((name, value))
        self.owning += [(name, slot, getattr(value, slot)) for slot in kind.OWNING]
        return [slot for slot in _slots(kind) if slot not in (*kind.LATE, *kind.OWNING, "rest")]

    def _later(self, value: Later) -> str:
        if value.function is getattr:
            return f"{self._value(value.arguments[0])}.{value.arguments[1]}"
        if value.function is operator.add:
            return " + ".join(map(self._value, value.arguments))
        if value.function is operator.getitem:
            return f"{self._value(value.arguments[0])}[{value.arguments[1]}]"
        return f"{self._constant(value.function)}({', '.join(map(self._value, value.arguments))})"

    def _sequence(self, value: Sequence[Any]) -> str:
        items = "".join(f"{self._value(each)}, " for each in value)
        if type(value) is Size:
            return f"tuple.__new__({self._constant(Size)}, ({items}))"
        return f"[{items}]" if type(value) is list else f"({items})"

    def _spec(self, spec: Spec) -> str:
        own = self._constant(family(spec.dtype, spec.device, spec.conj, spec.neg))
        parts = [own, self._like(spec.shape, "shape"), self._like(spec.stride, "stride")]
        parts += [
            self._value(spec.numel),
            repr(spec.is_contiguous),
            self._constant(known_kind(spec, self.trace)),
        ]
        return f"sized_spec({', '.join(parts)})"

    def _like(self, numbers: tuple, slot: str) -> str:
        """Sizes or strides; those of an operand if they are the same."""
        for name, spec in self.of_spec.values():
            own = getattr(spec, slot)
            if len(own) == len(numbers) and all(_same(a, b) for a, b in zip(own, numbers, strict=True)):
                return f"{name}.{slot}"
        return self._sequence(numbers)

    def _closure(self, function: FunctionType) -> str:
        cells = "".join(f"Cell({self._value(each.cell_contents)}), " for each in function.__closure__ or ())
        given = function.__code__, function.__globals__, function.__name__, function.__defaults__
        return f"{self._constant(FunctionType)}({', '.join(map(self._constant, given))}, ({cells}))"

    def _is_symbolic(self, value: Any) -> bool:
        """Whether an object is made for each plan: one that contains symbols, or that a plan may change after it was made.

        Raises: Untraceable for objects of which that is not known.
        """
        kind: Any = type(value)
        if kind is Symbol or kind is Later:
            return True
        if _is_atom(kind):
            return False
        found = self.contains.get(id(value))
        if found is None:
            self.alive.append(value)
            self.contains[id(value)] = False  # for objects that refer to themselves
            parts = [self._is_symbolic(each) for each in _parts(value)]
            found = self.contains[id(value)] = any(parts) or not isinstance(value, _LASTING)
        return found


class _LatePart(_Writer):
    """Writes the function that sets the late slots of an object. It reads the key again, and gets what both functions need."""

    def __init__(self, main: _Writer):
        super().__init__(main.with_sizes)
        self.main, self.shared = main, dict[str, None]()
        self.trace, self.known, self.constants = main.trace, main.known, main.constants
        self.contains, self.alive, self.of_spec, self.count = (
            main.contains,
            main.alive,
            main.of_spec,
            main.count,
        )
        self.lines = list(main.reading)
        self.names = {atom: name for atom, name in main.names.items() if main.trace.terms[atom] is None}
        self.written = {id(spec): name for name, spec in main.of_spec.values()}

    def _new(self, value: Any) -> str:
        """As that of the main function, which has made the objects that may not be made twice."""
        name = self.main.written.get(id(value))
        if name is None or type(value) is Later and value.is_derived or id(value) in self.written:
            return super()._new(value)
        if type(value) is Symbol:
            return self._number(value)
        self.shared[name] = None
        return name

    def _slots_written(self, name: str, value: Any) -> list[str]:
        kind: Any = type(value)
        return [slot for slot in _slots(kind) if slot != "rest"]

    def _name(self, letter: str) -> str:
        return f"{letter}_{super()._name('')}"


# The classes of objects that contain no sizes.
_ATOMS: set[type] = {type(None), bool, int, float, complex, str, bytes, type(...)}
_ATOMS |= {BuiltinFunctionType, CodeType, DType, ModuleType, device}

# Those whose objects own no memory that launches read.
_PLAIN = (type(None), bool, int, float, complex, str, type(...), CodeType, DType, ModuleType, device)

# Those whose objects nobody changes.
_LASTING = (Spec, tuple, functools.partial, FunctionType, MethodType)


@functools.cache
def _is_atom(kind: Any) -> bool:
    return issubclass(kind, type) or any(base in _ATOMS for base in kind.__mro__[:-1])


def add_atoms(*kinds: type) -> None:
    """State that objects of these classes contain no sizes of a call."""
    _ATOMS.update(kinds)
    _is_atom.cache_clear()


def _parts(value: Any) -> Sequence[Any]:
    """What an object consists of."""
    kind: Any = type(value)
    if kind is Spec:
        return (*value.shape, *value.stride)
    if isinstance(value, (tuple, list)):
        return value
    if kind is dict:
        return tuple(value.values())
    if kind is functools.partial:
        return (value.func, *value.args, *value.keywords.values())
    if kind is FunctionType:
        return [each.cell_contents for each in value.__closure__ or ()]
    if kind is MethodType:
        return (value.__self__,)
    if "__dict__" in dir(value) or not _slots(kind):
        raise Untraceable(f"a plan contains a {kind.__module__}.{kind.__qualname__}")
    return [getattr(value, slot) for slot in _slots(kind) if hasattr(value, slot)]


@functools.cache
def _slots(kind: Any) -> tuple[str, ...]:
    found: list[str] = []
    for base in reversed(kind.__mro__):
        own = vars(base).get("__slots__", ())
        found += (own,) if isinstance(own, str) else own
    return tuple(each for each in found if each != "__weakref__")


def _is_constant(name: str, kind: type, constant: str) -> str:
    """The condition that a static argument has the value of the trace."""
    if kind is bool or kind is type(None) or kind is type:
        return f"{name} is {constant}"
    same = f"type({name}) is type({constant}) and {name} == {constant}"
    if kind is float or kind is complex:
        return f"({name} is {constant} or {same})"  # NaN == NaN is False
    return same


def _same(a: Any, b: Any) -> bool:
    return polynomial_of(a) == polynomial_of(b)


def _row_major(sizes: Sequence[Any]) -> list[Any]:
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step = step * size if type(size) is Symbol or size > 1 else step
    return strides[::-1]


def _expected_strides(sizes: Sequence[Any], strides: Sequence[int]) -> list[Any]:
    """For each dim the stride that it has if the memory is dense, by the order of the strides."""
    expected: list[Any] = [None] * len(sizes)
    step: Any = 1
    for dim in sorted(range(len(sizes)), key=lambda dim: (strides[dim], -dim)):
        expected[dim] = step
        step = step * sizes[dim] if type(sizes[dim]) is Symbol else step
    return expected
