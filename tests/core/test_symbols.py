"""Symbols: what is decided for all sizes, what becomes a guard, and what has no answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.symbols import Later, Symbol, Trace, Untraceable, as_float, per_plan, polynomial_of, traces


@pytest.fixture
def trace():
    made = Trace()
    traces.append(made)
    yield made
    traces.remove(made)


def test_arithmetic_is_that_of_polynomials(trace):
    a, b = trace.atom(5), trace.atom(7)
    assert type(a * b) is Symbol
    assert a * b - b * a == 0 and type(a - a) is int
    assert (a + b) * (a - b) == a * a - b * b
    assert trace.value_of(polynomial_of(2 * a + b - 1)) == 16
    assert not trace.guards


def test_lower_bounds_decide_comparisons(trace):
    a, b = trace.atom(5), trace.atom(7)
    assert a >= 2 and a > 1 and a != 0 and a * b >= b and -a < 0
    assert not a == 1 and not a * b <= b
    assert not trace.guards


def test_other_comparisons_are_guards(trace):
    a, b = trace.atom(5), trace.atom(7)
    assert a < b and a != b and not a >= b
    assert [(each.polynomial, each.relation) for each in trace.needed_guards()] == [
        ({(1,): 1, (0,): -1, (): -1}, ">="),
    ]
    assert a * 3 == 15
    assert trace.guards[-1].relation == "=="


def test_exact_divisions_stay_polynomials_and_others_are_atoms(trace):
    a, b = trace.atom(6), trace.atom(4)
    assert (a * b * 4) // (2 * a) == 2 * b and (a * b) % b == 0
    assert not trace.guards
    half = a // b
    assert trace.value_of(polynomial_of(half)) == 1 and half is a // b
    assert trace.terms[-1] == ("//", a, b)


@pytest.mark.parametrize(
    "use", [hash, int, float, lambda a: [0] * a, lambda a: a / 2, lambda a: a < 0.5, str, lambda a: f"{a}"]
)
def test_what_needs_the_value_is_refused(trace, use):
    with pytest.raises(Untraceable):
        use(trace.atom(5))


def test_a_static_argument_may_turn_out_to_be_no_size(trace):
    assert [10, 20, 30][trace.atom(2, static=True)] == 30
    assert trace.guards[-1].relation == "=="


def test_work_per_plan_is_noted(trace):
    assert as_float(3) == 3.0
    noted = as_float(trace.atom(5))
    assert type(noted) is Later and noted.function is float
    for use in (bool, list, len, hash, lambda later: later == 5.0):
        with pytest.raises((Untraceable, TypeError)):
            use(noted)
    assert type(per_plan(max)(noted, 1.0)) is Later


_atoms = st.integers(2, 40)
_expressions = st.recursive(
    st.sampled_from(["a", "b", "c"]) | st.integers(0, 9).map(str),
    lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(
        lambda parts: "({} {} {})".format(*parts)
    ),
    max_leaves=8,
)


@given(
    _expressions, _expressions, st.sampled_from(["<", "<=", "==", "!=", ">", ">="]), _atoms, _atoms, _atoms
)
def test_symbols_give_what_ints_give(left, right, relation, a, b, c):
    text = f"{left} {relation} {right}"
    try:
        expected = eval(text, {"a": a, "b": b, "c": c})
    except ZeroDivisionError:
        return
    trace = Trace()
    symbols = {name: trace.atom(value) for name, value in zip("abc", (a, b, c))}
    try:
        assert eval(text, dict(symbols)) is expected
    except ZeroDivisionError:  # of atoms whose quotient is 0
        return
    for guard in trace.guards:
        value = trace.value_of(guard.polynomial)
        assert {">=": value >= 0, "==": value == 0, "!=": value != 0}[guard.relation]
