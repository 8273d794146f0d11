"""Printing against PyTorch. It asks a tensor only for its public API, so PyTorch's own tensors are printed too: that
covers what a tensor can be without needing the rest of weft. The second half prints weft's tensors."""

import contextlib
import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import forward_ad

import weft
from weft.core import dtype as dtypes
from weft.ops.tensor import printing

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")

INTEGERS = ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
NARROW = [
    name for name, dtype in dtypes.DTYPES.items() if dtype in dtypes.REDUCED_FLOATS and name != "float16"
]
COMPLEX = ["complex32", "complex64", "complex128"]
DTYPES = ["bool", *INTEGERS, *FLOATS, *NARROW, *COMPLEX]

SHAPES = [
    (), (0,), (1,), (5,), (0, 3), (3, 0), (2, 3), (1, 1, 1), (2, 3, 4), (2, 1, 3, 2), (1000,), (1001,), (40, 40),
    (7, 200), (1001, 1), (1, 1001), (2, 3, 400), (11, 10, 11), (6, 7, 5, 7), (2, 10, 1, 60), (1, 7, 1, 8, 1, 20),
]  # fmt: skip
SPECIAL = [0.0, -0.0, math.nan, math.inf, -math.inf]
SAMPLES = [
    lambda rng, size: rng.integers(-5, 5, size) * 1.0,
    lambda rng, size: rng.normal(size=size) * 1e3,
    lambda rng, size: rng.normal(size=size) * 10.0 ** rng.integers(-8, 8, size),
    lambda rng, size: rng.choice(SPECIAL, size),
    lambda rng, size: rng.choice([*SPECIAL, 1.0, -1000.0, 999.5], size),
    lambda rng, size: rng.choice([1e8, 1e9, 1e-4, 1e-5, 1.0, 1000.0, 1001.0], min(size, 2)).repeat(size)[
        :size
    ],
]

options = st.fixed_dictionaries(
    {},
    optional={
        "precision": st.sampled_from([0, 1, 2, 6, 10]),
        "threshold": st.sampled_from([-1, 0, 3, 10, 100, math.inf]),
        "edgeitems": st.sampled_from([0, 1, 2, 4, 8]),
        "linewidth": st.integers(1, 140),
        "profile": st.sampled_from(["default", "short", "full", "no such profile"]),
        "sci_mode": st.sampled_from([True, False]),
    },
)


@st.composite
def arrays(draw, names=(*DTYPES,)):
    """The name of a dtype, and values for it: NumPy's type for the dtypes NumPy has, else a wider one."""
    name, shape = draw(st.sampled_from(names)), draw(st.sampled_from(SHAPES))
    rng, size = np.random.default_rng(draw(st.integers(0, 2**32 - 1))), math.prod(shape)
    if name in INTEGERS:
        limits = np.iinfo(name)
        low, high = draw(st.sampled_from([(limits.min, limits.max), (max(limits.min, -9), 9), (0, 100)]))
        return name, rng.integers(low, high, size, dtype=name, endpoint=True).reshape(shape)
    sample = draw(st.sampled_from(SAMPLES))
    values = sample(rng, size).reshape(shape)
    if name == "bool":
        return name, np.asarray(values > 0)
    if name in COMPLEX:
        pairs = np.stack([values, sample(rng, size).reshape(shape)], axis=-1)
        values = pairs.view(np.complex128)[..., 0].astype(
            "complex128" if name == "complex128" else "complex64"
        )
    with np.errstate(over="ignore"):
        return name, values.astype("float32" if name in NARROW else values.dtype if name in COMPLEX else name)


def oracle(name, values):
    return torch.from_numpy(values).to(getattr(torch, name))


@contextlib.contextmanager
def both_with(**kwargs):
    """PyTorch and weft with the same print options."""
    for module in (torch, printing):
        module.set_printoptions(profile="default")
        module.set_printoptions(**kwargs)
    try:
        yield
    finally:
        for module in (torch, printing):
            module.set_printoptions(profile="default")


@contextlib.contextmanager
def printing_torch_tensors():
    """PyTorch cannot give NumPy the types that NumPy lacks: widen them first."""

    def values(tensor, edge, dim=0, original=printing._values):
        if not tensor.is_quantized and str(tensor.dtype).removeprefix("torch.") in (*NARROW, "complex32"):
            tensor = tensor.to(torch.complex64 if tensor.is_complex() else torch.float32)
        return original(tensor, edge, dim)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(printing, "_values", values)
        yield


def outcome(call, *args):
    """The result, or the type and text of the error."""
    try:
        return call(*args)
    except Exception as error:
        return type(error), str(error)


def assert_prints_alike(tensor, **kwargs):
    with both_with(**kwargs), printing_torch_tensors():
        assert outcome(printing.tensor_repr, tensor) == outcome(repr, tensor)


# PyTorch's tensors


class Subclass(torch.Tensor):
    pass


class ParameterSubclass(torch.nn.Parameter):
    pass


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def kinds_of_tensor():
    ones, eye, needs_grad = torch.ones(2, 2), torch.eye(4), torch.ones(2, requires_grad=True)
    coo, csr = eye.to_sparse(), eye.to_sparse_csr()
    scales = torch.tensor([0.1, 0.2])
    nested = torch.nested.nested_tensor([ones, ones[:1]], requires_grad=True)
    meta = {"device": "meta"}
    return {
        "requires grad": needs_grad,
        "grad_fn": needs_grad * 2,
        "grad_fn of a 0-dim tensor": needs_grad.sum(),
        "grad_fn in Python": Double.apply(needs_grad),
        "parameter": torch.nn.Parameter(ones),
        "frozen parameter": torch.nn.Parameter(ones.double(), requires_grad=False),
        "parameter on meta": torch.nn.Parameter(torch.empty(2, **meta)),
        "sparse parameter": torch.nn.Parameter(coo),
        "parameter subclass": ParameterSubclass(ones.double()),
        "subclass": ones.double().as_subclass(Subclass),
        "parameter of a subclass": torch.nn.Parameter(ones.as_subclass(Subclass)),
        "meta": torch.empty(2, 3, requires_grad=True, **meta),
        "meta int64": torch.empty(2, 3, dtype=torch.int64, **meta),
        "meta 0-dim": torch.empty((), dtype=torch.float64, **meta),
        "meta empty": torch.empty(0, dtype=torch.bool, **meta),
        "conjugate": torch.tensor([1 + 2j, 3]).conj(),
        "negative view": torch.tensor([1 + 2j, 3]).conj().imag,
        "huge": torch.ones(1, 1).expand(50_000, 50_000),
        "coo": coo,
        "coo float64": coo.double(),
        "coo int64": coo.long(),
        "coo grad": coo.clone().requires_grad_() * 2,
        "coo meta": coo.double().to("meta"),
        "coo empty": torch.sparse_coo_tensor(size=(2, 3)),
        "coo 0-dim": torch.tensor(3.0).to_sparse(),
        "coo hybrid": torch.ones(2, 3, 2).to_sparse(1),
        "coo long": torch.ones(50, 50).to_sparse(),
        "csr": csr,
        "csr float64": eye.double().to_sparse_csr().requires_grad_(),
        "csr meta": csr.to("meta"),
        "csr long": torch.ones(50, 50).to_sparse_csr(),
        "csr empty": torch.zeros(0, 3).to_sparse_csr(),
        "csr batched": torch.ones(2, 2, 2).to_sparse_csr(),
        "csc": eye.to_sparse_csc(),
        "bsr": eye.to_sparse_bsr((2, 2)),
        "bsc": eye.to_sparse_bsc((2, 2)),
        "quantized": torch.quantize_per_tensor(torch.tensor([1.0, 2.0, 3.5]), 0.1, 10, torch.quint8),
        "quantized empty": torch.quantize_per_tensor(torch.zeros(0, 3), 0.1, 10, torch.qint32),
        "quantized per channel": torch.quantize_per_channel(
            ones, scales, torch.tensor([10, 3]), 0, torch.qint8
        ),
        "quantized float zero points": torch.quantize_per_channel(ones, scales, scales, 0, torch.quint8),
        "nested": nested,
        "nested grad_fn": nested * 2,
        "nested float64": torch.nested.nested_tensor([torch.ones(2, 2, 2).double()]),
        "nested empty": torch.nested.nested_tensor([]),
    }


with warnings.catch_warnings(action="ignore"):  # PyTorch's, about features in beta or to be removed
    KINDS = kinds_of_tensor()


@settings(max_examples=200, deadline=None)
@given(array=arrays(), options=options, transposed=st.booleans(), requires_grad=st.booleans())
def test_values(array, options, transposed, requires_grad):
    tensor = oracle(*array)
    if transposed and tensor.dim():
        tensor = tensor.transpose(0, -1)
    tensor.requires_grad_(requires_grad and tensor.is_floating_point())
    assert_prints_alike(tensor, **options)


@pytest.mark.parametrize("values", [[1.0, 1000.0], [1.0, 1000.1], [1e8], [1e8 + 1], [1e-4], [0.99999e-4]])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_where_exponents_begin(values, dtype):
    assert_prints_alike(torch.tensor(values, dtype=dtype))


@pytest.mark.parametrize("kind", KINDS)
def test_kind_of_tensor(kind):
    assert_prints_alike(KINDS[kind])


@settings(max_examples=80, deadline=None)
@given(kind=st.sampled_from(sorted(KINDS.keys() - {"huge"})), options=options)
def test_kind_of_tensor_with_options(kind, options):
    assert_prints_alike(KINDS[kind], **options)


@pytest.mark.parametrize("kind", ["grad_fn", "subclass", "meta", "coo float64", "csr float64", "quantized"])
def test_suffixes_wrap_at_every_width(kind):
    for linewidth in range(1, 110):
        assert_prints_alike(KINDS[kind], linewidth=linewidth)


@pytest.mark.parametrize("default", ["float64", "float16", "bfloat16"])
def test_default_dtype_is_not_shown(default):
    torch.set_default_dtype(getattr(torch, default))
    dtypes.set_default_dtype(getattr(dtypes, default))
    try:
        for name in DTYPES:
            for shape in [(), (2,), (0,), (0, 2)]:
                assert_prints_alike(torch.ones(shape).to(getattr(torch, name)))
                assert_prints_alike(torch.ones(shape, device="meta").to(getattr(torch, name)))
    finally:
        torch.set_default_dtype(torch.float32)
        dtypes.set_default_dtype(dtypes.float32)


@pytest.mark.parametrize("invalid", [{"linewidth": math.inf}, {"precision": -1}, {"precision": 2.5}])
def test_invalid_options_fail_alike(invalid):
    assert_prints_alike(torch.tensor([1.5]), **invalid)
    assert_prints_alike(torch.tensor(1.5), **invalid)


def test_signaling_nan_gives_no_warning():
    bits = torch.tensor([0x7F800001], dtype=torch.int32)
    with warnings.catch_warnings(action="error"):
        assert printing.tensor_repr(bits.view(torch.float32)) == "tensor([nan])"


@pytest.mark.parametrize("kind", ["parameter", "meta", "coo", "quantized", "quantized empty"])
def test_contents_can_be_replaced(kind):
    tensor = KINDS[kind].detach()
    assert printing.tensor_repr(tensor, tensor_contents="other") == tensor.__repr__(tensor_contents="other")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tangent(dtype):
    primal = torch.ones(2, 3, dtype=dtype)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(primal, primal * 2)
        assert printing.tensor_repr(primal, tangent=primal * 2) == repr(dual)


def test_names_are_shown():  # PyTorch has given them up; this is how it printed them
    assert (
        printing.tensor_repr(torch.ones(1, 2), names=("N", None)) == "tensor([[1., 1.]], names=('N', None))"
    )


@pytest.mark.parametrize("spec", ["", ".2f", ">10", "d"])
def test_format(spec):
    numbers = [torch.tensor(number) for number in (1.5, 3, True, 1 + 2j)]
    kinds = ["grad_fn of a 0-dim tensor", "meta 0-dim", "parameter", "subclass", "conjugate"]
    for tensor in [*numbers, *(KINDS[kind] for kind in kinds)]:
        assert outcome(printing.tensor_format, tensor, spec) == outcome(format, tensor, spec)


# Options


@given(calls=st.lists(options, max_size=4))
def test_options_follow_each_other(calls):
    with both_with():
        for kwargs in calls:
            torch.set_printoptions(**kwargs)
            printing.set_printoptions(**kwargs)
            assert printing.get_printoptions() == torch._tensor_str.get_printoptions()


def test_printoptions_restores():
    before = printing.get_printoptions()
    with pytest.raises(ZeroDivisionError), printing.printoptions(precision=7, sci_mode=True):
        assert printing.get_printoptions() == before | {"precision": 7, "sci_mode": True}
        raise ZeroDivisionError
    assert printing.get_printoptions() == before


def test_printoptions_rejects_unknown_option():
    with pytest.raises(TypeError, match="unexpected keyword argument 'digits'"):
        printing.printoptions(digits=3).__enter__()


# weft's tensors


@settings(max_examples=100, deadline=None)
@given(array=arrays(), options=options)
def test_weft_values(array, options):
    name, values = array
    tensor = weft.from_numpy(values).to(getattr(weft, name))
    with both_with(**options):
        expected = repr(oracle(name, values))
        assert repr(tensor) == str(tensor) == expected


def test_weft_huge():
    assert repr(weft.ones(1, 1).expand(50_000, 50_000)) == repr(torch.ones(1, 1).expand(50_000, 50_000))


def test_weft_meta():
    tensor = weft.empty(2, 3, device="meta", dtype=weft.float64)
    assert repr(tensor) == "tensor(..., device='meta', size=(2, 3), dtype=torch.float64)"


def test_weft_gradients():
    needs_grad = weft.ones(2, requires_grad=True)
    assert repr(needs_grad) == "tensor([1., 1.], requires_grad=True)"


@pytest.mark.parametrize("spec", ["", ".2f", ">10", "d"])
def test_weft_format(spec):
    for number in (1.5, 3, True, 1 + 2j, [1.0]):
        ours, theirs = weft.tensor(number), torch.tensor(number)
        assert outcome(format, ours, spec) == outcome(format, theirs, spec)


def test_weft_options_are_public():
    weft.set_printoptions(precision=2)
    try:
        assert repr(weft.tensor([1.23456])) == "tensor([1.23])"
    finally:
        weft.set_printoptions(profile="default")
