"""Every op for every dtype: the narrow dtypes give what a wider one gives, rounded once."""

import operator

import numpy as np
import pytest
import torch
from oracle import name_of, outcome

import weft
from weft.core.dtype import DTYPES, REDUCED_FLOATS

pytestmark = pytest.mark.filterwarnings("ignore:Casting complex values to real")

WIDER = {
    "uint16": weft.int64, "uint32": weft.int64, "uint64": weft.int64, "complex32": weft.complex64,
    **{name: weft.float32 for name, dtype in DTYPES.items() if dtype in REDUCED_FLOATS},
}  # fmt: skip


# Ops whose results have the dtype of their input, or for floating point results of integers the default one.
# Each takes the module (weft or torch) and two tensors of 12 elements of the dtype, the second without zeros.
# fmt: off
KEEPING = {
    # arithmetic
    "add": lambda m, a, b: a + b,
    "add with alpha": lambda m, a, b: m.add(a, b, alpha=1),
    "sub": lambda m, a, b: a - b,
    "rsub": lambda m, a, b: 1 - a,
    "mul": lambda m, a, b: a * b,
    "mul by a number": lambda m, a, b: a * 3,
    "div": lambda m, a, b: a / b,
    "div, floor": lambda m, a, b: m.div(a, b, rounding_mode="floor"),
    "div, trunc": lambda m, a, b: m.div(a, b, rounding_mode="trunc"),
    "floor_divide": lambda m, a, b: a // b,
    "remainder": lambda m, a, b: a % b,
    "fmod": lambda m, a, b: m.fmod(a, b),
    "pow": lambda m, a, b: a**2,
    "pow of tensors": lambda m, a, b: m.pow(b, b),
    "neg": lambda m, a, b: -a,
    "abs": lambda m, a, b: a.abs(),
    "sign": lambda m, a, b: m.sign(a),
    "sgn": lambda m, a, b: m.sgn(a),
    "square": lambda m, a, b: m.square(a),
    "addcmul": lambda m, a, b: m.addcmul(a, a, b),
    "addcdiv": lambda m, a, b: m.addcdiv(a, a, b),
    "lerp": lambda m, a, b: m.lerp(a, b, 0.5),
    "maximum": lambda m, a, b: m.maximum(a, b),
    "minimum": lambda m, a, b: m.minimum(a, b),
    "fmax": lambda m, a, b: m.fmax(a, b),
    "clamp": lambda m, a, b: a.clamp(1, 3),
    "clamp by tensors": lambda m, a, b: m.clamp(a, b, b),
    "round": lambda m, a, b: a.round(),
    "floor": lambda m, a, b: a.floor(),
    "ceil": lambda m, a, b: a.ceil(),
    "trunc": lambda m, a, b: a.trunc(),
    "relu": lambda m, a, b: a.relu(),
    "gcd": lambda m, a, b: m.gcd(a, b),
    "lcm": lambda m, a, b: m.lcm(a, b),
    # functions
    **{name: (lambda m, a, b, name=name: getattr(m, name)(a)) for name in """
        exp log log1p sin cos tan tanh sqrt rsqrt reciprocal sigmoid erf atan asinh exp2 expm1 conj angle real
        nan_to_num frac lgamma
    """.split()},
    "atan2": lambda m, a, b: m.atan2(a, b),
    "logaddexp": lambda m, a, b: m.logaddexp(a, b),
    "copysign": lambda m, a, b: m.copysign(a, b),
    "hypot": lambda m, a, b: m.hypot(a, b),
    "softmax": lambda m, a, b: a.softmax(0),
    "logsumexp": lambda m, a, b: a.logsumexp(0),
    # bits
    "bitwise_and": lambda m, a, b: a & b,
    "bitwise_or": lambda m, a, b: a | b,
    "bitwise_xor": lambda m, a, b: a ^ b,
    "bitwise_not": lambda m, a, b: ~a,
    "left shift": lambda m, a, b: a << 2,
    "right shift": lambda m, a, b: a >> 1,
    # reductions and scans
    "amax": lambda m, a, b: a.amax(),
    "amin": lambda m, a, b: a.reshape(3, 4).amin(1),
    "max": lambda m, a, b: a.max(),
    "max of dim": lambda m, a, b: a.reshape(3, 4).max(0).values,
    "min of dim": lambda m, a, b: a.reshape(3, 4).min(1).values,
    "aminmax": lambda m, a, b: a.aminmax().max,
    "mean": lambda m, a, b: a.mean(),
    "nanmean": lambda m, a, b: a.nanmean(),
    "histc": lambda m, a, b: m.histc(b, 4),
    "var": lambda m, a, b: a.var(),
    "std": lambda m, a, b: a.reshape(3, 4).std(1),
    "norm": lambda m, a, b: m.linalg.vector_norm(a),
    "cummax": lambda m, a, b: a.cummax(0).values,
    "logcumsumexp": lambda m, a, b: a.logcumsumexp(0),
    "diff": lambda m, a, b: a.diff(),
    # order
    "sort": lambda m, a, b: a.sort().values,
    "sort, descending": lambda m, a, b: a.sort(descending=True, stable=True).values,
    "msort": lambda m, a, b: m.msort(a),
    "topk": lambda m, a, b: a.topk(3).values,
    "kthvalue": lambda m, a, b: a.kthvalue(4).values,
    "median": lambda m, a, b: a.median(),
    "mode": lambda m, a, b: a.mode().values,
    "unique": lambda m, a, b: a.unique(),
    "unique of dim": lambda m, a, b: a.reshape(6, 2).unique(dim=0),
    "unique_consecutive": lambda m, a, b: a.unique_consecutive(),
    # joining and moving
    "cat": lambda m, a, b: m.cat((a, b)),
    "stack": lambda m, a, b: m.stack((a, b)),
    "flip": lambda m, a, b: a.flip(0),
    "roll": lambda m, a, b: a.roll(5),
    "repeat": lambda m, a, b: a.repeat(2, 2),
    "repeat_interleave": lambda m, a, b: a.repeat_interleave(2),
    "rot90": lambda m, a, b: a.reshape(3, 4).rot90(),
    "tril": lambda m, a, b: a.reshape(3, 4).tril(),
    "triu": lambda m, a, b: a.reshape(3, 4).triu(1),
    "diag": lambda m, a, b: a[:3].diag(),
    "contiguous": lambda m, a, b: a.reshape(3, 4).t().contiguous(),
    "clone": lambda m, a, b: a[::2].clone(),
    "pad": lambda m, a, b: m.nn.functional.pad(a, (1, 2)),
    "unfold": lambda m, a, b: a.unfold(0, 4, 3).clone(),
    "block_diag": lambda m, a, b: m.block_diag(a[:2], b[:3]),
    "cartesian_prod": lambda m, a, b: m.cartesian_prod(a[:2], b[:3]),
    "kron": lambda m, a, b: m.kron(a[:3], b[:2]),
    # indexing
    "index": lambda m, a, b: a[m.tensor([3, -1, 0])],
    "slice": lambda m, a, b: a[2:9:3],
    "masked index": lambda m, a, b: a[a != 0],
    "index_select": lambda m, a, b: a.index_select(0, m.tensor([3, 1])),
    "gather": lambda m, a, b: a.reshape(3, 4).gather(1, m.tensor([[0], [2], [3]])),
    "take": lambda m, a, b: a.take(m.tensor([5, 1])),
    "take_along_dim": lambda m, a, b: a.take_along_dim(m.tensor([5, 1]), 0),
    "masked_select": lambda m, a, b: a.masked_select(b != b[0]),
    "masked_fill": lambda m, a, b: a.masked_fill(a == b, 1),
    "masked_scatter": lambda m, a, b: a.masked_scatter(a == a[3], b),
    "where": lambda m, a, b: m.where(a == b, a, b),
    "scatter": lambda m, a, b: a.scatter(0, m.tensor([3, 1]), b[:2]),
    "scatter of a number": lambda m, a, b: a.scatter(0, m.tensor([3, 1]), 1),
    "scatter_add": lambda m, a, b: a.scatter_add(0, m.tensor([3, 1, 3]), b[:3]),
    "scatter_reduce": lambda m, a, b: a.scatter_reduce(0, m.tensor([3, 1, 3]), b[:3], "amax"),
    "scatter_reduce, mean": lambda m, a, b: a.scatter_reduce(0, m.tensor([3, 1]), b[:2], "mean"),
    "index_add": lambda m, a, b: a.index_add(0, m.tensor([3, 1, 3]), b[:3]),
    "index_copy": lambda m, a, b: a.index_copy(0, m.tensor([3, 1]), b[:2]),
    "index_fill": lambda m, a, b: a.index_fill(0, m.tensor([3, 1]), 1),
    "index_put": lambda m, a, b: a.index_put((m.tensor([3, 1]),), b[:2]),
    "index_put, accumulating": lambda m, a, b: a.index_put((m.tensor([3, 3]),), b[:2], accumulate=True),
    "setitem": lambda m, a, b: operator.setitem(a := a.clone(), slice(2, 5), b[0]) or a,
    "select_scatter": lambda m, a, b: a.select_scatter(b[0], 0, 2),
    "diagonal_scatter": lambda m, a, b: a.reshape(3, 4).diagonal_scatter(b[:3]),
    # products
    "dot": lambda m, a, b: a.dot(b),
    "matmul": lambda m, a, b: a.reshape(3, 4) @ b.reshape(4, 3),
    "mv": lambda m, a, b: a.reshape(3, 4).mv(b[:4]),
    "bmm": lambda m, a, b: a.reshape(3, 2, 2).bmm(b.reshape(3, 2, 2)),
    "addmm": lambda m, a, b: m.addmm(b[:9].reshape(3, 3), a.reshape(3, 4), b.reshape(4, 3)),
    "outer": lambda m, a, b: m.outer(a, b),
    "einsum": lambda m, a, b: m.einsum("ij,ij->i", a.reshape(3, 4), b.reshape(3, 4)),
    # writing and making
    "fill_": lambda m, a, b: a.clone().fill_(1),
    "zero_": lambda m, a, b: a.clone().zero_(),
    "copy_": lambda m, a, b: a.clone().copy_(b),
    "add_": lambda m, a, b: a.clone().add_(b),
    "full_like": lambda m, a, b: m.full_like(a, 1),
    "new_full": lambda m, a, b: a.new_full((3,), 1),
    "arange": lambda m, a, b: m.arange(2, 9, 3, dtype=a.dtype),
    "linspace": lambda m, a, b: m.linspace(0, 12, 5, dtype=a.dtype),
    "eye": lambda m, a, b: m.eye(3, dtype=a.dtype),
    "ones": lambda m, a, b: m.ones(3, dtype=a.dtype),
    "full": lambda m, a, b: m.full((2,), 3, dtype=a.dtype),
    "tensor": lambda m, a, b: m.tensor([1, 0, 3], dtype=a.dtype),
}

# Ops with results of a dtype of their own (bool, int64): the same for the narrow and the wider dtype.
OTHER = {
    **{name: (lambda m, a, b, name=name: getattr(operator, name)(a, b)) for name in "eq ne lt le gt ge".split()},
    "eq to a number": lambda m, a, b: a == 1,
    "equal": lambda m, a, b: m.equal(a, a.clone()),
    "isclose": lambda m, a, b: m.isclose(a, b),
    "isnan": lambda m, a, b: m.isnan(a),
    "isfinite": lambda m, a, b: m.isfinite(a),
    "signbit": lambda m, a, b: m.signbit(a),
    "isin": lambda m, a, b: m.isin(a, b),
    "logical_not": lambda m, a, b: m.logical_not(a),
    "logical_and": lambda m, a, b: m.logical_and(a, b),
    "logical_xor": lambda m, a, b: m.logical_xor(a, b),
    "any": lambda m, a, b: a.any(),
    "all": lambda m, a, b: a.reshape(3, 4).all(0),
    "count_nonzero": lambda m, a, b: a.count_nonzero(),
    "nonzero": lambda m, a, b: a.nonzero(),
    "argmax": lambda m, a, b: a.argmax(),
    "argmin": lambda m, a, b: a.reshape(3, 4).argmin(1),
    "argsort": lambda m, a, b: a.argsort(stable=True),
    "searchsorted": lambda m, a, b: m.searchsorted(a[:10].sort().values, b),
    "bucketize": lambda m, a, b: m.bucketize(a, b.sort().values),
    "to bool": lambda m, a, b: a.to(m.bool),
    "to float64": lambda m, a, b: a.to(m.float64),
    "to int16": lambda m, a, b: a.to(m.int16),
    "tolist": lambda m, a, b: a.tolist(),
    "item": lambda m, a, b: a[3].item(),
    "bincount": lambda m, a, b: a[:10].bincount(),
}

# Ops that add up integers in int64; floating point and complex sums keep their dtype.
ADDING = {
    "sum": lambda m, a, b: a.sum(),
    "sum of dim": lambda m, a, b: a.reshape(3, 4).sum(0),
    "nansum": lambda m, a, b: a.nansum(),
    "prod": lambda m, a, b: a.prod(),
    "cumsum": lambda m, a, b: a.cumsum(0),
    "cumprod": lambda m, a, b: a.reshape(3, 4).cumprod(1),
    "trace": lambda m, a, b: a.reshape(3, 4).trace(),
}
# fmt: on
OPS = KEEPING | OTHER | ADDING

# Ops that need more elements to take all their ways.
ORDERING = {
    "sort": lambda a: a.sort().values,
    "order": lambda a: a.argsort(descending=True),
    "topk": lambda a: a.topk(9).values,
    "least": lambda a: a.topk(9, largest=False).indices,
    "kthvalue": lambda a: a.kthvalue(100).values,
    "place of the median": lambda a: a.reshape(500, 6).median(0).indices,
    "mode": lambda a: a.mode().values,
    "counts of unique": lambda a: a.unique(return_counts=True)[1],
    "unique of dim": lambda a: a.reshape(1000, 3).unique(dim=0),
    "places": lambda a: weft.searchsorted(a.sort().values, a),
    "membership": lambda a: weft.isin(a, a[:9]),
    "cummin": lambda a: a.cummin(0).indices,
    "place of max": lambda a: a.reshape(500, 6).argmax(0),
}

# What PyTorch has no kernel for.
NOT_OF_BOOLS = {
    "div, floor", "div, trunc", "floor_divide", "remainder", "fmod", "pow of tensors", "abs", "addcmul", "lerp",
    "clamp by tensors", "lcm", "histc", "scatter_reduce, mean", "round", "floor", "ceil", "trunc", "gcd", "frac",
    "logaddexp", "hypot", "softmax", "logcumsumexp", "kthvalue", "median", "dot", "matmul", "mv", "bmm", "addmm", "einsum", "arange", "linspace", "searchsorted", "bucketize",
    "bincount", "trace",
}  # fmt: skip


def samples(module, dtype):
    """Two tensors of 12 elements: small numbers, with the greatest or NaN at the end of the first."""
    own = getattr(module, dtype)
    first, second = [0, 1, 1, 2, 3, 0, 5, 1, 2, 7, 6, 4], [1, 1, 2, 1, 3, 2, 1, 5, 2, 1, 3, 4]
    if dtype == "bool":
        return module.tensor([x % 2 == 0 for x in first]), module.tensor([True] * 12)
    if own.is_complex:
        pairs = [[complex(x / 4, x % 3 - 1) for x in numbers] for numbers in (first, second)]
        return tuple(module.tensor(numbers, dtype=module.complex64).to(own) for numbers in pairs)
    if own.is_floating_point:
        numbers = [*(x / 4 - 0.75 for x in first[:11]), float("nan")]
        return module.tensor(numbers).to(own), module.tensor([x / 2 - 0.25 for x in second]).to(own)
    last = 2 ** (8 * min(own.itemsize, 4)) - 1  # the wider dtype must hold it
    return module.tensor([*first[:11], last]).to(own), module.tensor(second).to(own)


def rounded(result, dtype):
    """The result of the wider dtype in the narrow one."""
    if not isinstance(result, weft.Tensor):
        return result
    wanted = {WIDER[name_of(dtype)]: dtype, WIDER[name_of(dtype)].to_real(): dtype.to_real()}
    return result.to(wanted.get(result.dtype, result.dtype))


def assert_equal(got, expected):
    if isinstance(expected, Exception):
        assert type(got) is type(expected), f"{got!r} instead of {expected!r}"
        return
    assert not isinstance(got, Exception), repr(got)
    if isinstance(expected, weft.Tensor):
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        got, expected = got.tolist(), expected.tolist()
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", WIDER)
@pytest.mark.parametrize("name", OPS)
def test_result_is_that_of_the_wider_dtype(name, dtype):
    a, b = samples(weft, dtype)
    got = outcome(OPS[name], (weft, a, b), {})
    wide = outcome(OPS[name], (weft, a.to(WIDER[dtype]), b.to(WIDER[dtype])), {})
    kept = name in KEEPING or name in ADDING and not a.dtype.is_integral
    assert_equal(got, rounded(wide, a.dtype) if kept else wide)


@pytest.mark.parametrize("name", [name for name in OPS if name not in NOT_OF_BOOLS])
def test_bools(name):
    got = outcome(OPS[name], (weft, *samples(weft, "bool")), {})
    expected = outcome(OPS[name], (torch, *samples(torch, "bool")), {})
    assert not isinstance(expected, NotImplementedError)
    if isinstance(expected, torch.Tensor):
        assert name_of(got.dtype) == name_of(expected.dtype)
        got, expected = got.tolist(), expected.tolist()
    if isinstance(expected, Exception):
        assert type(got) is type(expected)
    else:
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_order_of_bools():
    values = weft.tensor([True, False, True, False, False])
    assert [values.kthvalue(k).values.item() for k in range(1, 6)] == [False] * 3 + [True] * 2
    assert values.median().item() is False
    assert weft.searchsorted(values.msort(), weft.tensor([True, False])).tolist() == [3, 0]


@pytest.mark.parametrize("dtype", [name for name in WIDER if name != "complex32"])
@pytest.mark.parametrize("name", ORDERING)
def test_order_of_many(name, dtype):
    own = getattr(weft, dtype)
    numbers = weft.from_numpy(np.random.default_rng(0).normal(size=3000) * 50)
    values = (numbers if own.is_floating_point else numbers.abs()).to(own)
    got, wide = ORDERING[name](values), ORDERING[name](values.to(WIDER[dtype]))
    assert_equal(got, rounded(wide, own) if name in KEEPING else wide)


BIG = [2**64 - 1, 0, 2**63, 2**63 - 1, 2**63 + 1, 5, 2**64 - 2, 2**32]
SMALL = [3, 7, 2**63, 2, 2**63 - 1, 1, 2**64 - 1, 2**33]


@pytest.mark.parametrize(
    "name", "add sub mul floordiv mod and_ or_ xor eq ne lt le gt ge".split(),
)  # fmt: skip
def test_uint64_beyond_int64(name):
    function = getattr(operator, name)
    got = function(weft.tensor(BIG, dtype=weft.uint64), weft.tensor(SMALL, dtype=weft.uint64))
    expected = [function(a, b) for a, b in zip(BIG, SMALL, strict=True)]
    assert got.tolist() == [x if isinstance(x, bool) else x % 2**64 for x in expected]


def test_order_of_uint64_beyond_int64():
    big, small = (weft.tensor(values, dtype=weft.uint64) for values in (BIG, SMALL))
    order = sorted(range(8), key=BIG.__getitem__)
    assert big.sort().indices.tolist() == big.argsort().tolist() == order
    assert big.unique().tolist() == big.msort().tolist() == sorted(BIG)
    assert big.topk(3).values.tolist() == sorted(BIG)[:-4:-1]
    assert big.kthvalue(5).values.item() == sorted(BIG)[4]
    assert big.median().item() == sorted(BIG)[3]
    assert (big.max().item(), big.amin().item(), big.argmax().item()) == (max(BIG), min(BIG), 0)
    assert big.cummin(0).values.tolist() == [BIG[0]] + [0] * 7
    assert weft.maximum(big, small).tolist() == [max(pair) for pair in zip(BIG, SMALL, strict=True)]
    assert weft.isin(big, small).tolist() == [x in SMALL for x in BIG]
    assert weft.searchsorted(big.msort(), big).tolist() == [sorted(BIG).index(x) for x in BIG]
    assert big.clamp(min=small).tolist() == weft.maximum(big, small).tolist()
    assert big.to(weft.float64).tolist() == [float(x) for x in BIG]


@pytest.mark.parametrize("dtypes", [("uint16", "int32"), ("uint64", "int8"), ("float8_e5m2", "float32")])
def test_pairs_without_a_common_dtype(dtypes):
    for module in (torch, weft):
        a, b = (module.ones(2).to(getattr(module, dtype)) for dtype in dtypes)
        with pytest.raises(RuntimeError, match="^Promotion for .* not supported"):
            a + b
