import functools
import sys

import pytest

import weft as torch
from weft.core import plans
from weft.engine import defer, fusion


def called(run):
    """The names of the builtin functions that Python calls."""
    names = []
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, function: event == "c_call" and names.append(function.__name__))
    try:
        run()
    finally:
        sys.setprofile(before)
    return names


@pytest.fixture
def deferred(monkeypatch):
    """Results of this size are deferred, whatever the environment says, and a chain has its kernel at once."""
    monkeypatch.setattr(defer, "LEAST_ELEMENTS", 1000)
    monkeypatch.setattr(defer, "has_threads", lambda: False)  # pytest may have threads
    monkeypatch.setattr(fusion, "in_background", False)
    with plans.planned_anew():
        yield


CALLS = {
    "add": lambda x: x + x,
    "exp": lambda x: x.exp(),
    "sum": lambda x: x.sum(1),
    "matmul": lambda x: x @ x,
    "softmax": lambda x: x.softmax(1),
    "cumsum": lambda x: x.cumsum(0),
    "index": lambda x: x[[2, 0, 1]],
    "linalg_cholesky_ex": lambda x: torch.linalg.cholesky(x @ x.t() + 9 * torch.eye(len(x))),
    "normal": lambda x: torch.randn(3),
}


@pytest.mark.parametrize("name", CALLS)
def test_kernels_have_the_name_of_their_operation(name):
    with torch.eager():
        # Four sizes by the planning code, the others by a template, for which nothing is planned any more.
        for size in range(3, 12):
            x = torch.rand(size, size)
            names = called(functools.partial(CALLS[name], x))
            assert name in names and "kernel" not in names


def test_operations_with_one_machine_code_have_two_names():
    x = torch.rand(5, 7)
    with torch.eager():
        names = [called(lambda: torch.mul(x, x)), called(lambda: torch.square(x))]
    assert ["mul" in names[0], "square" in names[1]] == [True] * 2


def test_shared_kernels_have_names():
    x = torch.rand(1200, 1200)
    with torch.eager():
        assert "sin" in called(lambda: x.sin())


def test_a_deferred_chain_has_the_names_of_its_operations(deferred):
    x = torch.rand(1200, 1200)
    assert "mul_exp" in called(lambda: ((x * 2).exp())[0, 0].item())
    assert "mul_exp_sum" in called(lambda: (x * 2).exp().sum().item())
    assert "mul_mul_mul_mul_mul_mul_mul_mul_and_2_more" in called(lambda: _product(x, 10)[0, 0].item())


def _product(x, times):
    for _ in range(times):
        x = x * 1.5
    return x


def test_a_plan_of_another_operation_keeps_its_name():
    with torch.eager(), plans.planned_anew():
        names = called(lambda: torch.rand(8, 6).t().contiguous() @ torch.rand(8, 3))
    assert {"clone", "matmul"} <= set(names)
