"""Forward mode: dual tensors, writes in place, and agreement with reverse mode."""

import random

import pytest
import torch
from alike import same

import weft

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def v(lib):
    return lib.tensor([0.5, 1.0, 1.5])


def push(lib, function, x):
    """The value and the tangent of a function at x, in the direction of one half."""
    with lib.autograd.forward_ad.dual_level():
        dual = lib.autograd.forward_ad.make_dual(x, lib.ones_like(x) * 0.5)
        return lib.autograd.forward_ad.unpack_dual(function(dual))


@program
def a_number_added(lib):
    return push(lib, lambda d: (d * 1).add_(2.0), v(lib))


@program
def a_write_of_a_dual_tensor_into_a_view(lib):
    """The base and the view have tangents from then on, and later writes change both."""
    fw = lib.autograd.forward_ad
    results = []
    for write in ("add_", "mul_", "copy_"):
        base = lib.ones(2, 2)
        view = base.t()
        with fw.dual_level():
            getattr(view, write)(fw.make_dual(lib.arange(4.0).view(2, 2), lib.arange(4.0).view(2, 2) + 10))
            results += [fw.unpack_dual(each).tangent.clone() for each in (base, view)]
            view *= 2
            results += [fw.unpack_dual(each).tangent.clone() for each in (base, view)]
    return results


@program
def tangents_are_switched_off(lib):
    fw = lib.autograd.forward_ad
    found = [fw._is_fwd_grad_enabled()]
    with fw.dual_level():
        x = fw.make_dual(v(lib), v(lib))
        with fw._set_fwd_grad_enabled(False):
            y = x * 2
            found += [fw._is_fwd_grad_enabled(), fw.unpack_dual(y).tangent]
        lib._C._set_fwd_grad_enabled(False)
        found.append(fw._is_fwd_grad_enabled())
        lib._C._set_fwd_grad_enabled(True)
        return found, fw.unpack_dual(y).tangent, fw.unpack_dual(x * 2).tangent


@program
def a_tangent_with_a_tangent(lib):
    fw = lib.autograd.forward_ad
    with fw.dual_level():
        try:
            fw.make_dual(v(lib), fw.make_dual(v(lib), v(lib)))
        except RuntimeError as error:
            return str(error)[:75]


@program
def a_tangent_with_another_layout_is_copied(lib):
    fw = lib.autograd.forward_ad
    x, whole = lib.zeros(2, 3), lib.zeros(12)
    complex_ = lib.zeros(2, 3, dtype=lib.complex64)
    pairs = [
        (x, lib.zeros(2, 3)), (x, lib.zeros(3, 2).t()), (x.t(), lib.zeros(2, 3).t()), (whole[:6], lib.zeros(6)),
        (whole[3:9], lib.zeros(15)[3:9]), (whole[3:9], whole[3:9]), (lib.zeros(1, 6), lib.zeros(6, 1).t()),
        (whole[3:3], lib.zeros(12)[4:4]), (x[:0], whole[3:3].view(0, 3)), (complex_, complex_.conj()), (complex_.conj(), complex_.conj()),
    ]  # fmt: skip
    with fw.dual_level():
        found = [(tangent, fw.unpack_dual(fw.make_dual(value, tangent)).tangent) for value, tangent in pairs]
        return [(before is after, after.stride()) for before, after in found]


@program
def exp(lib):
    return push(lib, lambda d: (d * 1).exp_(), v(lib))


@program
def a_dual_tensor_itself(lib):
    return push(lib, lambda d: d.add_(2.0), v(lib))


@program
def a_constant_multiplied_by_a_dual(lib):
    return push(lib, lambda d: lib.ones(3).mul_(d), v(lib))


@program
def a_dual_copied(lib):
    return push(lib, lambda d: lib.ones(3).copy_(d), v(lib))


@program
def part_of_a_constant_set(lib):

    def f(d):
        x = lib.zeros(3)
        x[1:] = d[:2]
        return x

    return push(lib, f, v(lib))


@program
def an_element_set_to_a_number(lib):

    def f(d):
        x = d * 1
        x[0] = 7.0
        return x

    return push(lib, f, v(lib))


@program
def a_view_written_to(lib):

    def f(d):
        x = d * 1
        y = x[1:]
        y.mul_(3)
        return x

    return push(lib, f, v(lib))


@program
def the_base_of_a_view_written_to(lib):

    def f(d):
        x = d * 1
        y = x[1:]
        x.mul_(3)
        return y

    return push(lib, f, v(lib))


@program
def zeroed(lib):

    def f(d):
        x = d * 1
        x.zero_()
        return x

    return push(lib, f, v(lib))


@program
def filled(lib):

    def f(d):
        x = d * 1
        x.fill_(2.0)
        return x

    return push(lib, f, v(lib))


@program
def index_add(lib):

    def f(d):
        x = lib.zeros(4)
        x.index_add_(0, lib.tensor([0, 1, 1]), d)
        return x

    return push(lib, f, v(lib))


@program
def written_twice(lib):

    def f(d):
        x = lib.zeros(2, 3)
        x[1] = d * 2
        x[1, 2] *= d[0]
        return x

    return push(lib, f, v(lib))


@program
def a_chain_of_writes(lib):

    def f(d):
        x = d * 1
        x.clamp_(0.6, 1.2)
        x.sigmoid_()
        x.pow_(2)
        return x

    return push(lib, f, v(lib))


@program
def masked_fill(lib):

    def f(d):
        x = d * 1
        x.masked_fill_(lib.tensor([True, False, False]), 3.0)
        return x

    return push(lib, f, v(lib))


@program
def metadata_changed(lib):

    def f(d):
        x = d * 1
        x.t_().unsqueeze_(0)
        return x

    return push(lib, f, v(lib))


@program
def an_activation(lib):
    return push(lib, lambda d: lib.nn.functional.relu(d * 2 - 1, inplace=True), v(lib))


@program
def make_dual_outside_of_a_level(lib):
    fA = lib.autograd.forward_ad
    return fA.make_dual(lib.ones(2), lib.ones(2))


@program
def nested_levels(lib):
    fA = lib.autograd.forward_ad
    with fA.dual_level():
        with fA.dual_level():
            pass


@program
def a_tangent_of_another_shape(lib):
    fA = lib.autograd.forward_ad
    with fA.dual_level():
        fA.make_dual(lib.ones(2), lib.ones(3))


@program
def a_tangent_of_another_dtype(lib):
    fA = lib.autograd.forward_ad
    with fA.dual_level():
        fA.make_dual(lib.ones(2), lib.ones(2, dtype=lib.float64))


@program
def an_integer_primal(lib):
    fA = lib.autograd.forward_ad
    with fA.dual_level():
        fA.make_dual(lib.ones(2, dtype=lib.int64), lib.ones(2))


@program
def unpacked_outside(lib):
    fA = lib.autograd.forward_ad
    with fA.dual_level():
        d = fA.make_dual(lib.ones(2), lib.ones(2))
    return fA.unpack_dual(d)


@program
def unpacked_without_tangent(lib):
    fA = lib.autograd.forward_ad
    with fA.dual_level():
        return fA.unpack_dual(lib.ones(2))


@program
def levels_by_hand(lib):
    fA = lib.autograd.forward_ad
    fA.enter_dual_level()
    d = fA.make_dual(lib.ones(2), lib.ones(2))
    r = fA.unpack_dual(d * 3).tangent
    fA.exit_dual_level()
    return r


@program
def a_level_that_is_not_open(lib):
    lib.autograd.forward_ad.exit_dual_level()


@program
def under_no_grad(lib):
    fA = lib.autograd.forward_ad
    with fA.dual_level(), lib.no_grad():
        return fA.unpack_dual(fA.make_dual(lib.ones(2), lib.ones(2)) * 3)


@program
def a_primal_that_requires_grad(lib):
    fA = lib.autograd.forward_ad
    x = lib.ones(2, requires_grad=True)
    with fA.dual_level():
        d = fA.make_dual(x, lib.ones(2))
        y = d**3
        a = fA.unpack_dual(y)
        return (
            str(a.tangent.requires_grad),
            lib.autograd.grad(a.tangent.sum(), x),
            lib.autograd.grad(a.primal.sum(), x),
        )


@program
def backward_within_a_level(lib):
    fA = lib.autograd.forward_ad
    x = lib.ones(2, requires_grad=True)
    with fA.dual_level():
        d = fA.make_dual(x, lib.ones(2))
        y = (d**3).sum()
        (g,) = lib.autograd.grad(y, d, create_graph=True)
        return fA.unpack_dual(g).tangent


@program
def a_tangent_that_requires_grad(lib):
    fA = lib.autograd.forward_ad
    t = lib.ones(2, requires_grad=True)
    with fA.dual_level():
        d = fA.make_dual(lib.ones(2), t)
        a = fA.unpack_dual(d**3)
        return (a.tangent.requires_grad, lib.autograd.grad(a.tangent.sum(), t))


@program
def tangents_of_constants_require_no_grad(lib):
    fA = lib.autograd.forward_ad
    functions = (lambda d: d.logcumsumexp(0), lambda d: d.cumsum(0), lambda d: d.softmax(0), lambda d: d * 2)
    with fA.dual_level():
        d = fA.make_dual(v(lib), lib.ones(3))
        return [fA.unpack_dual(f(d)).tangent.requires_grad for f in functions]


@program
def what_a_dual_says_of_itself(lib):
    fA = lib.autograd.forward_ad
    with fA.dual_level():
        d = fA.make_dual(lib.ones(2), lib.ones(2))
        a = d.detach()
        return (fA.unpack_dual(a), d.requires_grad, d.is_leaf, (d * 2).is_leaf, (d * 2).requires_grad)


@program
def printed(lib):
    fA = lib.autograd.forward_ad
    with fA.dual_level():
        d = fA.make_dual(lib.ones(2), lib.ones(2))
        return (d * 2, d)


@program
def conversions_and_extrema(lib):
    fA = lib.autograd.forward_ad
    with fA.dual_level():
        d = fA.make_dual(lib.ones(2), lib.ones(2))
        return (
            fA.unpack_dual(d.to(lib.float64)).tangent,
            fA.unpack_dual(d.argmax()),
            fA.unpack_dual(d > 0).tangent,
            fA.unpack_dual(d.max(0).values).tangent,
            fA.unpack_dual(d.numpy() if 0 else d.clone()).tangent,
        )


@program
def sorted_values(lib):
    return lib.func.jvp(
        lambda x: x.sort().values, (lib.tensor([3.0, 1.0, 2.0]),), (lib.tensor([1.0, 2.0, 3.0]),)
    )


def complex_matrix(lib):
    real = lib.tensor([[4.0, 0.3, 0.2], [0.1, 2.0, 0.4], [0.3, 0.2, 1.0]], dtype=lib.float64)
    return lib.complex(real, real.flip(0) / 2)


@program
def eigenvectors(lib):
    a = complex_matrix(lib)
    real = push(lib, lambda d: lib.linalg.eig(d)[1].real, a.real.clone())
    return real, [push(lib, lambda d, k=k: lib.linalg.eig(d)[k], a) for k in (0, 1)]


@program
def eigenvectors_of_hermitian_matrices(lib):
    a = complex_matrix(lib)
    functions = (lambda d: lib.linalg.eigh(d @ d.mH)[1].abs(), lambda d: lib.linalg.eigvalsh(d @ d.mH))
    return [push(lib, f, a) for f in functions]


@program
def singular_vectors(lib):
    a = complex_matrix(lib)
    return [push(lib, lambda d, k=k: lib.linalg.svd(d)[k], a).tangent for k in range(3)]


@program
def the_gradient_of_eigenvalues(lib):
    a = complex_matrix(lib)
    gradient = lib.func.grad(lambda x: (lib.linalg.eigvals(x) ** 3).abs().sum())
    return lib.func.jvp(gradient, (a.real.clone(),), (a.imag.clone(),))


@program
def norms_and_signs_of_zero(lib):
    zeros, complex_zeros = lib.zeros(3), lib.zeros(3, dtype=lib.complex64)
    orders = (1, 1.5, 2, 3, 3.5, float("inf"))
    norms = [
        push(lib, lambda d, p=p: lib.linalg.vector_norm(d, p), x)
        for p in orders
        for x in (zeros, zeros[:0])
        if p != float("inf") or len(x)
    ]
    return norms, push(lib, lib.sgn, complex_zeros)


@pytest.mark.refuses(
    [
        "make_dual_outside_of_a_level",
        "nested_levels",
        "a_tangent_of_another_shape",
        "an_integer_primal",
        "a_level_that_is_not_open",
    ]
)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_in_pytorch(program):
    same(program)


# ---- Forward mode against reverse mode -----------------------------------------------------------------------------

M = weft.tensor([[1.5, 0.3, 0.2], [0.1, 2.0, 0.4], [0.3, 0.2, 1.1]], dtype=weft.float64)
FUNCTIONS = {
    "pointwise": lambda x: (x.exp() * x.sin() + x.log1p() / (x + 2)).tanh(),
    "powers": lambda x: x**3 + x**-0.5 + 2.0**x + x**x,
    "broadcast": lambda x: x[:, None] * x[None, :] - x.sum(),
    "reductions": lambda x: weft.stack(
        [x.sum(), x.mean(), x.prod(), x.var(), x.std(), x.norm(), x.logsumexp(0)]
    ),
    "extrema": lambda x: weft.stack([x.max(), x.min(0).values, x.amax(), x.median(), x.sort().values[1]]),
    "scans": lambda x: x.cumsum(0) * x.cumprod(0) + x.logcumsumexp(0) + x.cummax(0).values,
    "views": lambda x: (
        x.reshape(3, 1).expand(3, 2).t().flip(0)[:, 1:].unsqueeze(0).squeeze() + x.unfold(0, 2, 1)[:, 0]
    ),
    "rearranged": lambda x: weft.cat([weft.stack([x, x * 2]).flatten(), x.repeat(2), x.roll(1)]),
    "indexed": lambda x: (
        x[weft.tensor([2, 0, 0])] * x.gather(0, weft.tensor([1, 1, 2])) + x.take(weft.tensor([0, 1, 2]))
    ),
    "scattered": lambda x: (
        weft.zeros_like(x).scatter_add(0, weft.tensor([0, 0, 2]), x * x).index_fill(0, weft.tensor([1]), 3)
    ),
    "masked": lambda x: weft.where(x > 0.6, x * x, -x).masked_fill(x > 1.2, 0.0),
    "products": lambda x: (
        M @ x + x @ M + (M * x).mm(M).sum(0) + weft.einsum("ij,j->i", M, x) + weft.outer(x, x)[0]
    ),
    "solutions": lambda x: weft.linalg.solve(M + x.diag(), x) + weft.linalg.inv(M + x.diag()) @ x,
    "factors": lambda x: (
        weft.linalg.cholesky(M @ M.t() + x.diag()).sum(0) + weft.linalg.eigvalsh(M + M.t() + x.diag())
    ),
    "determinants": lambda x: weft.stack(
        [weft.linalg.det(M * x), weft.linalg.slogdet(M * x).logabsdet, (M * x).trace()]
    ),
    "normalized": lambda x: x.softmax(0) + x.log_softmax(0) + weft.nn.functional.layer_norm(x * x, (3,)),
    "activations": lambda x: (
        weft.nn.functional.gelu(x) + weft.nn.functional.silu(x) + weft.nn.functional.softplus(x)
    ),
    "losses": lambda x: weft.stack(
        [weft.nn.functional.mse_loss(x, x * x), weft.nn.functional.huber_loss(x * 3, x.sin())]
    ),
    "convolved": lambda x: weft.nn.functional.conv1d(x.view(1, 1, 3), x[:2].view(1, 1, 2)).flatten(),
    "pooled": lambda x: (
        weft.nn.functional.avg_pool1d(x.view(1, 1, 3), 2).flatten()
        * weft.nn.functional.max_pool1d(x.view(1, 1, 3), 2).flatten()
    ),
    "padded": lambda x: weft.nn.functional.pad(x.view(1, 1, 3), (2, 1), "reflect").flatten() ** 2,
    "spectral": lambda x: weft.fft.rfft(x).abs() + weft.fft.ifft(x * x).real[:2],
    "complex": lambda x: (
        weft.view_as_real(weft.complex(x, x * 2) ** 2).flatten() + weft.polar(x, x).abs().repeat(2)
    ),
    "special": lambda x: weft.lgamma(x) + weft.erf(x) + weft.special.i0(x) + weft.digamma(x),
    "attention": lambda x: weft.nn.functional.scaled_dot_product_attention(*[(M * x)[None]] * 3).flatten(),
    "in place": lambda x: (x * 1).mul_(x).add_(1).clamp_(max=2.1).sqrt_(),
    "writes": lambda x: (
        weft.zeros(2, 3, dtype=weft.float64).index_put_((weft.tensor([0, 1]),), x).flatten() ** 2
    ),
}
POINT = [0.3, 0.7, 1.1]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_mode_agrees_with_reverse_mode(name):
    x = weft.tensor(POINT, dtype=weft.float64)
    by_row = weft.func.jacrev(FUNCTIONS[name])(x)
    by_column = weft.func.jacfwd(FUNCTIONS[name])(x)
    assert by_row.abs().max() > 0
    torch.testing.assert_close(torch.tensor(by_column.tolist()), torch.tensor(by_row.tolist()))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_over_reverse_agrees_with_reverse_over_reverse(name):
    def total(x):
        return (FUNCTIONS[name](x) * x.sum()).sum()

    x = weft.tensor(POINT, dtype=weft.float64)
    wanted = weft.func.jacrev(weft.func.jacrev(total))(x)
    found = weft.func.jacfwd(weft.func.jacrev(total))(x)
    torch.testing.assert_close(torch.tensor(found.tolist()), torch.tensor(wanted.tolist()))
    torch.testing.assert_close(torch.tensor(wanted.t().tolist()), torch.tensor(wanted.tolist()))


def test_a_closed_level_leaves_nothing_behind():
    x = weft.ones(2)
    with weft.autograd.forward_ad.dual_level():
        y = weft.autograd.forward_ad.make_dual(x, x) * 2
    assert y._autograd is None
    z = y * weft.ones(2, requires_grad=True)
    z.sum().backward()


# ---- Random programs -------------------------------------------------------------------------------------------------

STEPS = (
    lambda x, y: x.mul_(y),
    lambda x, y: x.add_(y, alpha=0.5),
    lambda x, y: x[1:].mul_(y[1:]),
    lambda x, y: x.view(-1)[::2].sin_(),
    lambda x, y: x.copy_(y * x),
    lambda x, y: x.__setitem__(0, y[0] * 2),
    lambda x, y: x[-1].zero_(),
    lambda x, y: x.exp_().clamp_(max=3.0),
    lambda x, y: x.t().add_(x.detach().t()),
    lambda x, y: y[:1].copy_(x[:1]),
)


@pytest.mark.parametrize("seed", range(10))
def test_random_writes_agree_with_reverse_mode(seed):
    def function(start):
        rng = random.Random(seed)
        values = [start * 1, start.sin(), weft.ones(3, 2, dtype=start.dtype)]
        values.append(values[0][...])  # a view of the first
        for _ in range(6):
            x, y = rng.choice(values), rng.choice(values)
            rng.choice(STEPS)(x, y.clone() if y.data_ptr() == x.data_ptr() else y)
            values.append(rng.choice(values) * rng.choice(values))
        return sum(value.sum() for value in values)

    def kept(start):  # what reverse mode saves outlives the writes
        with weft.autograd.graph.saved_tensors_hooks(lambda saved: saved.clone(), lambda saved: saved):
            return function(start)

    x = weft.tensor([[0.3, 0.7], [1.1, 0.2], [0.5, 0.9]], dtype=weft.float64)
    wanted = weft.func.jacrev(kept)(x)
    torch.testing.assert_close(
        torch.tensor(weft.func.jacfwd(function)(x).tolist()), torch.tensor(wanted.tolist())
    )
    second = torch.tensor(weft.func.jacrev(weft.func.jacrev(kept))(x).tolist())
    for way in (weft.func.jacfwd(weft.func.jacrev(kept)), weft.func.jacfwd(weft.func.jacfwd(function))):
        torch.testing.assert_close(torch.tensor(way(x).tolist()), second)


def test_dual_tensors_are_printed_with_their_tangents():
    def program(lib):
        dual = lib.autograd.forward_ad
        with dual.dual_level():
            x = dual.make_dual(lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0]))
            return [repr(x), str(x * x), repr(lib.ones(2))]

    same(program)


@pytest.mark.parametrize(
    "write",
    [
        lambda view: view.mul_(2),
        lambda view: view.fill_(3.0),
        lambda view: view.copy_(view * 3),
        lambda view: view.tril_(),
        lambda view: view.nan_to_num_(),
    ],
)
@pytest.mark.parametrize("part", [lambda tensor: tensor, lambda tensor: tensor[1]])
def test_writes_into_views_of_dual_tensors(write, part):
    """The dual tensor, a view of the tensor that `make_dual` was given, keeps the rest of its tangent."""
    found = []
    for lib in (torch, weft):
        dual = lib.autograd.forward_ad
        with dual.dual_level():
            plain = lib.full((3, 2, 2), 0.5)
            x = dual.make_dual(plain, lib.arange(12.0).reshape(3, 2, 2))
            view = part(x)
            write(view)
            assert dual.unpack_dual(plain).tangent is None
            found.append([dual.unpack_dual(each).tangent.tolist() for each in (x, view)])
    assert found[0] == found[1]


@pytest.mark.parametrize("dual_out", [False, True])
def test_tangents_and_out(dual_out):
    def program(lib):
        with lib.autograd.forward_ad.dual_level():
            dual = lib.autograd.forward_ad.make_dual(lib.ones(2), lib.ones(2))
            plain = lib.ones(2)
            if dual_out:
                lib.add(plain, plain, out=dual)
            else:
                lib.add(dual, plain, out=plain)

    same(program, raises=True)
