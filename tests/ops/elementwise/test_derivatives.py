"""First and second derivatives of elementwise ops, reductions and scans against PyTorch, special points included."""

import functools
import importlib
import itertools
import math
import sys

import numpy as np
import pytest
import torch

import weft
from weft.core.derivative import nondifferentiable
from weft.families.array_op import ArrayOp
from weft.families.custom_vjp import CustomVjp
from weft.families.map import Map
from weft.families.monoid_op import MonoidOp
from weft.ops.elementwise.pointwise import OPS

INF, NAN = math.inf, math.nan


# ---- What is compared ------------------------------------------------------------------------------------------------


def named(module, name):
    """`special.i0e`, `exp` or, of nn.functional, `gelu`."""
    for whole in (name, f"nn.functional.{name}"):
        try:
            return functools.reduce(getattr, whole.split("."), module)
        except AttributeError:
            continue
    raise LookupError(name)


def cotangent(lib, like, seed):
    """The same numbers in both libraries."""
    values = np.random.default_rng(seed).uniform(0.5, 1.5, (2, *like.shape))
    values = values[0] + 1j * values[1] if like.is_complex() else values[0]
    return lib.from_numpy(np.asarray(values)).to(like.dtype)


def is_nothing(cotangent):
    return cotangent is None or isinstance(cotangent, torch.Tensor) and cotangent._is_zerotensor()


def derivatives(lib, function, arrays, order):
    """Cotangents of the inputs, then those of the inputs for these, as arrays; None for what is constant."""
    inputs = [lib.from_numpy(np.array(each)).requires_grad_() for each in arrays]
    found = function(lib, *inputs)
    results = []
    for seed in range(order):
        found = [found] if not isinstance(found, (tuple, list)) else found
        found = [each for each in found if each is not None and each.requires_grad]
        if not found:
            break
        cotangents = [cotangent(lib, each, 10 * seed + k) for k, each in enumerate(found)]
        found = lib.autograd.grad(found, inputs, cotangents, create_graph=True, allow_unused=True)
        results.append([None if is_nothing(each) else np.array(each.tolist()) for each in found])
    return results


def check(function, *arrays, order=2, rtol=1e-9):
    """None and zeros mean the same, and PyTorch's tensors of zeros that have no memory."""
    with np.errstate(all="ignore"):
        actual, expected = (derivatives(lib, function, arrays, order) for lib in (weft, torch))
    for k in range(max(len(expected), len(actual))):
        for position, array in enumerate(arrays):
            sides = [side[k][position] if k < len(side) else None for side in (actual, expected)]
            sides = [np.zeros_like(array) if side is None else side for side in sides]
            np.testing.assert_allclose(
                *sides, rtol=rtol, atol=1e-12, err_msg=f"order {k + 1}, input {position}"
            )


# ---- No holes --------------------------------------------------------------------------------------------------------

# The modules whose rows are ops. In `ops/nn`, most rows are steps of graphs, and a graph has a derivative as a whole.
MODULES = sorted(
    name
    for name in sys.modules
    if name.startswith("weft.ops.") and not name.startswith("weft.ops.nn.") or name == "weft.ops.nn.dropout"
)
# PyTorch has no derivative of these either.
UNKNOWN = ("floor_divide", "heaviside")
# Parts of steps, which have derivatives as a whole.
PARTS = (
    "LOG", "LOG_SOFTMAX", "SOFTMAX", "SUM_EXP", "VAR", "STD", "_FINITE", "_LOG_ABOVE", "EXP_ABOVE", "DIVIDED",
    "_gamma_slope", "_beta_slope",
)  # fmt: skip


@pytest.mark.parametrize("module", MODULES)
def test_no_row_lacks_a_derivative(module):
    rows = {
        name: value
        for name, value in vars(importlib.import_module(module)).items()
        if isinstance(value, (Map, MonoidOp, CustomVjp, ArrayOp))
        and name not in PARTS
        and not name.startswith("_op")
    }
    rows |= OPS if module == "weft.ops.elementwise.pointwise" else {}
    assert [name for name, op in rows.items() if op.derivative is None and op.name not in UNKNOWN] == []


# ---- Rows of one or two operands -------------------------------------------------------------------------------------

POINTS = np.array((-2.5, -1.0, -0.5, 0.0, 0.3, 0.5, 1.0, 2.5))
COMPLEX_POINTS = np.array((0.5 + 0.3j, -1.2 + 0.7j, 0.4 - 0.9j, -0.3 - 0.2j, 1.5 + 0j))
PAIRS, COMPLEX_PAIRS = (np.array(list(itertools.product(each, each))).T for each in (POINTS, COMPLEX_POINTS))
# PyTorch knows only the derivative for the second operand; operands have different shapes.
PARTIAL, SHAPED = ("special.zeta", "igamma", "igammac"), ("prelu",)
DIFFERENTIABLE = {
    name: len(op.derivative.rules)
    for name, op in OPS.items()
    if op.derivative is not nondifferentiable and name not in PARTIAL + SHAPED
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_rows(name):
    points = (POINTS,) if DIFFERENTIABLE[name] == 1 else PAIRS
    # PyTorch's hardsigmoid divides by 6 in float32.
    rtol, order = (1e-7, 1) if name == "hardsigmoid" else (1e-9, 2)
    check(lambda lib, *xs: named(lib, name)(*xs), *points, order=order, rtol=rtol)


COMPLEX = [
    name
    for name in DIFFERENTIABLE
    if OPS[name].check is None
    and name not in ("hypot", "copysign", "frac")
    or name in ("abs", "neg", "logaddexp")
]


@pytest.mark.parametrize("name", COMPLEX)
def test_rows_of_complex_operands(name):
    points = (COMPLEX_POINTS,) if DIFFERENTIABLE[name] == 1 else COMPLEX_PAIRS
    check(lambda lib, *xs: named(lib, name)(*xs), *points)


@pytest.mark.parametrize("name", PARTIAL)
def test_rows_with_one_derivative(name):
    check(
        lambda lib, b: named(lib, name)(lib.tensor(2.5, dtype=lib.float64), b),
        np.array((0.3, 1.0, 2.5)),
        order=1,
    )
    a = weft.tensor(2.5, requires_grad=True)
    with pytest.raises(NotImplementedError, match="is not implemented"):
        named(weft, name)(a, a.detach()).backward()


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_pytorch_does_not_know(name):
    a = weft.tensor(2.5, requires_grad=True)
    with pytest.raises(NotImplementedError, match=f"derivative of {name} is not implemented"):
        named(weft, name)(a, weft.tensor(1.0)).backward()


# ---- Other elementwise functions -------------------------------------------------------------------------------------

F = "nn.functional."
A, B, C = (np.random.default_rng(seed).uniform(-2, 2, (3, 4)) for seed in range(3))
POSITIVE = np.abs(A) + 0.1
Z = A + 1j * B
FUNCTIONS = {
    "add": (lambda lib, a, b: lib.add(a, b, alpha=3), A, B),
    "add, broadcast": (lambda lib, a, b: a + b, A, B[0]),
    "add, complex alpha": (lambda lib, a, b: lib.add(a, b, alpha=1 + 2j), Z, Z[::-1]),
    "sub": (lambda lib, a, b: lib.sub(a, b, alpha=3), A, B),
    "rsub": (lambda lib, a: 2 - a, A),
    "mul": (lambda lib, a, b: a * b, A, B[:, :1]),
    "mul, real by complex": (lambda lib, a, b: a * b, A, Z),
    "mul, number": (lambda lib, a: a * (2 + 1j), Z),
    "div": (lambda lib, a, b: a / b, A, B),
    "div, real by complex": (lambda lib, a, b: a / b, A, Z),
    "div, number": (lambda lib, a: a / (2 + 1j), Z),
    "div, of a number": (lambda lib, a: 2 / a, Z),
    "div, trunc": (lambda lib, a, b: lib.div(a, b, rounding_mode="trunc"), A, B),
    "div, floor": (lambda lib, a, b: lib.div(a, b, rounding_mode="floor"), A, B),
    "remainder": (lambda lib, a, b: a % b, A, B),
    "remainder, number": (lambda lib, a: a % 0.7, A),
    "fmod": (lambda lib, a, b: lib.fmod(a, b), A, B),
    "fmod, number": (lambda lib, a: lib.fmod(a, 0.7), A),
    "lerp": (lambda lib, a, b, c: lib.lerp(a, b, c), A, B, C),
    "lerp, number": (lambda lib, a, b: lib.lerp(a, b, 0.3), A, B[0]),
    "lerp, complex": (lambda lib, a, b, c: lib.lerp(a, b, c), Z, Z[::-1], Z[:, ::-1]),
    "addcmul": (lambda lib, a, b, c: lib.addcmul(a, b, c, value=2), A, B, C),
    "addcdiv": (lambda lib, a, b, c: lib.addcdiv(a, b, c, value=2), A, B, C),
    "addcdiv, complex": (lambda lib, a, b, c: lib.addcdiv(a, b, c, value=2j), Z, Z[::-1], Z[:, ::-1]),
    **{f"pow {e}": (lambda lib, a, e=e: a**e, POSITIVE) for e in (0, 0.5, 1, 2, 3, -0.5, -1, -2, 2.5)},
    **{f"pow {e}, complex": (lambda lib, a, e=e: a**e, Z) for e in (0, 0.5, 1, 2, 3, -0.5, -1, -2, 2.5)},
    "pow, special points": (lambda lib, a, b: a**b, *PAIRS),
    "pow, of zero": (lambda lib, a: a**3, np.array((0.0, -0.0, -1.0))),
    "pow, tensors": (lambda lib, a, b: a**b, POSITIVE, B),
    "pow, complex": (lambda lib, a, b: a**b, *COMPLEX_PAIRS),
    "pow, real to complex": (lambda lib, a, b: a**b, POSITIVE, Z),
    **{f"pow, {base} to": (lambda lib, b, base=base: base**b, B) for base in (2, 0, -2)},
    "pow, complex number to": (lambda lib, b: (1 + 2j) ** b, Z),
    "float_power": (lambda lib, a, b: lib.float_power(a, b), POSITIVE, B),
    "float_power 3": (lambda lib, a: lib.float_power(a, 3), A),
    "nextafter": (lambda lib, a, b: lib.nextafter(a, b), *PAIRS),
    "nan_to_num": (lambda lib, a: lib.nan_to_num(a), np.array((1.0, NAN, INF, -INF))),
    "frexp": (lambda lib, a: lib.frexp(a)[0], A),
    "complex": (lambda lib, a, b: lib.complex(a, b), A, B),
    "polar": (lambda lib, a, b: lib.polar(a, b), A, B),
    "angle, complex": (lambda lib, a: lib.angle(a), Z),
    "round": (lambda lib, a: lib.round(a, decimals=1), A),
    "logit": (lambda lib, a: lib.logit(a), np.array((0.0, 0.2, 0.7, 1.0, 1.5, -1.0))),
    "logit, clamped": (lambda lib, a: lib.logit(a, 0.1), np.array((0.0, 0.1, 0.2, 0.7, 0.9, 1.5))),
    "xlogy, number": (lambda lib, a: lib.xlogy(a, 2.0) + lib.xlogy(2.0, a), POSITIVE),
    "clamp": (lambda lib, a: lib.clamp(a, 0.0, 1.0), POINTS),
    "clamp, min": (lambda lib, a: lib.clamp(a, min=0.0), POINTS),
    "clamp, max": (lambda lib, a: lib.clamp(a, max=0.5), POINTS),
    "clamp, tensors": (lambda lib, a, b, c: lib.clamp(a, b, c), A, B, C),
    "clamp_min": (lambda lib, a, b: lib.clamp_min(a, b), *PAIRS),
    "clamp_max": (lambda lib, a, b: lib.clamp_max(a, b), *PAIRS),
    "maximum, nan": (lambda lib, a, b: lib.maximum(a, b), np.array((1.0, NAN, NAN)), np.array((NAN, 1.0, NAN))),
    "fmax, nan": (lambda lib, a, b: lib.fmax(a, b), np.array((1.0, NAN, NAN)), np.array((NAN, 1.0, NAN))),
    "polygamma": (lambda lib, a: lib.polygamma(2, a), POSITIVE),
    "mvlgamma": (lambda lib, a: lib.mvlgamma(a, 3), POSITIVE + 2),
    "gelu, tanh": (lambda lib, a: named(lib, "gelu")(a, approximate="tanh"), A),
    **{
        name: (lambda lib, a, name=name: named(lib, F + name)(a), np.array((*POINTS, 6.0, 40.0, 800.0, -800.0)))
        for name in "silu mish softplus elu selu celu leaky_relu relu hardtanh relu6 logsigmoid hardshrink".split()
        + "softshrink tanhshrink hardswish softsign".split()
    },
    "softplus, scaled": (lambda lib, a: named(lib, F + "softplus")(a, 2.0, 3.0), POINTS),
    "elu, scaled": (lambda lib, a: named(lib, F + "elu")(a, 2.0), POINTS),
    "celu, scaled": (lambda lib, a: named(lib, F + "celu")(a, 2.0), POINTS),
    "leaky_relu, scaled": (lambda lib, a: named(lib, F + "leaky_relu")(a, 0.2), POINTS),
    "threshold": (lambda lib, a: named(lib, F + "threshold")(a, 0.5, 3.0), POINTS),
    "prelu": (lambda lib, a, b: named(lib, F + "prelu")(a, b), A, B[0]),
    "prelu, one": (lambda lib, a, b: named(lib, F + "prelu")(a, b), A, np.array([0.25])),
    "glu": (lambda lib, a: named(lib, F + "glu")(a, 1), A),
    "rrelu": (lambda lib, a: named(lib, F + "rrelu")(a), A),
    "softsign, complex": (lambda lib, a: a / (1 + a.abs()), Z),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    check(*FUNCTIONS[name], order=1 if name == "logit, clamped" else 2)


# ---- Reductions ------------------------------------------------------------------------------------------------------

TIES = np.array([[1.0, 3.0, 3.0, 2.0], [0.0, 0.0, 0.0, 0.0], [-1.0, 5.0, 2.0, 5.0]])
ZEROS = np.array([[1.0, 0.0, 3.0, 2.0], [0.0, 2.0, 0.0, 3.0], [-1.0, 5.0, 2.0, 4.0]])
HOLES = np.array([[1.0, NAN, 3.0, 2.0], [0.0, 2.0, 5.0, 3.0], [NAN, NAN, NAN, NAN]])
FORMS = {"all": {}, "dim": {"dim": 1}, "keepdim": {"dim": 0, "keepdim": True}}
OVER = [
    (f"{name}, {form}, {kind}", name, arguments, array)
    for name, arrays in {
        "sum": {"real": A, "complex": Z},
        "mean": {"real": A, "complex": Z},
        "nansum": {"real": HOLES},
        "nanmean": {"real": HOLES[:2]},
        "prod": {"real": A, "complex": Z, "zeros": ZEROS},
        "var": {"real": A, "complex": Z},
        "std": {"real": A, "complex": Z},
        "amax": {"real": A, "ties": TIES, "nan": HOLES},
        "amin": {"real": A, "ties": TIES},
        "max": {"real": A, "ties": TIES, "nan": HOLES},
        "min": {"real": A, "ties": TIES},
        "median": {"real": A, "nan": HOLES[:2]},
        "nanmedian": {"real": A, "nan": HOLES[:2]},
    }.items()
    for kind, array in arrays.items()
    for form, arguments in FORMS.items()
]


@pytest.mark.parametrize(
    ("name", "arguments", "array"), [row[1:] for row in OVER], ids=[row[0] for row in OVER]
)
def test_reductions(name, arguments, array):
    def values(lib, a):
        found = getattr(lib, name)(a, **arguments)
        return found[0] if isinstance(found, tuple) else found

    check(values, array)


REDUCTIONS = {
    "median, ties": (lambda lib, a: a.median(), TIES),
    "nanmedian, ties": (lambda lib, a: a.nanmedian(), TIES),
    "sum, dims": (lambda lib, a: a.sum((0, 1)), A),
    "sum, float32": (lambda lib, a: a.sum(1, dtype=lib.float32), A),
    "var, correction": (lambda lib, a: a.var(1, correction=2), A),
    "var, of one": (lambda lib, a: a.var(), np.array([1.0])),
    "var_mean": (lambda lib, a: lib.var_mean(a, 1), A),
    "std_mean": (lambda lib, a: lib.std_mean(a), A),
    "aminmax": (lambda lib, a: lib.aminmax(a, dim=1), TIES),
    "mode": (lambda lib, a: a.mode(1)[0], TIES),
    "max, 0-dim": (lambda lib, a: a.max(0)[0], np.array(3.0)),
    "kthvalue": (lambda lib, a: a.kthvalue(2, 1)[0], A),
    "kthvalue, 0-dim": (lambda lib, a: a.kthvalue(1)[0], np.array(3.0)),
    "sort": (lambda lib, a: a.sort(1, descending=True)[0], A),
    "topk": (lambda lib, a: a.topk(2, 0)[0], A),
    "quantile": (lambda lib, a: a.quantile(0.3, 1), A),
    "nanquantile": (lambda lib, a: a.nanquantile(0.3), HOLES),
    "prod, 0-dim": (lambda lib, a: a.prod(), np.array(3.0)),
    "prod, no elements": (lambda lib, a: a.prod(1), np.zeros((2, 0))),
    "logsumexp": (lambda lib, a: a.logsumexp(1), A),
    "logsumexp, dims": (lambda lib, a: a.logsumexp((0, 1), keepdim=True), A),
    "logsumexp, complex": (lambda lib, a: a.logsumexp(1), Z),
    "logsumexp, infinite": (lambda lib, a: a.logsumexp(1), np.array([[-INF, 1.0], [-INF, -INF], [INF, 1.0]])),
    "softmax": (lambda lib, a: a.softmax(1), A),
    "softmax, dim 0": (lambda lib, a: a.softmax(0), A),
    "log_softmax": (lambda lib, a: a.log_softmax(1), A),
    "cumsum": (lambda lib, a: a.cumsum(1), Z),
    "cumprod": (lambda lib, a: a.cumprod(1), A),
    "cumprod, complex": (lambda lib, a: a.cumprod(0), Z),
    "cumprod, zeros": (lambda lib, a: a.cumprod(1), ZEROS),
    "cumprod, 0-dim": (lambda lib, a: a.cumprod(0), np.array(0.0)),
    "logcumsumexp": (lambda lib, a: a.logcumsumexp(1), A),
    "logcumsumexp, 0-dim": (lambda lib, a: a.logcumsumexp(0), np.array(3.0)),
    "logcumsumexp, complex": (lambda lib, a: a.logcumsumexp(1), Z),
    "cummax": (lambda lib, a: a.cummax(1)[0], TIES),
    "cummin": (lambda lib, a: a.cummin(0)[0], TIES),
    "cov": (lambda lib, a: a.cov(), A),
    "renorm": (lambda lib, a: a.renorm(2, 0, 1.0), A),
    "trapezoid": (lambda lib, a, b: lib.trapezoid(a, b), A, B),
    "dist": (lambda lib, a, b: lib.dist(a, b, 3), A, B),
    "cosine_similarity": (lambda lib, a, b: lib.cosine_similarity(a, b), A, B),
    "pdist": (lambda lib, a: named(lib, F + "pdist")(a, 3.0), A),
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_other_reductions(name):
    check(*REDUCTIONS[name], rtol=1e-7, order=1 if name == "pdist" else 2)


@pytest.mark.parametrize("order", [0, 0.5, 1, 1.5, 2, 3, INF, -INF])
@pytest.mark.parametrize("array", [A, Z, TIES])
def test_norms(order, array):
    check(lambda lib, a: lib.linalg.vector_norm(a, order, dim=1), array, order=1 if array is TIES else 2)
    check(lambda lib, a: lib.linalg.vector_norm(a, order), array, order=1)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, INF])
def test_distances(p):
    check(lambda lib, a, b: lib.cdist(a, b, p), A, np.concatenate([B, A[:1]]), order=1)


def test_distances_have_second_derivatives():
    check(
        lambda lib, a, b: ((a.unsqueeze(1) - b) ** 2).sum(-1).sqrt() if lib is torch else lib.cdist(a, b),
        A,
        B,
    )


# ---- In place, random numbers, names ---------------------------------------------------------------------------------

# PyTorch has no derivatives of some in-place forms, and knows others to fewer digits.
IN_PLACE = [
    name
    for name in DIFFERENTIABLE
    if hasattr(torch.Tensor, f"{name}_") and name not in ("asinh", "acosh", "atanh")
]


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_forms(name):
    points = (POINTS,) if DIFFERENTIABLE[name] == 1 else PAIRS
    check(lambda lib, a, *rest: getattr(a * 1.0, f"{name}_")(*rest) * a, *points, rtol=1e-7)


@pytest.mark.parametrize(
    "name", ["relu_", "elu_", "selu_", "celu_", "leaky_relu_", "hardtanh_", "threshold_", "rrelu_"]
)
def test_activations_in_place(name):
    numbers = (0.5, 3.0) if name == "threshold_" else ()
    check(lambda lib, a: named(lib, F + name)(a * 1.0, *numbers) * a, POINTS)


def test_activations_in_place_keep_no_copy():
    y = named(weft, F + "leaky_relu_")(weft.ones(3, requires_grad=True) * 2)
    assert y.grad_fn._saved_self is None


FILLS = {
    "normal_": (),
    "uniform_": (),
    "exponential_": (),
    "cauchy_": (),
    "log_normal_": (),
    "geometric_": (0.5,),
    "bernoulli_": (),
    "random_": (),
}


@pytest.mark.parametrize("name", FILLS)
def test_random_fills_forget_what_was_there(name):
    x = weft.ones(3, requires_grad=True)
    y = x * 2
    getattr(y, name)(*FILLS[name])
    (y.sum() + x.sum()).backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "draw",
    [
        lambda lib, x: lib.bernoulli(x),
        lambda lib, x: lib.poisson(x),
        lambda lib, x: lib.normal(x, 1.0),
        lambda lib, x: lib.normal(1.0, x),
        lambda lib, x: lib.normal(x, x),
    ],
)
def test_random_numbers_do_not_depend_on_their_parameters(draw):
    names = []
    for lib in (torch, weft):
        x = lib.full((3,), 0.5, requires_grad=True)
        y = draw(lib, x)
        y.sum().backward()
        assert x.grad.tolist() == [0.0, 0.0, 0.0]
        names.append(type(y.grad_fn).__name__)
    assert names[0] == names[1]


CASES = {
    **{
        name: (lambda lib, *xs, name=name: named(lib, name)(*xs), *((POINTS,) if count == 1 else PAIRS))
        for name, count in DIFFERENTIABLE.items()
    },
    **FUNCTIONS,
    **{row[0]: (lambda lib, a, row=row: getattr(lib, row[1])(a, **row[2]), row[3]) for row in OVER},
    **REDUCTIONS,
}
# Made of other ops, which are the last of them in the graph; PyTorch's are one step, or made of others.
COMPOSED = (
    "special.ndtr", "div, of a number", "rrelu", "quantile", "nanquantile", "trapezoid",
    "cosine_similarity", "pdist",
)  # fmt: skip


@pytest.mark.parametrize("name", sorted(CASES.keys() - COMPOSED))
def test_nodes_have_the_names_of_pytorchs(name):
    function, *arrays = CASES[name]
    found = []
    for lib in (torch, weft):
        results = function(lib, *[lib.from_numpy(np.array(each)).requires_grad_() for each in arrays])
        results = results if isinstance(results, (tuple, list)) else [results]
        found.append([type(each.grad_fn).__name__ for each in results])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.exp(),
        lambda x: x.tanh(),
        lambda x: x.sigmoid(),
        lambda x: x.sqrt(),
        lambda x: x.relu(),
        lambda x: x.softmax(0),
        lambda x: x.log_softmax(0),
    ],
)
def test_only_the_result_is_saved(function):
    y = function(weft.ones(3, requires_grad=True))
    assert y.grad_fn._saved_result.tolist() == y.tolist()
    assert y.grad_fn._saved_self is None


def test_sums_save_nothing():
    assert weft.ones(3, requires_grad=True).sum().grad_fn._saved == (None, None)


@pytest.mark.parametrize(
    "name", ["logcumsumexp", "xlogy", "softmax", "log_softmax", "cumprod, zeros", "norm"]
)
def test_tangents(name):
    function, *arrays = {**CASES, "norm": (lambda lib, a: lib.linalg.vector_norm(a, 3.0), A)}[name]
    found = []
    for lib in (torch, weft):
        inputs = tuple(lib.from_numpy(np.array(each)) for each in arrays)
        tangents = tuple(cotangent(lib, each, k) for k, each in enumerate(inputs))
        found.append(lib.func.jvp(lambda *xs, lib=lib: function(lib, *xs), inputs, tangents)[1].tolist())
    np.testing.assert_allclose(*found, rtol=1e-7, atol=1e-12)


# ---- Infinite cotangents ---------------------------------------------------------------------------------------------

SELECTIONS = {
    "max": lambda lib, x: x.max(),
    "min": lambda lib, x: x.min(),
    "median": lambda lib, x: x.median(),
    "nanmedian": lambda lib, x: x.nanmedian(),
    "max(dim)": lambda lib, x: x.max(1).values,
    "median(dim)": lambda lib, x: x.median(1).values,
    "cummax": lambda lib, x: x.cummax(1).values,
    "topk": lambda lib, x: x[:, :3].topk(1).values,
    "sort": lambda lib, x: x.sort().values,
    "kthvalue": lambda lib, x: x.kthvalue(2).values,
    "mode": lambda lib, x: x.mode(1).values,
    "clamp": lambda lib, x: x.clamp(1.5, 2.5),
    "relu": lambda lib, x: (x - 2).relu(),
    "where": lambda lib, x: lib.where(x > 2, x, -x),
    "masked_fill": lambda lib, x: x.masked_fill(x > 2, 0.0),
    "maximum": lambda lib, x: lib.maximum(x, x.flip(0).detach()),
    "max_pool1d": lambda lib, x: lib.nn.functional.max_pool1d(x, 3, 1),
    "cdist p=0": lambda lib, x: lib.cdist(x, x.flip(0).detach() + 1, 0.0),
    "pdist p=0": lambda lib, x: lib.nn.functional.pdist(x, 0.0),
}


@pytest.mark.parametrize("value", [INF, -INF, NAN])
@pytest.mark.parametrize("name", sorted(SELECTIONS))
def test_an_infinite_cotangent_reaches_chosen_elements_only(name, value):
    def gradient(lib):
        x = lib.tensor([[1.0, 3.0, 2.0, 3.0], [0.5, 1.0, 1.0, 2.0]], requires_grad=True)
        out = SELECTIONS[name](lib, x)
        ct = np.ones(out.shape)
        ct.reshape(-1)[0] = value
        out.backward(lib.tensor(ct.tolist()))
        return repr(x.grad.tolist())

    assert gradient(weft) == gradient(torch)


@pytest.mark.parametrize("name", ["amax", "amin"])
def test_an_infinite_cotangent_of_an_extremum_over_dims(name):
    """PyTorch multiplies with the mask here, and gives NaN to the other elements."""
    x = weft.tensor([[1.0, 3.0], [3.0, 1.0]], requires_grad=True)
    getattr(x, name)().backward(weft.tensor(INF))
    chosen = x.detach() == getattr(x.detach(), name)()
    assert x.grad.tolist() == chosen.to(weft.float32).where(~chosen, weft.tensor(INF)).tolist()


@pytest.mark.parametrize(
    "function",
    [
        lambda lib, x: x.unique(),
        lambda lib, x: x.unique(dim=0),
        lambda lib, x: lib.unique_consecutive(x),
        lambda lib, x: lib.histogram(x, 4).hist,
        lambda lib, x: lib.histogram(x.detach(), 4, weight=x).hist,
    ],
)
def test_a_derivative_that_is_not_there_is_an_error(function):
    """A constant in place of the result would leave its part out of the gradient in silence."""
    for lib in (torch, weft):
        x = lib.tensor([1.0, 2.0, 2.0], requires_grad=True)
        result = function(lib, x)
        assert result.requires_grad
        with pytest.raises(RuntimeError, match="not implemented"):
            (result.sum() + x.sum()).backward()
