"""Arguments in the order of PyTorch's oldest versions: they work, and warn."""

import inspect
import re
import warnings

import pytest
import torch
from expressions import check, lines

import weft
from weft.core.warn import warn_once

A, B, M, S = "torch.ones(2)", "torch.tensor([3.0, 4.0])", "torch.ones(2, 2)", "torch.ones(1, 2, 2)"

CALLS = """
torch.add(A, 2, B)
A.add(2, B)
A.add_(2, B)
torch.add(A, 2, B, out=torch.empty(2))
torch.add(A, torch.tensor(2), B)
torch.add(A, 2, 3)
torch.add(A, 2.5, B)
torch.sub(A, 2, B)
A.sub(2, B)
A.sub_(2, B)
torch.addcmul(A, 2, B, B)
A.addcmul_(2, B, B)
torch.addcdiv(A, 2, B, B)
torch.addcdiv(A, 2, tensor1=B, tensor2=B)
A.addcdiv(2, B, B)
torch.addcmul(A, 2, B, B, out=torch.empty(2))
torch.addmm(2, M, 3, M, M)
torch.addmm(2, M, M, M)
torch.addmm(2, M, 3, mat1=M, mat2=M)
torch.addmm(2, M, 3, M, M, out=torch.empty(2, 2))
torch.addmm(torch.tensor(2), M, M, M)
M.addmm(2, 3, M, M)
M.addmm(2, M, M)
M.addmm_(2, 3, M, M)
torch.addmv(2, A, 3, M, B)
A.addmv(2, M, B)
A.addmv_(2, 3, M, B)
torch.addr(2, M, 3, A, B)
M.addr_(2, A, B)
torch.addbmm(2, M, 3, S, S)
M.addbmm_(2, S, S)
torch.baddbmm(2, S, 3, S, S)
S.baddbmm(2, 3, S, S)
S.baddbmm_(2, S, S)
torch.add(A, 2, B).requires_grad
torch.add(A.requires_grad_(), 2, B.requires_grad_())
"""

REFUSED = """
torch.add(2, A, B)  # raises
torch.add(A, A, B)  # raises
torch.add(A, B, 2)  # raises
torch.add(A, 2, B, alpha=3)  # raises
torch.add(A, "2", B)  # raises
torch.add(A, True, B)  # raises
torch.add(A.int(), 2.5, B.int())  # raises
torch.mul(A, 2, B)  # raises
torch.addmm(M, M, M, 2)  # raises
torch.addmm(2, M, 3, M)  # raises
torch.addmm(2, 3, M, M, M)  # raises
A.add(2)
torch.add(A, 2, alpha=3)
torch.addmm(M, M, M, beta=2, alpha=3)
"""


def written_out(expression):
    for name, value in (("A", A), ("B", B), ("M", M), ("S", S)):
        expression = "".join(value if part == name else part for part in re.split(r"\b", expression))
    return expression


@pytest.mark.parametrize("expression", lines(CALLS))
def test_older_orders_give_the_same(expression):
    check(written_out(expression))


@pytest.mark.parametrize("expression", lines(REFUSED))
def test_other_orders_are_refused(expression):
    check(written_out(expression))


def test_older_orders_warn():
    def warning(library):
        warn_once.forget()
        library.set_warn_always(True)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                library.addmm(2, library.eye(2), library.eye(2), library.eye(2))
        finally:
            library.set_warn_always(False)
        (found,) = caught
        return found.category, str(found.message).splitlines()[0], found.filename

    assert warning(weft) == warning(torch)


def test_signatures_show_the_order_of_today():
    assert str(inspect.signature(weft.add)) == "(input, other, *, alpha=1, out=None)"
