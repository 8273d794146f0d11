"""A short run of the hunt with random programs, and that it would find something."""

import math
import os

import pytest
import torch
from hunts import chains
from hunts.chain_accepted import LIST, accepted
from hunts.chain_comparison import settle_order
from hunts.chain_statements import Literal, Ref, Row

import weft

# CHAINS=5000 is what continuous integration runs; a quick look at a change needs fewer.
PROGRAMS = int(os.environ.get("CHAINS", "400"))


def test_random_programs_do_the_same_as_pytorch():
    tally = chains.run_all(range(PROGRAMS), workers=2, narrow=True)
    assert tally.programs == PROGRAMS
    assert not tally.failures, "\n".join(text for _, text, _ in tally.failures.values())


@pytest.fixture
def broken_add(monkeypatch):
    """Additions in place that add one too many."""
    add = weft.Tensor.add_

    def broken(self, other):
        return add(self, other + 1)

    monkeypatch.setattr(weft.Tensor, "add_", broken)


def test_a_difference_is_found_shrunk_and_printed(broken_add):
    values = Literal(torch.tensor([1.0, 2.0]))
    program = chains.Program(inputs={0: (values, False), 1: (values, False)})
    for number, (source, arguments) in enumerate(
        [("a.exp()", [Ref(1)]), ("a.t()", [Ref(0)]), ("a.add_(x)", [Ref(0), 3.0]), ("a.neg()", [Ref(0)])]
    ):
        program.statements.append(chains.Statement(Row(source, "in place"), arguments, [number + 2]))
    program.statements[2].results = [0]
    found = chains.rerun(program)
    assert found.kind == "values" and found.source == "a.add_(x)" and accepted(found) is None
    small = chains.shrink(found)
    assert [each.row.source for each in small.program.statements] == ["a.add_(x)"]
    assert list(small.program.inputs) == [0]
    text = chains.script(small.program)
    scope = {}
    exec(text.replace("weft as L", "torch as L"), scope)
    assert scope["t0"].tolist() == [4.0, 5.0]


def test_programs_follow_from_their_seeds():
    scripts = [[chains.script(chains.generate(seed)[1]) for seed in range(20)] for _ in range(2)]
    assert scripts[0] == scripts[1]


def test_a_crash_is_told():
    worker = chains.Worker.__new__(chains.Worker)
    worker.seeds, worker.seen, worker.since = range(5), 3, 0.0

    class Dead:
        exitcode = -11

        def is_alive(self):
            return False

    class At:
        value = 3

    worker.process, worker.at = Dead(), At()
    assert "exit code -11" in worker.trouble(10.0)


def test_complex_results_are_compared_whatever_errno_says():
    """abs() of a Python complex with NaN raises OverflowError if errno is ERANGE (CPython 3.11)."""
    nan = complex(float("nan"), 1.0)
    math.exp(-800)  # underflows, which leaves ERANGE
    assert chains._plain_same(nan, nan)


def test_every_accepted_difference_has_a_reason():
    assert all(each.reason.endswith(".") for each in LIST)
    assert len({each.reason for each in LIST}) == len(LIST)


def test_equal_elements_may_be_sorted_in_any_order():
    given = torch.tensor([2.0, 1.0, 2.0, float("nan"), float("nan")])
    theirs = given.sort()
    for order, fits in (
        ([1, 2, 0, 4, 3], True),
        ([1, 0, 2, 3, 4], True),
        ([0, 1, 2, 3, 4], False),
        ([1, 0, 0, 3, 4], False),
    ):
        mine = weft.tensor([1.0, 2.0, 2.0, float("nan"), float("nan")]), weft.tensor(order)
        settle_order(given, -1, theirs, mine)
        assert (mine[1].tolist() == theirs[1].tolist()) is fits
