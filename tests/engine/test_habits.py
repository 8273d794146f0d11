"""Results that are usually read alone are computed at once, with the same bits, until one of them is fused."""

import pytest

import weft as torch
from weft.core.dtype import when_plans_expire
from weft.core.promised import Promised
from weft.core.spec import contiguous_spec
from weft.engine import defer, fusion, habits
from weft.engine.habits import MOST_BYTES, TURNS, USUAL

N = 3001  # no other test adds tensors of this size


@pytest.fixture(autouse=True)
def deferred(monkeypatch):
    torch.synchronize()
    monkeypatch.setattr(defer, "LEAST_ELEMENTS", 1)
    monkeypatch.setattr(fusion, "in_background", False)
    for forget in when_plans_expire:
        forget()
    yield
    torch.synchronize()
    for forget in when_plans_expire:
        forget()


def waits(tensor):
    return type(tensor._storage) is Promised


def form_habit(call):
    """Read so many results alone that the next ones are computed at once."""
    for _ in range(USUAL):
        result = call()
        assert waits(result)
        torch.synchronize()


CALLS = {
    "unary": lambda a, b: -a,
    "binary": lambda a, b: a + b,
    "number": lambda a, b: a * 2.5,
    "reflected": lambda a, b: 1 - a,
    "shortcut": lambda a, b: torch.clamp(a, -1, 1),
    "recorded": lambda a, b: a.detach().requires_grad_() * b,
}


@pytest.mark.parametrize("name", CALLS)
def test_results_that_are_read_alone_are_computed_at_once(name):
    a, b = torch.randn(N), torch.randn(N)
    call = CALLS[name]
    with torch.eager():
        expected = call(a, b)
    form_habit(lambda: call(a, b))
    for _ in range(2):
        for _ in range(TURNS):
            result = call(a, b)
            assert not waits(result)
            assert torch.equal(result, expected)
        again = call(a, b)
        assert waits(again)
        torch.synchronize()  # `equal` would be fused with it
        assert torch.equal(again, expected)


def test_a_result_that_is_fused_ends_the_habit():
    a = torch.randn(N)
    form_habit(lambda: -a)
    for _ in range(TURNS):
        assert not waits(-a)
    result = torch.exp(-a)  # the call that is tried again
    torch.synchronize()
    assert waits(-a)
    with torch.eager():
        assert torch.equal(result, torch.exp(-a))


def test_a_reduction_of_what_waits_ends_the_habit():
    a = torch.randn(N)
    form_habit(lambda: -a)
    for _ in range(TURNS):
        assert not waits(-a)
    (-a).sum()
    assert waits(-a)


def test_an_operand_that_waits_is_fused_despite_the_habit():
    a = torch.randn(N)
    form_habit(lambda: torch.exp(a))
    negative = -a
    assert waits(negative)
    assert waits(torch.exp(negative))


def test_an_operand_that_others_wait_for_is_no_obstacle():
    a = torch.randn(N)
    form_habit(lambda: -a)
    other = torch.exp(a)
    assert waits(other)
    assert not waits(-a)
    a.zero_()
    assert torch.equal(-a, torch.zeros(N))
    assert not torch.equal(other, torch.ones(N))


def test_results_that_nobody_reads_form_no_habit():
    a = torch.randn(N)
    for _ in range(2 * USUAL):
        assert waits(-a)


def test_large_results_form_no_habit():
    at_most = contiguous_spec((MOST_BYTES,), torch.uint8, torch.device("cpu"))
    assert habits.habit_for(at_most) is not None
    more = contiguous_spec((MOST_BYTES + 1,), torch.uint8, torch.device("cpu"))
    assert habits.habit_for(more) is None
