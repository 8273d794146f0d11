"""Sparse gradients in training: where they come from, how they add up, and what hooks, clipping and optimizers do with them."""

import subprocess
import sys

import pytest
import torch

import weft

LIBRARIES = (weft, torch)


def plain(value):
    """Lists and numbers that say everything of a tensor, or of a list of tensors."""
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if not isinstance(value, LIBRARIES[0].Tensor | LIBRARIES[1].Tensor):
        return value
    about = [list(value.shape), str(value.dtype).split(".")[1], str(value.layout)]
    value = value.detach()
    if "coo" in about[-1]:
        return [*about, value.is_coalesced(), value._indices().tolist(), numbers(value._values())]
    return [*about, numbers(value)]


def numbers(value):
    return pytest.approx(value.double().reshape(-1).tolist(), rel=1e-5, abs=1e-6), list(value.shape)


def same(program):
    """Run a function of the library with both, and compare what it returns, or the type of its error."""
    found = []
    for library in LIBRARIES:
        try:
            found.append(plain(program(library)))
        except (RuntimeError, ValueError, IndexError) as error:
            found.append(RuntimeError if isinstance(error, RuntimeError) else type(error))
    assert unwrapped(found[0]) == found[1]


def unwrapped(value):
    if isinstance(value, (list, tuple)):
        return type(value)(unwrapped(each) for each in value)
    if isinstance(value, dict):
        return {key: unwrapped(each) for key, each in value.items()}
    return value.expected if hasattr(value, "expected") else value


def table(library, rows=5, **options):
    return library.arange(2.0 * rows, **options).reshape(rows, 2).requires_grad_()


def looked_up(library, weight, numbers, **options):
    return (
        library.nn.functional.embedding(library.tensor(numbers), weight, sparse=True, **options).pow(2).sum()
    )


# ---- Where they come from ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numbers", "options"),
    [
        ([1, 3, 1], {}),
        ([[1, 3], [1, 4]], {}),
        ([2], {}),
        (2, {}),
        ([1, 3, 1], {"padding_idx": 1}),
        ([1, 3, 1], {"padding_idx": -2}),
        ([1, 1], {"padding_idx": 1}),
        ([1, 3, 1], {"scale_grad_by_freq": True}),
        ([1, 3], {"max_norm": 1.0}),
    ],
)
def test_embedding(numbers, options):
    def program(library):
        weight = table(library)
        looked_up(library, weight, numbers, **options).backward()
        return weight.grad

    same(program)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
def test_dtypes_of_embedding(dtype):
    def program(library):
        weight = table(library, dtype=getattr(library, dtype))
        index = library.tensor([1, 3, 1], dtype=library.int32)
        library.nn.functional.embedding(index, weight, sparse=True).pow(2).sum().backward()
        return weight.grad

    same(program)


def test_embedding_of_nothing():
    def program(library):
        weight = table(library)
        library.nn.functional.embedding(
            library.zeros(0, dtype=library.int64), weight, sparse=True
        ).sum().backward()
        return weight.grad

    same(program)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize(
    "options", [{}, {"padding_idx": 3}, {"scale_grad_by_freq": True}, {"include_last_offset": True}]
)
def test_embedding_bag(mode, options):
    def program(library):
        weight = table(library)
        offsets = library.tensor([0, 3, 3, 4] if "include_last_offset" in options else [0, 3, 3])
        bags = library.nn.functional.embedding_bag(
            library.tensor([1, 3, 1, 2]), weight, offsets, mode=mode, sparse=True, **options
        )
        bags.pow(2).sum().backward()
        return weight.grad

    same(program)


def test_embedding_bag_with_weights_of_samples():
    def program(library):
        weight = table(library)
        factors = library.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        bag = library.nn.EmbeddingBag(5, 2, mode="sum", sparse=True, _weight=weight.detach())
        bag(library.tensor([[1, 3], [1, 2]]), per_sample_weights=factors).pow(2).sum().backward()
        return bag.weight.grad, factors.grad

    same(program)


@pytest.mark.parametrize(
    ("dim", "index"), [(1, [[0], [1], [1]]), (0, [[0, 1], [1, 1]]), (-1, [[1, 0, 1]]), (0, [[4]])]
)
def test_gather(dim, index):
    def program(library):
        weight = table(library)
        weight.gather(dim, library.tensor(index), sparse_grad=True).pow(2).sum().backward()
        return weight.grad

    same(program)


@pytest.mark.parametrize(("data", "index"), [(3.0, [0, 0]), (3.0, 0), ([3.0], 0), ([3.0, 4.0], [])])
def test_gather_of_vectors_and_numbers(data, index):
    def program(library):
        x = library.tensor(data, requires_grad=True)
        x.gather(0, library.tensor(index, dtype=library.int64), sparse_grad=True).pow(2).sum().backward()
        return x.grad

    same(program)


def test_the_gradient_is_differentiable():
    for make in (
        lambda library, w: library.nn.functional.embedding(library.tensor([1, 3, 1]), w, sparse=True),
        lambda library, w: w.gather(0, library.tensor([[1, 3], [1, 0]]), sparse_grad=True),
    ):

        def program(library, make=make):
            weight = table(library)
            result = make(library, weight)
            ct = library.ones_like(result).requires_grad_()
            (gradient,) = library.autograd.grad(result, weight, ct, create_graph=True)
            gradient.to_dense().pow(2).sum().backward()
            return gradient, gradient.requires_grad, ct.grad

        same(program)


# ---- Sums ----------------------------------------------------------------------------------------------------------------

USES = {
    "sparse": lambda library, w: looked_up(library, w, [1, 3]),
    "again": lambda library, w: looked_up(library, w, [3, 0, 3]),
    "one": lambda library, w: looked_up(library, w, [2]),
    "dense": lambda library, w: (w * w).sum(),
}


@pytest.mark.parametrize("first", USES)
@pytest.mark.parametrize("second", USES)
@pytest.mark.parametrize("third", [None, "sparse", "dense"])
def test_sums_of_several_uses_and_several_passes(first, second, third):
    def program(library):
        weight, other = table(library), table(library)
        uses = [USES[name] for name in (first, second, third) if name]
        for use in uses:
            use(library, weight).backward()
        sum(use(library, other) for use in uses).backward()
        return [[str(each.grad.layout), each.grad.to_dense()] for each in (weight, other)]

    same(program)


@pytest.mark.parametrize(
    ("first", "second", "same_object"),
    [
        ("sparse", "again", True),
        ("dense", "sparse", True),
        ("sparse", "dense", False),
        ("dense", "dense", True),
    ],
)
def test_a_further_gradient_is_added_in_place(first, second, same_object):
    for library in LIBRARIES:
        weight = table(library)
        USES[first](library, weight).backward()
        before = weight.grad
        USES[second](library, weight).backward()
        assert (weight.grad is before) is same_object


def test_the_cotangent_of_the_user_is_not_taken_over():
    weight = table(weft)
    ct = weft.ones(2, 2)
    rows = weft.nn.functional.embedding(weft.tensor([1, 3]), weight, sparse=True)
    rows.backward(ct)
    weight.grad.mul_(2)
    assert ct.tolist() == [[1, 1], [1, 1]]


def test_the_cotangent_of_a_result_passes_through_elementwise_functions():
    def program(library):
        weight = table(library)
        twice = weight * 2
        twice.retain_grad()
        looked_up(library, twice, [1, 3]).backward()
        return twice.grad, weight.grad

    same(program)


def test_a_step_without_a_rule_says_what_to_do():
    weight = table(weft)
    with pytest.raises(NotImplementedError, match="sparse=False"):
        looked_up(weft, weight.flip(0), [1, 3]).backward()


MACHINE_CODE = """
import weft as torch
from weft.families import native_calls
native_calls.install()
from weft.autograd import engine
assert engine.native.run_nodes is not None
F = torch.nn.functional
w = torch.ones(5, 2, requires_grad=True)
use = lambda *numbers: F.embedding(torch.tensor(numbers), w, sparse=True).sum()
def dense(): return (w * 2).sum()
for program, expected in [
    (lambda: use(1, 3), [0, 1, 0, 1, 0]),
    (lambda: use(1, 3) + use(3), [0, 1, 0, 2, 0]),
    (lambda: use(1, 3) + dense(), [2, 3, 2, 3, 2]),
    (lambda: dense() + use(1, 3), [2, 3, 2, 3, 2]),
]:
    for _ in range(3):
        w.grad = None
        program().backward()
        assert w.grad.to_dense()[:, 0].tolist() == expected
    for before in (use(1, 1), dense()):
        w.grad = None
        before.backward()
        start = w.grad.to_dense()[:, 0]
        start = start.clone()
        program().backward()
        assert (w.grad.to_dense()[:, 0] - start).tolist() == expected
"""


@pytest.mark.parametrize("calls", ["python", "native"])
def test_passes_in_machine_code_leave_sparse_gradients_to_python(calls):
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            MACHINE_CODE
            if calls == "native"
            else MACHINE_CODE.replace("native_calls.install()", "").replace(
                "assert engine.native.run_nodes is not None", ""
            ),
        ],
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr


# ---- Hooks, and what programs do with `.grad` --------------------------------------------------------------------------------


def test_hooks():
    def program(library):
        weight, seen = table(library), []
        weight.register_hook(lambda g: seen.append(str(g.layout)) or g * 2)
        weight.register_post_accumulate_grad_hook(lambda w: seen.append(str(w.grad.layout)))
        looked_up(library, weight, [1, 3]).backward()
        return weight.grad, seen

    same(program)


def test_gradients_that_are_assigned():
    sparse = weft.sparse_coo_tensor([[0], [1]], [2.0], (2, 2))
    dense = weft.ones(2, 2, requires_grad=True)
    dense.grad = sparse
    assert dense.grad is sparse
    with pytest.raises(RuntimeError, match="data of a different type"):
        sparse.clone().requires_grad_().grad = weft.ones(2, 2)


def test_scaler_unscales_the_values():
    def program(library):
        weight = table(library)
        optimizer = library.optim.SGD([weight], lr=0.1)
        scaler = library.amp.GradScaler("cpu", init_scale=8.0)
        found = []
        for factor in (1.0, float("inf")):
            scaler.scale(looked_up(library, weight, [1, 3]) * factor).backward()
            scaler.unscale_(optimizer)
            found.append(weight.grad.to_dense())
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        return found[0], weight.detach(), scaler.get_scale()

    same(program)


# ---- Optimizers ----------------------------------------------------------------------------------------------------------


def steps(library, make, kind="uncoalesced"):
    weight = table(library)
    optimizer = make(library.optim, [weight])
    for k in range(3):
        indices, values = [[1, 3, 1 + k % 2]], [[1.0, 2.0], [3.0, -4.0], [0.5, 0.25]]
        weight.grad = library.sparse_coo_tensor(indices, values, (5, 2))
        if kind == "coalesced":
            weight.grad = weight.grad.coalesce()
        elif kind == "mixed" and k == 1:
            weight.grad = weight.grad.to_dense()
        optimizer.step()
    state = optimizer.state[weight]
    return weight, {
        name: value.to_dense() if isinstance(value, library.Tensor) else value
        for name, value in state.items()
    }


OPTIMIZERS = [
    ("SGD", {}),
    ("SGD", {"maximize": True}),
    ("SGD", {"momentum": 0.9}),
    ("SGD", {"momentum": 0.9, "dampening": 0.1, "foreach": True}),
    ("SGD", {"momentum": 0.9, "nesterov": True}),
    ("SGD", {"weight_decay": 0.1}),
    ("SGD", {"fused": True}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.5, "foreach": True}),
    ("Adagrad", {"maximize": True}),
    ("Adagrad", {"weight_decay": 0.1}),
    ("Adagrad", {"fused": True}),
    ("SparseAdam", {}),
    ("SparseAdam", {"betas": (0.5, 0.6), "maximize": True, "eps": 0.1}),
]


@pytest.mark.parametrize("kind", ["uncoalesced", "coalesced"])
@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_optimizers(name, options, kind):
    same(
        lambda library: steps(
            library, lambda optim, params: getattr(optim, name)(params, lr=0.1, **options), kind
        )
    )


@pytest.mark.parametrize("name", ["SGD", "Adagrad", "SparseAdam"])
def test_dense_and_sparse_gradients_in_turn(name):
    same(lambda library: steps(library, lambda optim, params: getattr(optim, name)(params, lr=0.1), "mixed"))


@pytest.mark.parametrize(
    "name", "Adam AdamW Adamax Adadelta ASGD NAdam RAdam RMSprop Rprop Adafactor Muon".split()
)
def test_other_optimizers_refuse(name):
    with pytest.raises(RuntimeError) as theirs:
        steps(torch, lambda optim, params: getattr(optim, name)(params))
    with pytest.raises(RuntimeError) as ours:
        steps(weft, lambda optim, params: getattr(optim, name)(params))
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("name", ["SGD", "Adagrad", "SparseAdam"])
def test_gradients_of_single_elements(name):
    def program(library):
        weight = library.ones(4, 3).t().requires_grad_()
        weight.grad = library.sparse_coo_tensor([[0, 1, 0], [2, 3, 2]], [1.0, 2.0, 3.0], (3, 4))
        getattr(library.optim, name)([weight], lr=0.1).step()
        return weight, weight.stride()

    same(program)


def test_sparse_adam_refuses_sparse_and_complex_parameters():
    same(lambda library: library.optim.SparseAdam([library.eye(2).to_sparse()]))
    same(lambda library: library.optim.SparseAdam([library.eye(2, dtype=library.complex64)]))


def test_lbfgs_makes_gradients_dense():
    def program(library):
        weight = table(library)
        optimizer = library.optim.LBFGS([weight], lr=0.1, max_iter=3)

        def closure():
            optimizer.zero_grad()
            loss = looked_up(library, weight, [1, 3])
            loss.backward()
            return loss

        optimizer.step(closure)
        return weight

    same(program)


def test_a_step_touches_only_the_rows_of_the_gradient():
    """Elements without an entry keep their bits, NaN among them."""
    weight = weft.full((4, 2), float("nan"))
    weight[1] = 1.0
    weight.requires_grad_()
    looked_up(weft, weight, [1, 1]).backward()
    weft.optim.SGD([weight], lr=0.25).step()
    assert weight[1].tolist() == [0.0, 0.0] and bool(weight[0].isnan().all())


def test_a_sparse_tensor_is_added_into_a_dense_one():
    def program(library):
        dense = library.zeros(3, 4, requires_grad=True)
        sparse = library.sparse_coo_tensor([[0, 1, 0], [2, 3, 2]], [1.0, 2.0, 3.0], (3, 4)).requires_grad_()
        total = (dense * 1).add_(sparse, alpha=2)
        total.pow(2).sum().backward()
        return total, dense.grad, sparse.grad.to_dense()

    same(program)


# ---- Clipping ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "clip",
    [
        lambda nn, params: nn.utils.clip_grad_norm_(params, 1.0),
        lambda nn, params: nn.utils.clip_grad_norm_(params, 1.0, float("inf")),
        lambda nn, params: nn.utils.clip_grad_value_(params, 0.5),
    ],
)
def test_clipping_is_that_of_the_dense_gradient(clip):
    found = []
    for sparse in (True, False):
        weight, other = table(weft), weft.ones(3, requires_grad=True)
        rows = weft.nn.functional.embedding(weft.tensor([1, 3, 1]), weight, sparse=sparse)
        (rows.pow(2).sum() + (other * 5).sum()).backward()
        norm = clip(weft.nn, [weight, other])
        found.append([norm, weight.grad.to_dense(), other.grad])
    assert unwrapped(plain(found[0])) == plain(found[1])


# ---- Sparse tensors in the graph -------------------------------------------------------------------------------------------


def matrix(library):
    return library.tensor([[0.0, 2.0, 0.0], [0.0, 0.0, -3.0], [5.0, 0.0, 0.0]]).to_sparse()


@pytest.mark.parametrize(
    "program",
    [
        lambda library, g, s: library.autograd.grad(g * 2, g, s),
        lambda library, g, s: library.autograd.grad((g * 2).to_dense().sum(), g),
        lambda library, g, s: (g * 2).backward(s) or g.grad.to_dense(),
        lambda library, g, s: (g * 2).backward(),
        lambda library, g, s: (g * 2).detach_().requires_grad,
        lambda library, g, s: g.requires_grad_(False).requires_grad,
    ],
)
def test_sparse_leaves_and_roots(program):
    same(lambda library: program(library, matrix(library).requires_grad_(), matrix(library)))


def test_hooks_and_retained_gradients_of_sparse_results():
    def program(library):
        g = matrix(library).requires_grad_()
        y = g * 2
        y.retain_grad()
        y.register_hook(lambda ct: ct * 3)
        y.to_dense().sum().backward()
        return y.grad.to_dense(), g.grad.to_dense()

    same(program)


def test_transforms_over_functions_with_sparse_constants():
    s, dense = matrix(weft), matrix(weft).to_dense()
    x = weft.arange(6.0).reshape(3, 2)
    for transform in (weft.func.grad, weft.func.jacrev, weft.func.jacfwd):
        found, expected = (transform(lambda x, m=m: (m @ x).sin().sum())(x) for m in (s, dense))
        assert weft.allclose(found, expected)
    assert weft.allclose(weft.vmap(lambda x: s @ x)(x.reshape(1, 3, 2)), (dense @ x).reshape(1, 3, 2))
    weight, index = weft.ones(4, 2), weft.tensor([1, 1])
    gradient = weft.func.grad(lambda w: weft.nn.functional.embedding(index, w, sparse=True).sum())(weight)
    assert gradient.is_sparse and gradient.to_dense()[:, 0].tolist() == [0, 2, 0, 0]


def test_gradients_with_strides_keep_all_entries():
    """The cotangent of a sum is one number for all elements."""

    def program(library):
        weight, found = table(library, rows=1), []
        for numbers in ([0], [0, 0], [0]):
            library.nn.functional.embedding(library.tensor(numbers), weight, sparse=True).sum().backward()
            found.append(weight.grad.clone())
        return found

    same(program)


# ---- Checks of derivatives -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
@pytest.mark.parametrize("masked", [True, False])
def test_gradcheck_and_gradgradcheck(layout, masked):
    blocksize = (3, 1) if layout[7] == "b" else None
    x = matrix(weft).to_dense().double()
    s = x.to_sparse(layout=getattr(weft, layout), blocksize=blocksize).requires_grad_()
    m = weft.arange(6.0, dtype=weft.float64).reshape(3, 2).requires_grad_()
    check, check_twice = weft.autograd.gradcheck, weft.autograd.gradgradcheck
    assert check(lambda s, m: (s * 2) @ m, (s, m), masked=masked, fast_mode=True)
    assert check(lambda s: s.sin(), s, masked=masked)
    assert check_twice(lambda s, m: (s @ m).pow(2), (s, m), masked=masked, fast_mode=True)
    as_sparse = weft.sparse.as_sparse_gradcheck(check)
    assert as_sparse(lambda s: s * 3, (s,), masked=masked)


def test_gradcheck_finds_a_wrong_derivative_of_a_sparse_result():
    class Wrong(weft.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.to_sparse()

        @staticmethod
        def backward(ctx, ct):
            return ct.to_dense() * 2

    x = weft.arange(1.0, 5.0, dtype=weft.float64).reshape(2, 2).requires_grad_()
    assert weft.autograd.gradcheck(lambda x: x.to_sparse(), x)
    assert not weft.autograd.gradcheck(Wrong.apply, x, raise_exception=False)


@pytest.mark.parametrize("entries", [1, 2])
def test_the_gradient_of_a_leaf_does_not_say_that_it_is_coalesced(entries):
    flags = []
    for lib in (torch, weft):
        x = lib.sparse_coo_tensor([list(range(entries))], [2.0] * entries, (3,)).coalesce().requires_grad_()
        (x * 2).to_dense().sum().backward()
        flags.append(x.grad.is_coalesced())
    assert flags[0] == flags[1] == (entries == 1)
