"""First and second derivatives of products, linear algebra and Fourier transforms against PyTorch."""

import warnings

import numpy as np
import pytest
import torch
from oracle import to_torch, to_weft

import weft

REAL, COMPLEX = torch.float64, torch.complex128
BOTH = (REAL, COMPLEX)


def general(*sizes):
    return lambda dtype: torch.randn(*sizes, dtype=dtype)


def definite(*sizes):
    def make(dtype):
        a = torch.randn(*sizes, dtype=dtype)
        return a @ a.mH + sizes[-1] * torch.eye(sizes[-1], dtype=dtype)

    return make


def triangle(*sizes):
    """Lower triangular, with a real diagonal, as Cholesky factors have it."""
    identity = torch.eye(sizes[-1])
    return lambda dtype: (
        torch.randn(*sizes, dtype=dtype).tril(-1) + 3 * identity + torch.rand(sizes) * identity
    )


def apart(*sizes):
    """Matrices whose eigenvalues and singular values are well apart."""
    return lambda dtype: (
        torch.randn(*sizes, dtype=dtype)
        + torch.eye(*sizes[-2:], dtype=dtype) * 4 * torch.arange(1, sizes[-1] + 1)
    )


def positive(*sizes):
    return lambda dtype: torch.rand(*sizes, dtype=dtype) + 0.5


def hermitian(function):
    """The function of the Hermitian part of its input."""
    return lambda T, a, *rest: function(T, a + a.mH, *rest)


# name of the case: (function of the library and tensors, how the tensors are made, dtypes)
# fmt: off
CASES = {
    "mm":              (lambda T, a, b: T.mm(a, b), (general(3, 4), general(4, 2)), BOTH),
    "mm transposed":   (lambda T, a, b: T.mm(a.t(), b.t()), (general(4, 3), general(2, 4)), BOTH),
    "bmm":             (lambda T, a, b: T.bmm(a, b), (general(2, 3, 4), general(2, 4, 5)), BOTH),
    "mv":              (lambda T, a, b: T.mv(a, b), (general(3, 4), general(4)), BOTH),
    "dot":             (lambda T, a, b: T.dot(a, b), (general(4), general(4)), BOTH),
    "vdot":            (lambda T, a, b: T.vdot(a, b), (general(4), general(4)), BOTH),
    "outer":           (lambda T, a, b: T.outer(a, b), (general(4), general(3)), BOTH),
    "inner":           (lambda T, a, b: T.inner(a, b), (general(2, 4), general(3, 4)), BOTH),
    "vecdot":          (lambda T, a, b: T.linalg.vecdot(a, b), (general(2, 4), general(3, 1, 4)), BOTH),
    "tensordot":       (lambda T, a, b: T.tensordot(a, b, ([0, 2], [1, 0])), (general(2, 3, 4), general(4, 2, 5)), BOTH),
    "kron":            (lambda T, a, b: T.kron(a, b), (general(2, 3), general(2, 2)), BOTH),
    "cross":           (lambda T, a, b: T.linalg.cross(a, b), (general(2, 3), general(1, 3)), BOTH),
    "einsum":          (lambda T, a, b, c: T.einsum("bij,jk,lk->bil", a, b, c), (general(2, 3, 4), general(4, 2), general(5, 2)), BOTH),
    "einsum diagonal": (lambda T, a, b: T.einsum("iij,i->j", a, b), (general(3, 3, 2), general(3)), BOTH),
    "multi_dot":       (lambda T, a, b, c: T.linalg.multi_dot([a, b, c]), (general(3), general(3, 4), general(4, 2)), BOTH),
    "addmm":           (lambda T, c, a, b: T.addmm(c, a, b, beta=2, alpha=3), (general(2), general(3, 4), general(4, 2)), BOTH),
    "addmv":           (lambda T, c, a, b: T.addmv(c, a, b, beta=2, alpha=3), (general(3), general(3, 4), general(4)), BOTH),
    "addr":            (lambda T, c, a, b: T.addr(c, a, b, beta=2, alpha=3), (general(3, 1), general(3), general(2)), BOTH),
    "addbmm":          (lambda T, c, a, b: T.addbmm(c, a, b, beta=2, alpha=3), (general(3, 2), general(5, 3, 4), general(5, 4, 2)), BOTH),
    "baddbmm":         (lambda T, c, a, b: T.baddbmm(c, a, b, beta=2, alpha=3), (general(3, 1), general(5, 3, 4), general(5, 4, 2)), BOTH),
    "complex factors": (lambda T, c, a, b: T.addmm(c, a, b, beta=2j, alpha=1 - 3j), (general(3, 2), general(3, 4), general(4, 2)), (COMPLEX,)),
    "addmm_":          (lambda T, c, a, b: (c * 1).addmm_(a, b, alpha=3), (general(3, 2), general(3, 4), general(4, 2)), BOTH),
    "linear":          (lambda T, a, b: T.nn.functional.linear(a, b), (general(2, 3, 4), general(5, 4)), BOTH),
    "linear, bias":    (lambda T, a, b, c: T.nn.functional.linear(a, b, c), (general(2, 3, 4), general(5, 4), general(5)), BOTH),
    "linear, vector":  (lambda T, a, b, c: T.nn.functional.linear(a, b, c), (general(4), general(5, 4), general(5)), BOTH),
    "bilinear":        (lambda T, a, b, c: T.nn.functional.bilinear(a, b, c), (general(2, 3), general(2, 4), general(5, 3, 4)), (REAL,)),
    "det":             (lambda T, a: T.linalg.det(a), (general(2, 3, 3),), BOTH),
    "slogdet":         (lambda T, a: T.linalg.slogdet(a), (general(2, 3, 3),), BOTH),
    "logdet":          (lambda T, a: T.logdet(a), (definite(2, 3, 3),), BOTH),
    "inv":             (lambda T, a: T.linalg.inv(a), (general(2, 3, 3),), BOTH),
    "pinv tall":       (lambda T, a: T.linalg.pinv(a), (general(2, 4, 3),), BOTH),
    "pinv wide":       (lambda T, a: T.linalg.pinv(a), (general(3, 4),), BOTH),
    "pinv hermitian":  (lambda T, a: T.linalg.pinv(a + a.mH, hermitian=True), (general(3, 3),), BOTH),
    "matrix_power":    (lambda T, a: T.linalg.matrix_power(a, 5), (general(3, 3),), BOTH),
    "inverse power":   (lambda T, a: T.linalg.matrix_power(a, -3), (apart(3, 3),), BOTH),
    "matrix_exp":      (lambda T, a: T.linalg.matrix_exp(a), (general(2, 3, 3),), BOTH),
    "solve":           (lambda T, a, b: T.linalg.solve(a, b), (general(2, 3, 3), general(3, 2)), BOTH),
    "solve vector":    (lambda T, a, b: T.linalg.solve(a, b), (general(2, 3, 3), general(2, 3)), BOTH),
    "solve right":     (lambda T, a, b: T.linalg.solve(a, b, left=False), (general(3, 3), general(2, 2, 3)), BOTH),
    "tensorsolve":     (lambda T, a, b: T.linalg.tensorsolve(a, b), (general(2, 3, 6), general(2, 3)), BOTH),
    "tensorinv":       (lambda T, a: T.linalg.tensorinv(a, ind=1), (general(6, 2, 3),), BOTH),
    "triangular":      (lambda T, a, b: T.linalg.solve_triangular(a, b, upper=False), (triangle(3, 3), general(2, 3, 2)), BOTH),
    "unitriangular":   (lambda T, a, b: T.linalg.solve_triangular(a, b, upper=True, left=False, unitriangular=True), (general(3, 3), general(2, 3)), BOTH),
    "old triangular":  (lambda T, a, b: T.triangular_solve(b, a, upper=False, transpose=True), (triangle(3, 3), general(3, 2)), BOTH),
    "cholesky":        (hermitian(lambda T, a: T.linalg.cholesky(a)), (definite(2, 3, 3),), BOTH),
    "cholesky upper":  (hermitian(lambda T, a: T.linalg.cholesky(a, upper=True)), (definite(3, 3),), BOTH),
    "cholesky_inverse": (lambda T, a: T.cholesky_inverse(a.tril()), (triangle(3, 3),), BOTH),
    "cholesky_solve":  (lambda T, a, b: T.cholesky_solve(b, a.tril()), (triangle(3, 3), general(2, 3, 2)), BOTH),
    "cholesky_solve upper": (lambda T, a, b: T.cholesky_solve(b, a.triu(), upper=True), (definite(3, 3), general(3, 2)), BOTH),
    "lu":              (lambda T, a: T.linalg.lu(a)[1:], (apart(2, 3, 3),), BOTH),
    "lu tall":         (lambda T, a: T.linalg.lu(a)[1:], (apart(5, 3),), BOTH),
    "lu wide":         (lambda T, a: T.linalg.lu(a)[1:], (apart(3, 5),), BOTH),
    "L only":          (lambda T, a: T.linalg.lu(a)[1], (apart(5, 3),), BOTH),
    "U only":          (lambda T, a: T.linalg.lu(a)[2], (apart(3, 5),), BOTH),
    "lu_factor":       (lambda T, a: T.linalg.lu_factor(a)[0], (apart(4, 3),), BOTH),
    "lu_unpack":       (lambda T, a: T.lu_unpack(a, T.tensor([3, 2, 3], dtype=T.int32))[1:], (general(3, 4),), BOTH),
    "lu_solve":        (lambda T, a, b: T.linalg.lu_solve(*T.linalg.lu_factor(a), b), (apart(2, 3, 3), general(2, 3, 2)), BOTH),
    "lu_solve right, adjoint": (lambda T, a, b: T.linalg.lu_solve(*T.linalg.lu_factor(a), b, left=False, adjoint=True), (apart(3, 3), general(2, 3)), BOTH),
    "lu_solve adjoint": (lambda T, a, b: T.linalg.lu_solve(*T.linalg.lu_factor(a), b, adjoint=True), (apart(3, 3), general(3, 2)), BOTH),
    "qr":              (lambda T, a: T.linalg.qr(a), (general(2, 4, 3),), BOTH),
    "qr wide":         (lambda T, a: T.linalg.qr(a), (general(3, 5),), BOTH),
    "Q only":          (lambda T, a: T.linalg.qr(a)[0], (general(3, 5),), BOTH),
    "R only":          (lambda T, a: T.linalg.qr(a)[1], (general(5, 3),), BOTH),
    "householder_product": (lambda T, a, b: T.linalg.householder_product(a, b), (general(2, 4, 3), general(2, 2)), BOTH),
    "ormqr":           (lambda T, a, b, c: T.ormqr(a, b, c), (general(4, 3), general(3), general(4, 2)), BOTH),
    "ormqr right":     (lambda T, a, b, c: T.ormqr(a, b, c, left=False, transpose=True), (general(4, 3), general(3), general(2, 4)), BOTH),
    "ormqr transposed": (lambda T, a, b, c: T.ormqr(a, b, c, transpose=True), (general(4, 3), general(3), general(4, 2)), BOTH),
    "eigvalsh":        (lambda T, a: T.linalg.eigvalsh(a), (definite(2, 3, 3),), BOTH),
    "eigh":            (hermitian(lambda T, a: T.linalg.eigh(a)[1].abs() ** 2), (apart(2, 3, 3),), BOTH),
    "eigvals":         (lambda T, a: T.linalg.eigvals(a), (apart(3, 3),), BOTH),
    "eig":             (lambda T, a: T.linalg.eig(a)[1].abs() ** 2, (apart(2, 3, 3),), BOTH),
    "svdvals":         (lambda T, a: T.linalg.svdvals(a), (general(2, 4, 3),), BOTH),
    "svd tall":        (lambda T, a: [x.abs() ** 2 for x in T.linalg.svd(a, full_matrices=False)], (apart(5, 3),), BOTH),
    "svd wide":        (lambda T, a: [x.abs() ** 2 for x in T.linalg.svd(a, full_matrices=False)], (apart(2, 3, 5),), BOTH),
    "svd full":        (lambda T, a: [T.linalg.svd(a)[0][:, :3].abs() ** 2], (apart(5, 3),), BOTH),
    "svd rebuilt":     (lambda T, a: (lambda U, S, V: U @ V.mH)(*T.svd(a)), (apart(4, 3),), BOTH),
    "lstsq":           (lambda T, a, b: T.linalg.lstsq(a, b)[0], (general(5, 3), general(5, 2)), BOTH),
    "lstsq residuals": (lambda T, a, b: T.linalg.lstsq(a, b, driver="gels")[:2], (general(5, 3), general(5, 2)), (REAL,)),
    "nuclear norm":    (lambda T, a: T.linalg.matrix_norm(a, "nuc"), (general(2, 4, 3),), BOTH),
    "spectral norm":   (lambda T, a: T.linalg.matrix_norm(a, 2, keepdim=True), (apart(4, 3),), BOTH),
    "maximum norm":    (lambda T, a: T.linalg.matrix_norm(a, float("inf")), (general(2, 4, 3),), BOTH),
    "cond":            (lambda T, a: T.linalg.cond(a), (apart(3, 3),), BOTH),
    "vander":          (lambda T, a: T.linalg.vander(a, N=4), (general(2, 3),), BOTH),
    "stft":            (lambda T, a, w: T.stft(a, 6, 3, window=w, return_complex=True), (general(2, 20), positive(6)), (REAL,)),
    "istft":           (lambda T, a, w: T.istft(a, 6, 3, window=w), (lambda dtype: general(2, 4, 7)(COMPLEX), positive(6)), (REAL,)),
}
# fmt: on

for _name in ("fft", "ifft"):
    for _norm in ("backward", "ortho", "forward"):
        CASES[f"{_name} {_norm}"] = (
            lambda T, a, name=_name, norm=_norm: getattr(T.fft, name)(a, n=5, dim=0, norm=norm),
            (general(4, 3),),
            BOTH,
        )
for _name in ("rfft", "ihfft", "rfft2", "ihfftn"):
    for _size in (4, 5):
        CASES[f"{_name} {_size}"] = (
            lambda T, a, name=_name: getattr(T.fft, name)(a, norm="ortho"),
            (general(3, _size),),
            (REAL,),
        )
for _name in ("irfft", "hfft", "irfft2", "hfftn"):
    for _size in (4, 5):
        CASES[f"{_name} {_size}"] = (
            lambda T, a, name=_name, n=_size: (
                getattr(T.fft, name)(a, n)
                if name in ("irfft", "hfft")
                else getattr(T.fft, name)(a, (3, n), (0, 1))
            ),
            (general(3, 4),),
            (COMPLEX,),
        )

SHAPES = {
    "1": (4,), "2": (4, 4), "3": (2, 4, 4), "3 single": (1, 4, 4), "4": (3, 1, 4, 4),
}  # fmt: skip
for _left, _a in SHAPES.items():
    for _right, _b in SHAPES.items():
        CASES[f"matmul {_left} @ {_right}"] = (
            lambda T, a, b: T.matmul(a, b),
            (general(*_a), general(*_b)),
            BOTH,
        )


def tensors(values):
    return [values] if isinstance(values, (torch.Tensor, weft.Tensor)) else list(values)


def derivatives(T, function, inputs, weights, directions):
    """The results' number of elements, first derivatives, and those of first derivatives along a direction."""
    inputs = [each.detach().requires_grad_() for each in inputs]
    results = tensors(function(T, *inputs))
    first = T.autograd.grad(results, inputs, weights, create_graph=True)
    along = sum(
        (each.conj() * direction).real.sum() for each, direction in zip(first, directions, strict=True)
    )
    if not along.requires_grad:
        return first, ()
    second = T.autograd.grad(along, [*inputs], allow_unused=True, materialize_grads=True)
    return first, second


@pytest.mark.parametrize("name, dtype", [(name, dtype) for name in CASES for dtype in CASES[name][2]])
def test_derivatives(name, dtype):
    function, makers, _ = CASES[name]
    torch.manual_seed(0)
    inputs = [make(dtype) for make in makers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weights = [torch.randn_like(each) for each in tensors(function(torch, *inputs))]
        directions = [torch.randn_like(each) for each in inputs]
        wanted = derivatives(torch, function, inputs, weights, directions)
        got = derivatives(
            weft, function, *[[to_weft(each) for each in some] for some in (inputs, weights, directions)]
        )
    for order, (ours, theirs) in enumerate(zip(got, wanted, strict=True), 1):
        assert len(ours) == len(theirs)
        for position, (our, their) in enumerate(zip(ours, theirs, strict=True)):
            torch.testing.assert_close(
                to_torch(our.detach()),
                their.detach(),
                rtol=1e-7,
                atol=1e-8,
                check_stride=False,
                msg=lambda text, order=order, position=position: (
                    f"derivative {order} of input {position}: {text}"
                ),
            )


PHASES = {
    "eigh": lambda T, a: T.linalg.eigh(a)[1],
    "eig": lambda T, a: T.linalg.eig(a)[1],
    "svd": lambda T, a: T.linalg.svd(a)[0],
}


@pytest.mark.parametrize("name", PHASES)
def test_what_depends_on_the_phases_of_vectors_has_no_derivative(name):
    a = definite(3, 3)(COMPLEX)
    for T, x in ((torch, a.requires_grad_()), (weft, to_weft(a.detach()).requires_grad_())):
        loss = (PHASES[name](T, x) * (1 + 2j)).sum().real
        with pytest.raises(
            RuntimeError, match=f"{name}_backward: The (eigen|singular )vectors in the complex case"
        ):
            loss.backward()


@pytest.mark.parametrize("mode, part", (("complete", 0), ("complete", 1), ("r", 1)))
def test_qr_modes_without_derivative(mode, part):
    a = general(4, 3)(REAL)
    for T, x in ((torch, a.requires_grad_()), (weft, to_weft(a.detach()).requires_grad_())):
        result = T.linalg.qr(x, mode)[part]
        with pytest.raises(RuntimeError, match="QR decomposition is not differentiable|depends on Q"):
            result.sum().backward()


def test_singular_matrices():
    """PyTorch's first derivative of det is 0 here, weft's the cofactors, which PyTorch gives with create_graph=True."""
    x = weft.tensor(
        [[[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]], dtype=weft.float64, requires_grad=True
    )
    (cofactors,) = weft.autograd.grad(weft.linalg.det(x).sum(), x)
    expected = torch.tensor([[[4.0, -2.0], [-2.0, 1.0]], [[4.0, -3.0], [-2.0, 1.0]]], dtype=REAL)
    torch.testing.assert_close(to_torch(cofactors), expected)
    (inverse,) = weft.autograd.grad(weft.linalg.slogdet(x)[1].sum(), x)
    assert to_torch(inverse[0]).isinf().all()
    torch.testing.assert_close(to_torch(inverse[1]), torch.linalg.inv(to_torch(x.detach())[1]).T)


def test_gradients_of_weights_are_contiguous_products():
    """A weight used over a batch gets one product of matrices; no copy brings it into the weight's memory order."""
    x = weft.randn(2, 3, 4, requires_grad=True)
    weight = weft.randn(5, 4, requires_grad=True)
    for result in (x @ weight.t(), weft.nn.functional.linear(x, weight), (x[0] @ weight.t())):
        dx, dw = weft.autograd.grad(result, (x, weight), weft.randn(*result.shape))
        assert dw.is_contiguous() and dx.is_contiguous()


NODES = {
    "MmBackward0": lambda T, a, b: a @ b,
    "MvBackward0": lambda T, a, b: a @ b[0],
    "DotBackward0": lambda T, a, b: a[0] @ b[0],
    "UnsafeViewBackward0": lambda T, a, b: a.expand(2, 3, 3) @ b,
    "BmmBackward0": lambda T, a, b: T.bmm(a[None], b[None]),
    "AddmmBackward0": lambda T, a, b: T.nn.functional.linear(a, b, b[0]),
    "LinalgInvExBackward0": lambda T, a, b: T.linalg.inv(a),
    "LinalgSolveExBackward0": lambda T, a, b: T.linalg.solve(a, b, left=False),
    "LinalgDetBackward0": lambda T, a, b: T.linalg.det(a),
    "LinalgSvdBackward0": lambda T, a, b: T.linalg.svdvals(a),
    "LinalgEighBackward0": lambda T, a, b: T.linalg.eigvalsh(a),
    "LinalgQrBackward0": lambda T, a, b: T.linalg.qr(a)[1],
    "LinalgLuBackward0": lambda T, a, b: T.linalg.lu(a)[1],
    "FftC2CBackward0": lambda T, a, b: T.fft.fft(a * 1j),
    "FftR2CBackward0": lambda T, a, b: T.fft.rfft(a),
    "FftC2RBackward0": lambda T, a, b: T.fft.irfft(a),
}


@pytest.mark.parametrize("name", NODES)
def test_names_of_nodes(name):
    for T in (torch, weft):
        a, b = (T.ones(3, 3, requires_grad=True) + T.eye(3) for _ in range(2))
        assert type(NODES[name](T, a, b).grad_fn).__name__ == name


def cofactors(a):
    """The derivatives of the determinant with respect to the elements, each from the minor without its row and column."""
    n = len(a)
    minors = [[np.delete(np.delete(a, i, 0), j, 1) for j in range(n)] for i in range(n)]
    return np.array([[(-1) ** (i + j) * np.linalg.det(minors[i][j]) for j in range(n)] for i in range(n)])


@pytest.mark.parametrize("rank", [2, 1, 3])
@pytest.mark.parametrize("name", ["det", "linalg.det"])
def test_gradient_of_the_determinant_of_a_singular_complex_matrix(rank, name):
    generator = np.random.default_rng(0)
    parts = generator.normal(size=(4, 3, rank))
    a = (parts[0] + 1j * parts[1]) @ (parts[2] + 1j * parts[3]).T
    cotangent = 2.0 - 3.0j
    x = weft.tensor(a, requires_grad=True)
    function = weft.det if name == "det" else weft.linalg.det
    function(x).backward(weft.tensor(cotangent, dtype=weft.complex128))
    np.testing.assert_allclose(x.grad.numpy(), cotangent * cofactors(a).conj(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("place", [0, 2, (slice(None), 1)], ids=str)
def test_gradient_of_the_determinant_of_a_matrix_with_a_row_of_zeros(place):
    """The determinant is exactly 0, so that there is no inverse to compute the cofactors from."""
    parts = np.random.default_rng(1).normal(size=(2, 3, 3))
    a = parts[0] + 1j * parts[1]
    a[place] = 0
    x = weft.tensor(a, requires_grad=True)
    result = weft.linalg.det(x)
    assert result.item() == 0
    result.backward(weft.tensor(2.0 - 3.0j, dtype=weft.complex128))
    np.testing.assert_allclose(x.grad.numpy(), (2 - 3j) * cofactors(a).conj(), rtol=1e-9, atol=1e-12)
