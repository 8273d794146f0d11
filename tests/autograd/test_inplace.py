"""Writes in place, through bases and views: random programs must do in weft what they do in PyTorch."""

import copy
import gc
import pickle
import random

import numpy as np
import pytest
import torch

import weft

# Views that both libraries let us write through; the name and what it takes.
VIEWS = {
    "t": (2, lambda x: x.t()),
    "transpose": (2, lambda x: x.transpose(0, 1)),
    "select": (1, lambda x: x[-1]),
    "slice": (1, lambda x: x[1:]),
    "steps": (1, lambda x: x[::2]),
    "unsqueeze": (0, lambda x: x.unsqueeze(-1)),
    "flat": (0, lambda x: x.view(-1)),
    "diagonal": (2, lambda x: x.diagonal()),
    "alias": (0, lambda x: x[...]),
    "real": (0, lambda x: x.real if x.is_complex() else x[...]),
    "as real": (0, lambda x: x.real.unsqueeze(0) if x.is_complex() else x[...]),
    "imag": (0, lambda x: x.imag if x.is_complex() else x[...]),
    "conj": (0, lambda x: x.conj() if x.is_complex() else x[...]),
    "expand": (0, lambda x: x.expand(2, *x.shape)),
}
# In place: the target and another tensor, whose shape may or may not fit.
WRITES = {
    "mul_": lambda x, other: x.mul_(other),
    "add_": lambda x, other: x.add_(other),
    "mul_ number": lambda x, other: x.mul_(1.5),
    "copy_": lambda x, other: x.copy_(other),
    "zero_": lambda x, other: x.zero_(),
    "fill_": lambda x, other: x.fill_(0.5),
    "sigmoid_": lambda x, other: x.sigmoid_(),
    "square_": lambda x, other: x.square_(),
    "neg_": lambda x, other: x.neg_(),
    "x[0] =": lambda x, other: x.__setitem__(0, other),
    "x[1:] =": lambda x, other: x.__setitem__(slice(1, None), 0.25),
    "x[...] =": lambda x, other: x.__setitem__(..., other),
}
READS = {
    "sin": lambda x, other: x.sin(),
    "square": lambda x, other: x * x,
    "product": lambda x, other: x * other,
    "clone": lambda x, other: x.clone(),
}


def programs(seed, length=12):
    """Steps as (kind, name, index of a tensor, index of another)."""
    rng = random.Random(seed)
    kinds = [("view", VIEWS), ("write", WRITES), ("write", WRITES), ("read", READS)]
    for _ in range(length):
        kind, table = rng.choice(kinds)
        yield kind, rng.choice(sorted(table)), rng.random(), rng.random()


def start(lib, seed):
    """Leaves, and tensors to write into."""
    rng = np.random.default_rng(seed)
    dtype = "complex128" if seed % 4 == 3 else "float64"

    def tensor(*shape):
        values = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype == "complex128" else 0)
        return lib.from_numpy(np.asarray(values, dtype))

    leaves = [tensor(3, 3).requires_grad_(), tensor(3).requires_grad_()]
    buffer = tensor(3, 3) if seed % 2 else leaves[0].clone()
    return leaves, [buffer, leaves[1].clone(), *leaves]


def facts(tensor, first):
    values = tensor.detach().resolve_conj().resolve_neg()
    return {
        "values": np.array(values.numpy()),
        "requires_grad": tensor.requires_grad,
        "is_leaf": tensor.is_leaf,
        "is_view": tensor._is_view(),
        "version": tensor._version - first,
    }


def name(tensor):
    node = tensor.grad_fn
    return None if node is None else type(node).__name__


def root(tensor):
    return tensor if tensor._base is None else tensor._base


class Run:
    """A program in one of the libraries."""

    def __init__(self, lib, seed):
        self.lib = lib
        self.leaves, self.tensors = start(lib, seed)
        self.versions = [each._version for each in self.tensors]  # when they were made

    def step(self, kind, what, one, other):
        tensors = self.tensors
        x, y = tensors[int(one * len(tensors))], tensors[int(other * len(tensors))]
        if kind == "view":
            dims, view = VIEWS[what]
            if x.dim() >= dims:
                tensors.append(view(x))
        elif kind == "read":
            tensors.append(READS[what](x, y))
        else:
            if root(x) is not root(y):  # PyTorch destroys what x.mul_(x) needs
                WRITES[what](x, y)
        self.versions += [each._version for each in tensors[len(self.versions) :]]

    def gradients(self):
        """The first and the second derivatives."""
        grad = self.lib.autograd.grad
        roots = [each for each in self.tensors if each.requires_grad]
        ones = [self.lib.ones_like(each) for each in roots]
        first = grad(roots, self.leaves, ones, allow_unused=True, create_graph=True)
        roots = [each for each in first if each is not None and each.requires_grad]
        weights = [each.detach().cos() for each in roots]
        return first, grad(roots, self.leaves, weights, allow_unused=True) if roots else ()


def attempt(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error)


REPEATED = "more than one element of the written-to tensor"


def gradients_of_torch(run):
    """PyTorch's gradients; None where its own derivatives write into expanded tensors, which it refuses to do."""
    try:
        return run.gradients()
    except RuntimeError as error:
        return None if REPEATED in str(error) else type(error)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(200))
def test_random_programs(seed):
    ours, theirs = Run(weft, seed), Run(torch, seed)
    story = []
    for step in programs(seed):
        story.append(step)
        expected, got = attempt(theirs.step, *step), attempt(ours.step, *step)
        assert got == expected, story
        for k, (one, other) in enumerate(zip(ours.tensors, theirs.tensors, strict=True)):
            mine, wanted = facts(one, ours.versions[k]), facts(other, theirs.versions[k])
            np.testing.assert_allclose(mine.pop("values"), wanted.pop("values"), 1e-9, err_msg=str(story))
            assert mine == wanted, story
            if not other.is_complex() and not (other._is_view() and other._base.is_complex()):
                assert name(one) == name(other), story
            bases = [
                next((k for k, each in enumerate(run.tensors) if each is t._base), None)
                for run, t in ((ours, one), (theirs, other))
            ]
            assert bases[0] == bases[1], story
    expected, got = gradients_of_torch(theirs), attempt(ours.gradients)
    if expected is None:
        return
    assert isinstance(got, tuple) == isinstance(expected, tuple), (got, expected, story)
    if not isinstance(expected, tuple):
        assert got is expected
        return
    for one, other in zip((*got[0], *got[1]), (*expected[0], *expected[1]), strict=True):
        assert (one is None) == (other is None), story
        if other is not None:
            np.testing.assert_allclose(
                one.detach().resolve_conj().numpy(),
                other.detach().resolve_conj().resolve_neg().numpy(),
                1e-8,
                1e-12,
                err_msg=str(story),
            )


def leaf(lib, *shape):
    return lib.ones(*shape, dtype=lib.float64).requires_grad_()


def no_grad_view(lib):
    base = leaf(lib, 3).clone()
    with lib.no_grad():
        view = base[1:]
    return view


REFUSED = {
    "leaf": lambda lib: leaf(lib, 3).mul_(2),
    "view of leaf": lambda lib: leaf(lib, 3)[0].zero_(),
    "item of leaf": lambda lib: leaf(lib, 3).__setitem__(0, 1.0),
    "one of several views": lambda lib: leaf(lib, 3).clone().unbind()[0].mul_(2),
    "one of several pieces": lambda lib: leaf(lib, 4).clone().split(2)[1].add_(1),
    "view of one of several": lambda lib: leaf(lib, 4).clone().chunk(2)[1][0].add_(1),
    "row of an iteration": lambda lib: next(iter(leaf(lib, 2, 2).clone())).add_(1),
    "view made in no_grad": lambda lib: no_grad_view(lib).mul_(2),
    "result in view made in no_grad": lambda lib: no_grad_view(lib).copy_(leaf(lib, 2)),
    "expanded": lambda lib: leaf(lib, 3).clone().expand(2, 3).mul_(2),
    "metadata of leaf": lambda lib: leaf(lib, 1, 3).squeeze_(0),
    "resize": lambda lib: leaf(lib, 3).clone().resize_(2),
}
ALLOWED = {
    "unsafe pieces": lambda lib: lib.unsafe_split(leaf(lib, 4).clone(), 2)[1].add_(1),
    "view made in no_grad, in no_grad": lambda lib: lib.no_grad()(lambda: no_grad_view(lib).mul_(2))(),
    "leaf in no_grad": lambda lib: lib.no_grad()(lambda: leaf(lib, 3).mul_(2))(),
    "metadata": lambda lib: leaf(lib, 1, 3).clone().squeeze_(0),
    "detached": lambda lib: leaf(lib, 3).detach().mul_(2),
}


@pytest.mark.parametrize("case", REFUSED)
def test_writes_that_are_refused(case):
    assert attempt(REFUSED[case], torch) is attempt(REFUSED[case], weft) is RuntimeError


@pytest.mark.parametrize("case", ALLOWED)
def test_writes_that_are_allowed(case):
    expected, got = ALLOWED[case](torch), ALLOWED[case](weft)
    np.testing.assert_array_equal(got.detach().numpy(), expected.detach().numpy())
    assert (got.requires_grad, got.is_leaf) == (expected.requires_grad, expected.is_leaf)


def test_views_made_in_no_grad_require_grad_but_have_no_history():
    assert facts(no_grad_view(weft), 0).items() >= {("requires_grad", True), ("is_leaf", True)}
    assert no_grad_view(torch).requires_grad and no_grad_view(torch).is_leaf


def test_retained_gradients_are_those_of_the_latest_value():
    found = []
    for lib in (weft, torch):
        y = leaf(lib, 3) * 2
        y.retain_grad()
        y.mul_(5)
        (y * 3).sum().backward()
        found.append(y.grad.tolist())
    assert found[0] == found[1] == [3.0, 3.0, 3.0]


def test_a_loop_that_fills_a_buffer():
    x = leaf(weft, 4)
    rows = weft.zeros(10, 4, dtype=weft.float64)
    for k in range(10):
        rows[k] = x * k
    rows.sum().backward()
    assert x.grad.tolist() == [45.0] * 4


def test_views_taken_before_the_base_took_part_see_writes():
    base = weft.zeros(3, dtype=weft.float64)
    view, x = base[1:], leaf(weft, 3)
    base.copy_(x * 2)
    (view * view).sum().backward()
    assert x.grad.tolist() == [0.0, 8.0, 8.0]


def test_what_autograd_keeps_is_not_pickled_or_copied():
    x = leaf(weft, 3)
    views = [x[1:], no_grad_view(weft)]
    x.grad = weft.ones_like(x)
    assert pickle.loads(pickle.dumps(x)).__dict__ == {} != x.__dict__
    assert copy.deepcopy(x).grad.tolist() == [1.0] * 3
    assert copy.deepcopy(views[1]).mul(2).tolist() == [2.0] * 2


@pytest.mark.parametrize(
    "method, args", [("t_", ()), ("squeeze_", ()), ("unsqueeze_", (0,)), ("transpose_", (0, 1))]
)
def test_metadata_in_place_without_grad_leaves_a_leaf(method, args):
    for lib in (torch, weft):
        leaf = lib.ones(1, 3, requires_grad=True)
        before = leaf._version
        with lib.no_grad():
            getattr(leaf, method)(*args)
        assert leaf.requires_grad and leaf.is_leaf and leaf._version == before + 1
        leaf.sum().backward()
        assert leaf.grad.shape == leaf.shape


COMPARISONS = ("lt_", "le_", "gt_", "ge_", "eq_", "ne_")


@pytest.mark.parametrize("through", ["the tensor", "a view", "itself"])
@pytest.mark.parametrize("kind", ["constant", "needs grad", "number"])
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_in_place_pass_on_zero(name, kind, through):
    def program(lib):
        x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
        other = lib.tensor([1.0, 5.0, 1.0], requires_grad=kind == "needs grad")
        y = x * 2
        target = y[1:] if through == "a view" else y
        operand = 2.0 if kind == "number" else other[1:] if through == "a view" else other
        if through == "itself":
            operand = target
        getattr(target, name)(operand)
        (y * lib.tensor([1.0, 10.0, 100.0])).sum().backward()
        grads = [None if each.grad is None else each.grad.tolist() for each in (x, other)]
        return y.tolist(), type(y.grad_fn).__name__, y.requires_grad, grads

    assert program(weft) == program(torch)


@pytest.mark.parametrize("name", ["logical_and_", "logical_or_", "logical_xor_", "logical_not_"])
def test_logic_in_place_passes_on_zero(name):
    """PyTorch keeps the history of the values that were overwritten, and so gives a wrong gradient."""
    x = weft.tensor([1.0, 2.0, 0.0], requires_grad=True)
    y = x * 2
    getattr(y[1:], name)(*([] if name == "logical_not_" else [weft.tensor([1.0, 1.0])]))
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0]


def test_comparison_in_place_of_a_tensor_without_history():
    def program(lib):
        x = lib.tensor([1.0, 2.0], requires_grad=True)
        y = lib.ones(2).lt_(x)
        (y.sum() + x.sum()).backward()
        return y.requires_grad, y.tolist(), x.grad.tolist()

    assert program(weft) == program(torch)


def test_comparison_in_place_has_zero_tangents():
    _, tangent = weft.func.jvp(lambda x: (x * 2).lt_(3.0) + x, (weft.ones(3),), (weft.ones(3),))
    assert tangent.tolist() == [1.0, 1.0, 1.0]


IN_PLACE = [
    "y.cumprod_(0)", "y.cumsum_(1)", "y.renorm_(2, 0, 1.0)", "y.nan_to_num_(0.0)", "y.ldexp_(lib.tensor(2))",
    "y.clamp_(0.5, 2.0)", "y.tril_()", "y.sinc_()", "y.logit_(0.1)", "y.float_power_(2.0)", "y.mvlgamma_(1)",
]  # fmt: skip


@pytest.mark.parametrize("write", IN_PLACE)
def test_what_a_write_reads_of_itself_survives_it(write):
    found = []
    for lib in (torch, weft):
        x = lib.tensor([[0.3, 0.7], [0.2, 0.9]], dtype=lib.float64, requires_grad=True)
        y = x * 1.5
        eval(write, {"lib": lib, "y": y})
        (gradient,) = lib.autograd.grad((y * y * x).sum(), x)
        found.append(gradient.tolist())
    assert found[1] == [pytest.approx(row, rel=1e-9) for row in found[0]]


OVERWRITTEN = {
    "sort": lambda lib, x: x.sort().values,
    "median": lambda lib, x: x.median(0).values,
    "max": lambda lib, x: x.max(0).values,
    "cummax": lambda lib, x: x.cummax(0).values,
    "topk": lambda lib, x: x.topk(2).values,
    "kthvalue": lambda lib, x: x.kthvalue(2).values,
    "mode": lambda lib, x: x.mode().values,
    "var": lambda lib, x: x.var(),
    "var_mean": lambda lib, x: lib.var_mean(x)[0],
    "std_mean": lambda lib, x: lib.std_mean(x)[1],
    "frexp": lambda lib, x: lib.frexp(x).mantissa,
}


@pytest.mark.parametrize("name", sorted(OVERWRITTEN))
def test_values_that_no_rule_uses_may_be_overwritten(name):
    def gradient(lib):
        x = lib.tensor([3.0, 1.0, 2.0], requires_grad=True)
        OVERWRITTEN[name](lib, x).mul_(2).sum().backward()
        return x.grad.tolist()

    assert gradient(weft) == pytest.approx(gradient(torch))


@pytest.mark.parametrize("name", ["cumsum_", "cumprod_"])
def test_scans_in_place_keep_what_they_read(name):
    def gradient(lib):
        x = lib.tensor([3.0, 1.0, 2.0], requires_grad=True)
        getattr(x * 2, name)(0).sum().backward()
        return x.grad.tolist()

    assert gradient(weft) == gradient(torch)
    with pytest.raises(RuntimeError, match="leaf"):
        getattr(weft.zeros(0, requires_grad=True), name)(0)


def test_a_view_added_to_itself():
    """Both operands pass a cotangent on to what the view showed before."""
    for lib in (torch, weft):
        x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
        y = x * 1
        view = y[:2]
        view.add_(view, alpha=5)
        y.sum().backward()
        assert x.grad.tolist() == [6, 6, 1]


@pytest.mark.parametrize("name", ["elu_", "celu_", "leaky_relu_"])
def test_activations_in_place_with_a_negative_slope(name):
    """PyTorch refuses to differentiate these, because the result does not tell which inputs were negative."""
    functional = weft.nn.functional
    x = weft.tensor([-1.0, 2.0, -3.0], requires_grad=True)
    expected = weft.autograd.grad(getattr(functional, name[:-1])(x, -0.5).sum(), x)[0]
    found = weft.autograd.grad(getattr(functional, name)(x * 1, -0.5).sum(), x)[0]
    assert found.tolist() == expected.tolist()


def test_writes_of_no_elements():
    """They are steps like all others, and leaves refuse them as well."""

    def program(lib):
        x = lib.zeros(2, 0, requires_grad=True)
        y = x * 2
        y[1:, lib.tensor([], dtype=lib.int64)] = 1
        y.sum().backward()
        return tuple(x.grad.shape)

    assert program(weft) == program(torch)
    x = weft.zeros(2, 0, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        x[...] = weft.zeros(0, requires_grad=True)


def test_a_tensor_written_into_itself_with_another_shape():
    for lib in (torch, weft):
        x, y = lib.tensor(0.5), lib.ones(1, 1)
        x[None] = x
        y[lib.tensor([[True]])] = y
        assert (x.item(), y.item()) == (0.5, 1.0)


def test_out_refuses_what_requires_grad_in_a_list():
    for lib in (torch, weft):
        for function in (lib.cat, lib.stack, lib.hstack):
            with pytest.raises(RuntimeError, match="automatic differentiation"):
                function([lib.ones(1, requires_grad=True)], out=lib.empty(1))


def test_a_write_to_no_elements_keeps_what_its_backward_needs():
    for library in (torch, weft):
        leaf = library.zeros(0, requires_grad=True)
        leaf.clone().abs_().sum().backward()
        assert leaf.grad.shape == (0,)


OVERWRITES = {
    "copy_": lambda t, x: t.copy_(x),
    "copy_ of one": lambda t, x: t.copy_(x[0]),
    "copy_ of doubles": lambda t, x: t.copy_(x.double()),
    "copy_ of itself": lambda t, x: t.copy_(t),
    "copy_ of constants": lambda t, x: t.copy_(x.detach()),
    "zero_": lambda t, x: t.zero_(),
    "fill_": lambda t, x: t.fill_(2.5),
    "fill_ of a tensor": lambda t, x: t.fill_(x.sum()),
}
TARGETS = {
    "result": lambda library, x: x * 3.0,
    "buffer": lambda library, x: library.zeros(2, 3),
    "buffer with a view": lambda library, x: with_view(library.zeros(2, 3)),
    "result with a view": lambda library, x: with_view(x * 3.0),
    "view": lambda library, x: (x * 3.0).view(2, 3),
    "retained": lambda library, x: retained(x * 3.0),
    "leaf": lambda library, x: library.ones(2, 3, requires_grad=True),
    "integers": lambda library, x: library.zeros(2, 3, dtype=library.int64),
}
KEPT_VIEWS = []


def with_view(tensor):
    KEPT_VIEWS.append(tensor[0])
    return tensor


def retained(tensor):
    tensor.retain_grad()
    return tensor


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("write", OVERWRITES)
def test_overwrites(target, write):
    if (target, write) == ("integers", "fill_ of a tensor"):
        pytest.skip("PyTorch raises an error of its own")

    def outcome(library):
        x = library.arange(6.0).view(2, 3).requires_grad_()
        told = []
        for _ in range(2):
            t = TARGETS[target](library, x)
            try:
                OVERWRITES[write](t, x)
            except RuntimeError:
                told.append("refused")
                continue
            told += [t.tolist(), t.requires_grad, t._version]
            if t.grad_fn is not None:
                followed = {type(node).__name__ for node, _ in t.grad_fn.next_functions if node is not None}
                told += [type(t.grad_fn).__name__, followed]
                (t * t).sum().backward()
                told += [
                    None if x.grad is None else x.grad.tolist(),
                    t.grad.tolist() if t.retains_grad else None,
                ]
            if KEPT_VIEWS:
                view = KEPT_VIEWS.pop()
                told += [view.tolist(), view.requires_grad, view.grad_fn is None]
        return told

    assert outcome(weft) == outcome(torch)


@pytest.mark.parametrize(
    "write",
    [
        lambda x, source, index: x.scatter_reduce_(0, index, source, "amax"),
        lambda x, source, index: x.index_reduce_(0, index, source, "mean"),
        lambda x, source, index: x.index_add_(0, index, source),
        lambda x, source, index: x.div_(source.sum()),
        lambda x, source, index: x[1:].scatter_reduce_(0, index[:2] // 2, source, "amax"),
    ],
)
def test_writes_into_new_memory_look_for_no_views(write, monkeypatch):
    """What the node itself saves is no view. Looking through all objects of a program takes milliseconds."""
    seen = []
    monkeypatch.setattr(gc, "get_referrers", lambda *objects: seen.append(objects) or [])
    source = weft.rand(3, requires_grad=True)
    write(weft.zeros(3), source, weft.tensor([0, 2, 0]))
    assert seen == []
