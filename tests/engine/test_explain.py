import re
import textwrap

import pytest

import weft as torch
from weft.core.dtype import when_plans_expire
from weft.engine import defer


@pytest.fixture(autouse=True)
def deferred(monkeypatch):
    torch.synchronize()
    monkeypatch.setattr(defer, "LEAST_ELEMENTS", 1)
    for forget in when_plans_expire:
        forget()
    yield
    torch.synchronize()
    for forget in when_plans_expire:
        forget()


def chain(x, y):
    product = x * y
    return (product + 1).exp(), product.sum().item()


def printed(capsys):
    return re.sub(r"\d+\.\d\d ms", "TIME", re.sub(r"py:\d+", "py:LINE", capsys.readouterr().out))


def test_kernels_their_operations_and_who_asked(capsys):
    x, y = torch.ones(1000, 1000), torch.ones(1000, 1000)
    torch.explain(chain, x, y)
    assert printed(capsys) == textwrap.dedent("""\
        1. 1 operation and sum in one kernel, 0 results stored, 8.0 MB moved (least 8.0), TIME
             test_explain.py:LINE  product = x * y
                 mul
           asked for by sum: test_explain.py:LINE  return (product + 1).exp(), product.sum().item()
        2. 3 operations in one kernel, 1 result stored, 12.0 MB moved (least 12.0), TIME
             test_explain.py:LINE  product = x * y
                 mul
             test_explain.py:LINE  return (product + 1).exp(), product.sum().item()
                 add, exp
           asked for at the end of the function
        """)


def test_without_kernels_of_their_own_operations_move_more_bytes(capsys, monkeypatch):
    monkeypatch.setattr(defer.fusion, "kernel_of", lambda key, build: None)
    monkeypatch.setattr(defer, "kernel_of", lambda key, build: None)
    torch.explain(lambda x: (x * 2 + 1).exp().tolist(), torch.ones(500, 500))
    head, *_ = printed(capsys).splitlines()
    assert head == "1. 3 operations in 3 kernels, 1 result stored, 6.0 MB moved (least 2.0), TIME"


def test_work_that_is_not_deferred_does_not_appear(capsys):
    torch.explain(lambda x: (x @ x).tolist(), torch.ones(2, 2))
    assert (
        capsys.readouterr().out == "nothing was deferred: the operations are small, or need bytes at once\n"
    )


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="'function' .* must be callable, not int"):
        torch.explain(3)
