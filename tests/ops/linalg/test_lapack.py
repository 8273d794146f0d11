"""What LAPACK trusts is checked before it is called: NaN and infinities, pivots, sizes."""

import subprocess
import sys

import numpy as np
import pytest
import torch

import weft
from weft.ops.linalg import lapack

# ---- In a process of its own, with a time limit: without the checks these calls hang, or damage the heap ---------------

_PROLOGUE = """
import math
import weft as torch
nan, inf, int32 = math.nan, math.inf, torch.int32
linalg, ones, eye, zeros, tensor = torch.linalg, torch.ones, torch.eye, torch.zeros, torch.tensor

def spoiled(value, *shape, dtype=torch.float32):
    a = torch.rand(*shape, dtype=dtype) + torch.eye(*shape[-2:], dtype=dtype)
    a[..., 0, 0] = value
    return a

def pivots(*values):
    return tensor(values, dtype=int32)

def gradient(function, input, *args):
    function(input.requires_grad_(), *args).abs().sum().backward()
    return input.grad

def outcome(line):
    try:
        result = eval(line)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "NaN" if result.isnan().all() else str(result.tolist() if result.numel() < 9 else tuple(result.shape))
"""


def outcomes(lines):
    program = f"{_PROLOGUE}\nfor line in {lines!r}: print(outcome(line).splitlines()[0], flush=True)"
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    printed = child.stdout.splitlines()
    assert child.returncode == 0, (
        f"{lines[len(printed)] if len(printed) < len(lines) else 'exit'}: {child.stderr[-2000:]}"
    )
    return dict(zip(lines, printed, strict=True))


SVD = "_LinAlgError: linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values."
EIGH = (
    "_LinAlgError: linalg.eigh: The algorithm failed to converge because the input matrix is ill-conditioned"
)
EIG = "input tensor should not contain infs or NaNs"
ROWS = "ones(3, 50, dtype=torch.float64)"
HOSTILE = {
    # singular values
    "linalg.svd(spoiled(inf, 3, 50))": SVD,
    "linalg.svd(spoiled(inf, 3, 50, dtype=torch.float64))": SVD,
    "linalg.svd(spoiled(nan, 50, 3, dtype=torch.complex64))": SVD,
    "linalg.svd(spoiled(-inf, 5, 3, 3))": SVD.replace("The", "(Batch element 0): The"),
    "linalg.pinv(spoiled(inf, 3, 50))": SVD,
    "torch.pinverse(spoiled(inf, 3, 50))": SVD,
    "torch.svd(spoiled(nan, 3, 50))[1]": SVD,
    "linalg.svdvals(spoiled(nan, 3, 50))": SVD,
    "linalg.svdvals(spoiled(inf, 3, 50))": "NaN",
    "linalg.svdvals(torch.stack((eye(2), spoiled(inf, 2, 2))))[0]": "[1.0, 1.0]",
    "linalg.svdvals(spoiled(inf, 3, 50).requires_grad_())": "NaN",
    "linalg.cond(zeros(2, 2, requires_grad=True), 'nuc')": "NaN",
    "linalg.cond(torch.stack((eye(2), zeros(2, 2))), 1)": "[1.0, inf]",
    "linalg.matrix_norm(spoiled(inf, 3, 50), 'nuc')": "NaN",
    "linalg.matrix_norm(spoiled(inf, 3, 50), 2)": "NaN",
    "linalg.cond(spoiled(inf, 3, 50))": "NaN",
    "linalg.matrix_rank(spoiled(inf, 3, 50))": "0",
    "linalg.matrix_rank(spoiled(nan, 3, 50))": SVD,
    "torch.svd_lowrank(spoiled(nan, 9, 9))[1]": SVD,
    # eigenvalues
    "linalg.eigh(spoiled(nan, 5, 5))": EIGH,
    "linalg.eigh(spoiled(inf, 2, 2))": EIGH,
    "linalg.eigvalsh(spoiled(inf, 30, 30, dtype=torch.complex128))": EIGH,
    "linalg.eigvalsh(tensor([[2.0, nan], [0, 1]]))": "[1.0, 2.0]",
    "linalg.eigvalsh(tensor([[2.0, 0], [nan, 1]]), 'U')": "[1.0, 2.0]",
    "linalg.pinv(spoiled(nan, 4, 4), hermitian=True)": EIGH,
    "linalg.eig(spoiled(inf, 4, 4))": EIG,
    "linalg.eigvals(spoiled(nan, 4, 4))": EIG,
    # least squares
    **{
        f"linalg.lstsq(spoiled(nan, 5, 3), ones(5, 1), driver='{driver}')[0]": "RuntimeError: torch.linalg.lstsq: input contains NaN"
        for driver in ("gels", "gelsy", "gelsd", "gelss")
    },
    "linalg.lstsq(ones(5, 3), spoiled(nan, 5, 1))[0]": "RuntimeError: torch.linalg.lstsq: other contains NaN",
    "linalg.lstsq(spoiled(inf, 5, 3), ones(5, 1), driver='gelsd')[0]": "RuntimeError: torch.linalg.lstsq: input contains inf",
    "linalg.lstsq(spoiled(inf, 5, 3), ones(5, 1), driver='gelss')[0]": "RuntimeError: torch.linalg.lstsq: input contains inf",
    "linalg.lstsq(ones(3, 2), ones(3, 0), driver='gelsd')[3]": "[0.0, 0.0]",
    "linalg.lstsq(ones(3, 0), ones(3, 2), driver='gelsd')[1]": "[3.0, 3.0]",
    # pivots
    "linalg.ldl_solve(eye(5), pivots(-1, -1, -1, -1, -1), ones(5, 1))": "RuntimeError: Negative pivots",
    "linalg.ldl_solve(eye(4), pivots(-1, 2, 3, 4), ones(4, 1))": "RuntimeError: Negative pivots",
    "linalg.ldl_solve(eye(4), pivots(1, 2, 3, -4), ones(4, 1))": "RuntimeError: Negative pivots",
    "linalg.ldl_solve(eye(2).expand(2, 2, 2), tensor([[1, 2], [1, -2]], dtype=int32), ones(2, 1))": "RuntimeError: Negative pivots",
    "linalg.ldl_solve(eye(4), pivots(1, 2, 0, 4), ones(4, 1))": "RuntimeError: Pivots given to ldl_solve",
    "linalg.ldl_solve(eye(4), pivots(1, 2, 5, 4), ones(4, 1))": "RuntimeError: Pivots given to ldl_solve",
    "linalg.ldl_solve(eye(4), pivots(1, 2, -5, -5), ones(4, 1))": "RuntimeError: Pivots given to ldl_solve",
    "linalg.ldl_solve(eye(2), pivots(1, 2), ones(2, 1))": "[[1.0], [1.0]]",
    "linalg.lu_solve(eye(2), pivots(1, 3), ones(2, 1))": "RuntimeError: Pivots given to lu_solve",
    "linalg.lu_solve(eye(2), pivots(0, 2), ones(2, 1))": "RuntimeError: Pivots given to lu_solve",
    "torch.lu_unpack(eye(3), pivots(1, 2, 4))": "RuntimeError: pivots passed to lu_unpack",
    "torch.lu_unpack(eye(3), pivots(1, 2))": "RuntimeError: pivots passed to lu_unpack",
    "torch.lu_unpack(eye(3), tensor(1, dtype=int32))": "RuntimeError: pivots passed to lu_unpack",
    "torch.lu_unpack(ones(3), pivots(1))": "RuntimeError: torch.lu_unpack: Expected tensor with 2 or more dimensions",
    "torch.lu_unpack(eye(2), pivots(2, 2, 2))[0]": "[[0.0, 1.0], [1.0, 0.0]]",
    "torch.lu_unpack(eye(2).expand(3, 2, 2), pivots(1, 2))[0]": "(3, 2, 2)",
    "torch.ormqr(ones(3, 2), ones(1), ones(3, 3))": "RuntimeError: torch.ormqr: tau.shape[-1] must be equal to min",
    "linalg.lu_solve(torch.ones(40, 1, 1) * tensor([[2.0, 1], [0.5, 1]]), pivots(1, 1).expand(40, 2), tensor([[1.0], [2]]))[0]":
        "[[1.0], [0.0]]",  # rows 1 and 2 swapped by the second pivot, as LAPACK does
    # sizes without elements: nothing to do, however large
    "linalg.svdvals(ones(0, 2**40))": "NaN",  # all of no elements
    "linalg.svd(ones(0, 2**40))": "RuntimeError: Storage size calculation overflowed",
    "linalg.svd(ones(0, 2**40), full_matrices=False)[2].shape.numel() * ones(0)": "NaN",
    "linalg.eigvalsh(ones(2**40, 0, 0))": "NaN",
    "linalg.eigvals(ones(2**40, 0, 0))": "NaN",
    "linalg.eigh(ones(2**40, 0, 0))[0]": "NaN",
    "torch.fft.fftfreq(2**62)": "RuntimeError: Storage size calculation overflowed",
    "torch.fft.fftfreq(-1)": "RuntimeError: Trying to create tensor with negative dimension",
    "torch.fft.hfft(ones(40, 7, 0), 2**62, 0)": "RuntimeError: Storage size calculation overflowed",
    "torch.fft.ifft2(ones(0, 3, 0), (2**40, 2**40), (0, 1))": "RuntimeError: Storage size calculation overflowed",
    "gradient(torch.fft.ihfft, ones(0, 1, 1), 2**31, 1)": "NaN",
    # others
    "linalg.slogdet(torch.full((3, 3), nan))[0]": "0.0",
    "linalg.slogdet(torch.full((1300, 3, 3), inf))[0][0]": "0.0",
    "linalg.cholesky(zeros(1300, 1, 1))": "_LinAlgError: linalg.cholesky: (Batch element 0)",
    "linalg.cholesky(ones(1300, 2, 2))": "_LinAlgError: linalg.cholesky: (Batch element 0)",
    "linalg.vander(ones(3, 1))": "RuntimeError: N must be greater than 1",
    "linalg.matrix_exp(tensor([[-inf]]))": "[[0.0]]",
    "linalg.matrix_exp(spoiled(nan, 3, 3))": "NaN",
    "linalg.matrix_exp(spoiled(inf, 3, 3))": "NaN",
    "torch.cholesky_inverse(zeros(2, 2))": "_LinAlgError: cholesky_inverse: The diagonal element 1 is zero",
    "linalg.inv_ex(ones(3, 3))[0].isfinite().any()": "False",
    "linalg.multi_dot([eye(2)] * 400)": "[[1.0, 0.0], [0.0, 1.0]]",
    "torch.lobpcg(eye(9), k=-1)": "RuntimeError: lobpcg: the number of eigenpairs",
}  # fmt: skip


def test_hostile_arguments_raise_or_give_nan():
    for line, outcome in outcomes(list(HOSTILE)).items():
        wanted = HOSTILE[line]
        assert outcome == wanted or (wanted in outcome if "Error" in outcome else False), f"{line}: {outcome}"


def test_stacks_of_empty_matrices():
    for name in ("lu_factor_ex", "lu", "qr"):
        theirs = getattr(torch.linalg, name)(torch.ones(40, 3, 0))
        ours = getattr(weft.linalg, name)(weft.ones(40, 3, 0))
        assert [tuple(t.shape) for t in ours] == [tuple(t.shape) for t in theirs]


@pytest.mark.parametrize("dtype", ("f4", "f8", "c8", "c16"))
def test_all_finite(dtype):
    largest = np.finfo(dtype).max
    for shape in ((3, 3), (70, 70), (4, 2, 2), (0, 3)):
        a = np.full(shape, largest, dtype)
        assert lapack.all_finite(a) and lapack.all_finite(a.T)
        for value in (np.inf, -np.inf, np.nan) if a.size else ():
            a.flat[-1] = value
            assert not lapack.all_finite(a) and not lapack.all_finite(a.T)
    if dtype.startswith("c"):
        assert not lapack.all_finite(np.array([[complex(0, np.inf)]], dtype))
