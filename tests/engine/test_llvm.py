"""Compiled kernels against the interpreter, which evaluates the same expressions with NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.core.dtype import DTYPES, bool_, float32, float64, int32, int64
from weft.core.spec import make_spec
from weft.engine import expr as ex
from weft.engine import llvm
from weft.engine.convert import convert
from weft.engine.expr import load
from weft.engine.interpreter import NUMPY, evaluate
from weft.engine.kernel import prepare_map
from weft.engine.llvm import HOST
from weft.engine.loops import Result
from weft.families.elements import store_as

REAL = [dtype for dtype in DTYPES.values() if not dtype.is_complex]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 1e-40, 1e30, -1e30, 448.0, 65504.0, 2.0**31, -(2.0**31), 2.0**63,
           np.inf, -np.inf, np.nan]  # fmt: skip


def test_both_targets_know_every_primitive():
    assert HOST.keys() == NUMPY.table.keys() == ex.PRIMITIVES.keys()


def values(dtype, size, seed):
    """Numbers of all magnitudes, with the special values among them."""
    rng = np.random.default_rng(seed)
    if dtype is bool_:
        return rng.random(size) < 0.5
    if dtype.is_integral:
        info = np.iinfo(dtype.numpy)
        found = rng.integers(info.min, info.max, size, dtype.numpy, endpoint=True)
        found[: min(size, 3)] = [0, info.min, info.max][:size]
        return found
    found = rng.standard_normal(size) * 10.0 ** rng.integers(-8, 9, size)
    found[: len(SPECIAL)] = SPECIAL[:size]
    with np.errstate(all="ignore"):
        return found.astype(dtype.numpy)


def compiled(root, arrays, out):
    """The values of `root` from a kernel over one flat loop."""
    launch = prepare_map(
        [Result((root,))],
        [DTYPES[a.dtype.name] for a in arrays],
        (),
        [len(out)],
        [[out.itemsize], *([a.itemsize] for a in arrays)],
    )
    launch.entry(out.ctypes.data, *(a.ctypes.data for a in arrays), launch.meta, launch.count)
    return out


def agree(root, arrays):
    got = compiled(root, arrays, np.empty(len(arrays[0]), root.dtype.numpy))
    (want,) = evaluate([root], arrays)
    want = np.broadcast_to(want, got.shape).astype(got.dtype)
    if root.dtype.kind == "f":  # which NaN is not promised
        got, want = got.astype(np.float64), want.astype(np.float64)
        assert np.array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(want[~np.isnan(want)]))
    np.testing.assert_array_equal(got, want)


BINARY = ["add", "sub", "mul", "lt", "le", "eq", "ne"]
FLOAT = ["neg", "abs", "sqrt", "floor", "ceil", "trunc", "rint"]
INTEGER = ["and", "or", "xor"]


@pytest.mark.parametrize("dtype", [d for d in REAL if d.itemsize >= 4 or d.is_integral], ids=lambda d: d.name)
def test_arithmetic(dtype):
    a, b = values(dtype, 67, 1), values(dtype, 67, 2)
    x, y = load(0, dtype), load(1, dtype)
    for op in BINARY:
        agree(ex.node(op, bool_ if op in ("lt", "le", "eq", "ne") else dtype, (x, y)), [a, b])
    if dtype.is_floating_point:
        agree(x / y, [a, b])
        agree(ex.fma(x, y, x), [a, b])
        agree(ex.copysign(x, y), [a, b])
        for op in FLOAT:
            agree(ex.node(op, dtype, (x,)), [a])
    else:
        for op in INTEGER:
            agree(ex.node(op, dtype, (x, y)), [a, b])
        for op in ("neg", "abs", "not", "popcount", "clz"):
            agree(ex.node(op, dtype, (x,)), [a])
        agree(x << 3, [a])
        agree(x >> 3, [a])
        nonzero = np.where(b == 0, 1, np.where(b == -1, 2, b) if dtype.is_signed else b).astype(b.dtype)
        agree(x / y, [a, nonzero])
        agree(x % y, [a, nonzero])
    agree(ex.select(x < y, x, y), [a, b])


@pytest.mark.parametrize("source", REAL, ids=lambda d: d.name)
def test_conversions(source):
    a = values(source, 300, 3)
    for target in REAL:
        root = convert(load(0, source), target)
        got = compiled(root, [a], np.empty(len(a), target.numpy))
        (want,) = evaluate([ex.cast(load(0, source), target)], [a])
        np.testing.assert_array_equal(
            got.astype(np.float64), want.astype(target.numpy).astype(np.float64), str(target)
        )


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_strides(data):
    """A map over strided, broadcast and transposed operands touches exactly the elements it should."""
    sizes = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    base = rng.standard_normal([2 * size + 1 for size in sizes]).astype(np.float32)
    a = base[tuple(slice(1, None, 2) for _ in sizes)]
    order = data.draw(st.permutations(range(len(sizes))))
    b = rng.standard_normal([a.shape[dim] for dim in order]).astype(np.float64).transpose(np.argsort(order))
    c = np.broadcast_to(rng.standard_normal([size if rng.random() < 0.5 else 1 for size in a.shape]), a.shape)
    out = np.full([2 * size for size in a.shape], -7.0, np.float32)
    target = out[tuple(slice(None, None, 2) for _ in sizes)]
    want = (a.astype(np.float64) + b * c).astype(np.float32)
    root = convert(convert(load(0, float32), float64) + load(1, float64) * load(2, float64), float32)
    arrays = [target, a, b, c]
    launch = prepare_map(
        [store_as(root, make_spec((), (), float32))],
        [float32, float64, float64],
        (),
        a.shape,
        [x.strides for x in arrays],
    )
    if a.size:
        launch.entry(*(x.ctypes.data for x in arrays), launch.meta, launch.count)
        np.testing.assert_array_equal(target, want)
    untouched = np.ones(out.shape, bool)
    untouched[tuple(slice(None, None, 2) for _ in sizes)] = False
    assert (out[untouched] == -7.0).all()


@pytest.mark.parametrize("steps", [0, 2])
@pytest.mark.parametrize("dtype", [float32, float64])
def test_scales_by_powers_of_two(monkeypatch, dtype, steps):
    """Subnormal results, overflow and NaN: by the processor's own instruction where it has one, and in two steps."""
    if steps:
        monkeypatch.setattr(llvm, "scales_by_powers", lambda: False)
    whole, most = (int32, 152) if dtype is float32 else (int64, 1077)
    k = np.arange(-most, most + 1, dtype=whole.numpy)
    y = np.random.default_rng(0).uniform(0.5, 2.0, k.size).astype(dtype.numpy)
    y[::7] *= -1
    y[::11] = np.nan
    agree(ex.ldexp(load(0, dtype), load(1, whole) + steps), [y, k - steps])  # two kernels
