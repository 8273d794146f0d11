"""Random ops against PyTorch: one expression, both libraries, the same bits, strides and generator state."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import torch as oracle

import weft

BASE = np.float32([[((5 * i + 3 * j) % 7) / 7 for j in range(5)] for i in range(4)])
P, M, S = BASE[0], BASE.T, BASE[:, ::2]  # a vector; dense but permuted; with gaps
FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]


def evaluate(library, expression):
    """The value, or the error's type and the first line of its message."""
    library.manual_seed(7)
    p, m, s = map(library.from_numpy, (P.copy(), M, S))
    names = {
        "torch": library,
        "np": np,
        "nan": np.nan,
        "inf": np.inf,
        "x": library.zeros(40),
        "p": p,
        "m": m,
        "s": s,
    }
    names["g"] = library.Generator().manual_seed(3)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(expression, names)
    except Exception as error:
        return type(error), str(error).splitlines()[0]


def elements(tensor):
    if "bfloat16" in str(tensor.dtype):
        tensor = tensor.float()
    return tensor.detach().resolve_conj().numpy() if "complex32" not in str(tensor.dtype) else None


def assert_same(ours, theirs):
    if not isinstance(theirs, oracle.Tensor):
        assert ours == theirs
        return
    assert isinstance(ours, weft.Tensor), ours
    assert (str(ours.dtype), tuple(ours.shape), ours.stride()) == (
        str(theirs.dtype),
        tuple(theirs.shape),
        theirs.stride(),
    )
    assert ours.requires_grad == theirs.requires_grad
    assert ours.is_meta == theirs.is_meta
    if not ours.is_meta and elements(theirs) is not None:
        np.testing.assert_array_equal(elements(ours), elements(theirs))


def check(expression):
    theirs = evaluate(oracle, expression)
    assert_same(evaluate(weft, expression), theirs)
    np.testing.assert_array_equal(weft.get_rng_state().numpy(), oracle.get_rng_state().numpy())


NEW = """
torch.rand(3)
torch.rand(2, 3)
torch.rand((2, 3))
torch.rand([])
torch.rand(size=(4,))
torch.rand(0, 3)
torch.rand(3, generator=g)
torch.rand(3, out=torch.zeros(3, dtype=torch.float64))
torch.rand(5, out=torch.zeros(0))
torch.rand(3, device='meta')
torch.rand(3, device='meta', dtype=torch.int64)
torch.randn(3)
torch.randn(5, 7)
torch.randn(8, dtype=torch.complex64)
torch.randn(7, dtype=torch.complex128)
torch.rand(5, dtype=torch.complex64)
torch.randn(40, dtype=torch.complex32)
torch.rand_like(m)
torch.randn_like(m)
torch.rand_like(m, memory_format=torch.contiguous_format)
torch.randn_like(m, dtype=torch.float64)
torch.rand_like(s)
torch.rand_like(m, generator=g)
torch.randint(5, (3,))
torch.randint(-3, 5, (3, 2))
torch.randint(high=5, size=(3,))
torch.randint(2, 5, size=[3])
torch.randint(low=2, high=9, size=(3,), dtype=torch.float32)
torch.randint(2, (9,), dtype=torch.bool)
torch.randint(0, 2**40, (5,), generator=g)
torch.randint(0, 10, (3,), out=torch.zeros(0, dtype=torch.int32))
torch.randint(0, 10, (3,), device='meta')
torch.randint_like(m, 5)
torch.randint_like(m, 3, 50, dtype=torch.int32)
torch.randint_like(m, low=3, high=5)
torch.randperm(0)
torch.randperm(1)
torch.randperm(300)
torch.randperm(256, dtype=torch.uint8)
torch.randperm(40, dtype=torch.bfloat16)
torch.randperm(4, generator=g)
torch.randperm(4, out=torch.zeros(0))
torch.randperm(4, device='meta')
torch.normal(0., 1., (3,))
torch.normal(2, 3, size=(40,), dtype=torch.float64)
torch.normal(p, 2.)
torch.normal(p)
torch.normal(2., m)
torch.normal(m, torch.ones(5, 1))
torch.normal(m, m)
torch.normal(p.double(), p)
torch.normal(p, p.double())
torch.normal(mean=2., std=p)
torch.normal(p, 1., generator=g)
torch.bernoulli(p)
torch.bernoulli(m)
torch.bernoulli(m, .5)
p.bernoulli()
p.bernoulli(.3, generator=g)
torch.bernoulli(p.double())
torch.bernoulli(p.bfloat16())
torch.bernoulli(torch.ones(9, dtype=torch.int64), p=.5)
torch.bernoulli(p, out=torch.zeros(0, dtype=torch.int64))
torch.multinomial(p, 2)
torch.multinomial(p.expand(4, -1), 1)
torch.multinomial(m, 3)
torch.multinomial(m.contiguous(), 1)
torch.multinomial(s, 2)
torch.multinomial(p, 50, True)
torch.multinomial(m, 50, replacement=True, generator=g)
p.multinomial(1)
torch.multinomial(p.half(), 5, True)
torch.multinomial(torch.ones(0, 3), 1)
torch.multinomial(p, 2, out=torch.zeros(0, dtype=torch.int64))
torch.poisson(m)
torch.poisson(torch.tensor([30.] * 50))
torch.poisson(p.half())
torch.poisson(p, generator=g)
torch.binomial(torch.tensor([100.] * 50), torch.tensor([.3] * 50))
torch.binomial(torch.tensor([[9.]]), m.contiguous())
torch.binomial(torch.tensor([9.]), p)
torch.binomial(torch.tensor([9.] * 5).double(), p.double(), generator=g)
""".strip().splitlines()


@pytest.mark.parametrize("expression", NEW)
def test_new_tensors(expression):
    check(expression)


METHODS = """
uniform_()
uniform_(-3.7, 5.123)
uniform_(to=3)
uniform_(**{'from': -1, 'to': 3})
uniform_(generator=g)
normal_()
normal_(1.3, 2.7)
normal_(std=2, mean=1)
exponential_()
exponential_(1.7)
exponential_(lambd=inf)
cauchy_(.1, 1.7)
log_normal_()
log_normal_(.1, 1.7)
""".strip().splitlines()

METHODS_FOR_INTEGERS = """
geometric_(.3)
bernoulli_()
bernoulli_(.3)
random_()
random_(5)
random_(3, 101)
random_(to=3)
random_(0, to=3)
""".strip().splitlines()


@pytest.mark.parametrize("method", METHODS + METHODS_FOR_INTEGERS)
def test_methods(method):
    for dtype in FLOATS if method in METHODS else FLOATS + INTEGERS:
        check(f"x.to(torch.{dtype}).{method}")


@pytest.mark.parametrize(
    "method",
    [
        "uniform_()",
        "normal_(1, 2)",
        "random_(9)",
        "bernoulli_(.3)",
        "bernoulli_(torch.from_numpy(np.eye(4).T))",
    ],
)
@pytest.mark.parametrize("target", [
    "np.zeros((4, 4), 'f4').T", "np.zeros((4, 8), 'f4')[:, ::2]", "np.zeros((8, 4), 'f4').T[:, ::2]",
    "np.zeros((6, 4), 'f4')[1:5]", "np.zeros((4, 4, 4), 'f4').transpose(2, 0, 1)[1]", "np.zeros((4, 4)).T",
])  # fmt: skip
def test_order_of_elements(target, method):
    check(f"torch.from_numpy({target}).{method}")


@pytest.mark.parametrize("method", ["uniform_()", "normal_(1, 2)"])
@pytest.mark.parametrize("target", ["np.zeros((4, 5), 'c8')", "np.zeros((3, 2), 'c16').T"])
def test_complex(target, method):
    check(f"torch.from_numpy({target}).{method}")


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "int64", "uint8", "uint64", "uint16"]
)
@pytest.mark.parametrize(
    "bounds", ["-5, 5", "5, 5", "-2**33, 2**33", *(f"0, 2**{k}" for k in (24, 27, 28, 63))]
)
def test_ranges_of_integers(bounds, dtype):
    check(f"torch.zeros(9, dtype=torch.{dtype}).random_({bounds})")


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "int64", "uint8", "uint64", "uint16"]
)
@pytest.mark.parametrize(
    "bounds", ["0, 2**24 + 5", "0, 2**27 + 3", "0, 2**28 - 1", "-2**63, None", "3, None", "0, None"]
)
def test_odd_ranges_of_integers(bounds, dtype):
    check(f"torch.zeros(9, dtype=torch.{dtype}).random_({bounds})")


ERRORS = """
x.uniform_(1, 0)
x.uniform_(0, inf)
x.uniform_(-1e39, 1)
x.uniform_(-3e38, 3e38)
x.half().uniform_(-1e5, 1)
x.uniform_(0, 1, 3)
x.uniform_(generator=3)
x.uniform_('a')
x.long().uniform_()
x.to(torch.uint16).uniform_()
x.normal_(0, -1)
x.normal_(0, nan)
x.long().normal_()
x.exponential_(0)
x.exponential_(nan)
x.int().exponential_()
x.geometric_(0)
x.geometric_(1)
x.bool().geometric_(.5)
x.cauchy_(0, 0)
x.int().cauchy_()
x.log_normal_(0, 0)
x.log_normal_(0, -1)
x.int().log_normal_()
x.bernoulli_(-1)
x.bernoulli_(2)
x.cfloat().bernoulli_()
p.bernoulli_(torch.tensor([2., 1, 0, 0, 0]))
p.bernoulli_(p.long())
torch.bernoulli(torch.tensor([nan, 1]))
torch.bernoulli(p.long())
x.cfloat().random_()
x.cfloat().random_(3)
torch.randint(5, 5, (3,))
torch.randint(5, 3)
torch.randint(5.5, (3,))
torch.randint(1, 300, (3,), dtype=torch.uint8)
torch.randint(-1, 3, (3,), dtype=torch.uint8)
torch.randint(0, 2**63, (3,))
torch.randperm(-1)
torch.randperm(300, dtype=torch.uint8)
torch.randperm(3000, dtype=torch.float16)
torch.randperm(2.5)
torch.randperm(3, dtype=torch.bool)
torch.normal(p, std=-1.)
torch.normal(p, torch.tensor(-1.))
torch.normal(p, p.cfloat())
torch.normal(p.long(), 1.)
torch.normal(0., -1., (3,))
torch.rand(-3)
torch.rand(3, dtype=torch.int64)
torch.rand(3, dtype=torch.float64, out=p)
torch.multinomial(p, 6)
torch.multinomial(p, 0)
torch.multinomial(torch.ones(2, 2, 3), 1)
torch.multinomial(p.long(), 1)
torch.multinomial(torch.tensor([-1., 2]), 1)
torch.multinomial(torch.tensor([inf, 2]), 1)
torch.multinomial(torch.zeros(2), 1)
torch.multinomial(torch.tensor([-1., 2]), 2, True)
torch.multinomial(torch.tensor([inf, 2]), 2, True)
torch.multinomial(torch.zeros(2), 2, True)
torch.multinomial(p, 2, out=torch.zeros(1))
torch.multinomial(torch.ones(3, 0), 1)
torch.poisson(torch.tensor([-9.]))
torch.poisson(torch.tensor([nan]))
torch.poisson(p.long())
torch.binomial(p.long(), p)
torch.binomial(p.double(), p)
torch.binomial(p.half(), p.half())
torch.manual_seed(2**64)
torch.manual_seed('a')
torch.Generator().manual_seed(1.5)
torch.Generator().manual_seed(True)
torch.set_rng_state(3)
torch.set_rng_state(p)
torch.set_rng_state(torch.zeros(5055, dtype=torch.uint8))
g.set_state(torch.zeros(5056, dtype=torch.uint8))
g.get_offset()
torch.Generator('meta')
""".strip().splitlines()


@pytest.mark.parametrize("expression", ERRORS)
def test_errors(expression):
    check(expression)


@pytest.mark.parametrize(
    "expression",
    ["torch.rand()", "torch.rand(3, foo=1)", "torch.normal(0., 1.)", "torch.normal(p, 1., (3,))"],
)
def test_calls_that_fit_no_signature(expression):
    assert evaluate(weft, expression)[0] is evaluate(oracle, expression)[0] is TypeError


@pytest.mark.parametrize("method", ["uniform_()", "normal_()", "exponential_()", "bernoulli_()", "random_()"])
def test_elements_that_share_memory_are_refused(method):
    check(f"torch.from_numpy(np.broadcast_to(np.zeros(1), (3,))).{method}")


def test_filling_counts_as_a_write():
    x = weft.zeros(3)
    before = x._storage.version
    x.uniform_()
    assert x._storage.version == before + 1


def test_state_is_exchanged_with_torch():
    weft.manual_seed(5)
    weft.randn(3)
    oracle.set_rng_state(oracle.from_numpy(weft.get_rng_state().numpy()))
    np.testing.assert_array_equal(weft.randn(5).numpy(), oracle.randn(5).numpy())
    weft.set_rng_state(weft.from_numpy(oracle.get_rng_state().numpy()))
    np.testing.assert_array_equal(weft.randn(50).numpy(), oracle.randn(50).numpy())


def test_fork_rng_leaves_the_generator_as_it_was():
    weft.manual_seed(1)
    with weft.random.fork_rng():
        inside = weft.rand(3).tolist()
    assert weft.rand(3).tolist() == inside
    with weft.random.fork_rng(enabled=False):
        weft.rand(1)
    assert weft.rand(3).tolist() != inside


def test_a_seed_from_the_system():
    assert weft.seed() == weft.initial_seed() == weft.default_generator.initial_seed()


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g)), weft.Generator.clone_state],
)
def test_a_copy_of_a_generator_continues_on_its_own(duplicate):
    generator = weft.Generator().manual_seed(3)
    weft.rand(5, generator=generator)
    other = duplicate(generator)
    expected = weft.rand(5, generator=generator).tolist()
    assert weft.rand(5, generator=other).tolist() == expected
