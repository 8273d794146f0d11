"""Determinants, inverses and functions of matrices against PyTorch."""

import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import BATCHES, DTYPES, both, close, definite, random
from oracle import check, to_torch, to_weft

import weft

SINGULAR = torch.stack([torch.eye(3), torch.zeros(3, 3)])


@settings(max_examples=40, deadline=None)
@given(BATCHES, DTYPES, st.integers(0, 5))
def test_determinants_and_inverses(batch, dtype, n):
    a = random(*batch, n, n, dtype=dtype)
    for name in ("linalg.det", "linalg.inv", "inverse", "logdet", "linalg.matrix_exp"):
        close(*both(name, a))
    for got, expected in zip(*both("linalg.slogdet", a), strict=True):
        close(got, expected)


@pytest.mark.parametrize(
    "options", [{}, {"atol": 1.0}, {"rtol": 0.5}, {"atol": 0.1, "rtol": 0.2}, {"hermitian": True}]
)
def test_pinv_and_rank(options):
    a = definite(2, 3, 3) if options.get("hermitian") else random(2, 4, 3)
    close(*both("linalg.pinv", a, **options))
    close(*both("linalg.matrix_rank", a, **options))


@pytest.mark.parametrize("n", (-3, -1, 0, 1, 2, 5))
def test_matrix_power(n):
    close(*both("linalg.matrix_power", random(2, 3, 3), n))


@pytest.mark.parametrize("scale", (0.01, 1, 30))
@pytest.mark.parametrize("dtype", (torch.float32, torch.float64, torch.complex64))
def test_matrix_exp(scale, dtype):
    a = torch.stack([random(4, 4, dtype=dtype) * scale, random(4, 4, dtype=dtype) * 0.1])
    exact = torch.linalg.matrix_exp(a.to(torch.complex128))
    got = to_torch(weft.linalg.matrix_exp(to_weft(a))).to(torch.complex128)
    bound = (1e-5 if dtype in (torch.float32, torch.complex64) else 1e-11) * exact.abs().amax(
        (-2, -1), keepdim=True
    )
    assert ((got - exact).abs() <= bound * max(scale, 1)).all()


def test_multi_dot_in_the_cheapest_order():
    sizes = (10, 100, 5, 50, 2)
    tensors = [random(*pair) for pair in zip(sizes, sizes[1:], strict=False)]
    got = weft.linalg.multi_dot([to_weft(t) for t in tensors])
    close(to_torch(got), torch.linalg.multi_dot(tensors))
    vectors = [random(3), random(3, 4), random(4)]
    close(to_torch(weft.linalg.multi_dot([to_weft(t) for t in vectors])), torch.linalg.multi_dot(vectors))


def test_tensors_as_matrices():
    close(*both("linalg.tensorinv", random(4, 6, 8, 3), 2))
    close(*both("linalg.tensorinv", random(24, 8, 3), 1))
    close(*both("linalg.tensorsolve", random(2, 3, 6), random(2, 3)))
    close(*both("linalg.tensorsolve", random(6, 2, 3), random(2, 3), dims=(0,)))


@pytest.mark.refuses(1)
def test_vander():
    check("linalg.vander", random(2, 3), N=4)
    check("linalg.vander", torch.arange(3))
    for options in ({}, {"N": 5}, {"increasing": True}, {"N": 0}, {"N": 1}):
        check("vander", random(3), **options)
    check("linalg.vander", random(3), N=1)


@pytest.mark.refuses({"dtype0": 1, "dtype1": 1, "dtype2": 1, "dtype3": 4})
@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16, torch.complex64, torch.int64))
def test_vecdot(dtype):
    a, b = (random(3, 4, seed=seed).mul(5).to(dtype) for seed in (0, 1))
    check("linalg.vecdot", a, b)
    check("linalg.vecdot", a.t(), b.t(), dim=0)
    check("linalg.vecdot", a, b[0])
    check("linalg.vecdot", a, b.double())


def _raised(function, *args, **options):
    with pytest.raises(RuntimeError) as error:
        function(*args, **options)
    return type(error.value).__name__, str(error.value).splitlines()[0]


CALLS = [
    lambda t: t.linalg.inv(t.zeros(2, 2)),
    lambda t: t.linalg.solve(t.zeros(2, 2), t.ones(2, 2)),
    lambda t: t.linalg.solve(t.stack([t.eye(2), t.zeros(2, 2)]), t.ones(2, 2, 1)),
    lambda t: t.linalg.solve(t.eye(2), t.ones(3, 1)),
    lambda t: t.linalg.solve(t.eye(2), t.ones(2, 1).double()),
    lambda t: t.linalg.inv(t.stack([t.eye(2), t.zeros(2, 2)])),
    lambda t: t.linalg.inv_ex(t.zeros(2, 2), check_errors=True),
    lambda t: t.linalg.cholesky(t.stack([t.eye(2), -t.eye(2)])),
    lambda t: t.linalg.cholesky(t.eye(2) * -1),
    lambda t: t.linalg.lu_factor(t.zeros(2, 2)),
    lambda t: t.linalg.lu(t.eye(2), pivot=False),
    lambda t: t.linalg.qr(t.eye(2), "what"),
    lambda t: t.linalg.lstsq(t.eye(2), t.eye(2), driver="what"),
    lambda t: t.linalg.cond(t.eye(2), 3),
    lambda t: t.linalg.norm(t.ones(2, 2, 2), 2),
    lambda t: t.linalg.matrix_norm(t.eye(2), 0),
    lambda t: t.linalg.matrix_norm(t.eye(2), dim=(1, 1)),
    lambda t: t.linalg.vector_norm(t.ones(0), float("inf")),
    lambda t: t.linalg.vector_norm(t.ones(0, 3), -1, dim=0),
    lambda t: t.linalg.matrix_power(t.eye(2).long(), -1),
    lambda t: t.linalg.eigh(t.eye(2), UPLO="X"),
]


@pytest.mark.parametrize("call", CALLS)
def test_messages(call):
    assert _raised(call, weft) == _raised(call, torch)


def test_infos_instead_of_errors():
    for name in ("linalg.inv_ex", "linalg.lu_factor_ex"):
        ours, theirs = both(name, SINGULAR)
        assert ours[-1].tolist() == theirs[-1].tolist() == [0, 1]
    (_, info), _ = both("linalg.solve_ex", SINGULAR, torch.ones(2, 3, 1))
    assert info.tolist() == [0, 1]


def test_the_module_has_the_names_of_torch():
    names = {name for name in dir(torch.linalg) if not name.startswith("_")} - {"common_notes"}
    assert names <= set(dir(weft.linalg))


POWERS_AT_THE_END_OF_THE_RANGE = """
torch.linalg.matrix_power(torch.eye(2), 2**63 - 1)
torch.linalg.matrix_power(torch.eye(2), 2**63)  # raises
torch.matrix_power(torch.eye(2), -(2**63) - 1)  # raises
"""


@pytest.mark.parametrize("expression", lines(POWERS_AT_THE_END_OF_THE_RANGE))
def test_powers_at_the_end_of_the_range(expression):
    """A power is a number of 64 bits."""
    check_expression(expression)


UNFIT = """
torch.linalg.vecdot(torch.ones(1), torch.ones(3))  # raises
torch.linalg.vecdot(torch.ones(3), torch.ones(2, 3))
torch.linalg.tensorinv(torch.tensor(1.0), ind=2)  # raises
torch.linalg.pinv(torch.ones(0, 0), rtol="a")  # raises
torch.linalg.pinv(torch.ones(2, 2), rtol="a")  # raises
torch.linalg.matrix_rank(torch.ones(2, 2), rtol="a")  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
