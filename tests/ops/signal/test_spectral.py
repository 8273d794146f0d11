"""torch.fft against PyTorch: values, dtypes, strides, errors."""

import numpy as np
import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import check, converted, name_of, outcome, to_torch, to_weft
from twins import tensors

import weft
from weft.ops.signal.spectral import TRANSFORMS

NAMES = [row[0] for row in TRANSFORMS]
TYPES = ("float32", "float64", "complex64", "complex128", "int64", "bool")
NORM = st.sampled_from((None, "backward", "forward", "ortho", "other"))


def check_transform(name, *args, **kwargs):
    """The same as torch's, to 6 digits (float64: 14) of the largest number of the result."""
    got = outcome(getattr(weft.fft, name), converted(args), kwargs)
    expected = outcome(getattr(torch.fft, name), args, kwargs)
    what = f"{name} {args} {kwargs}: {got!r} instead of {expected!r}"
    if isinstance(expected, Exception):
        assert type(got) is type(expected) or "MKL" in str(expected), what
        return
    assert not isinstance(got, Exception), what
    assert name_of(got.dtype) == name_of(expected.dtype) and tuple(got.shape) == tuple(expected.shape), what
    strides = zip(got.stride(), expected.stride(), expected.shape, strict=True)
    assert all(a == b for a, b, size in strides if size > 1) or not expected.numel(), what
    largest = expected.abs().max().item() if expected.numel() else 0
    tolerance = largest * (1e-14 if expected.dtype in (torch.float64, torch.complex128) else 1e-6)
    torch.testing.assert_close(
        to_torch(got.resolve_conj()), expected.resolve_conj().contiguous(), rtol=0, atol=tolerance
    )


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(NAMES),
    tensors(dtypes=TYPES, min_size=1, max_size=5),
    st.one_of(st.none(), st.integers(-1, 8)),
    st.integers(-3, 2),
    NORM,
)
def test_one_dim(name, tensor, n, dim, norm):
    check_transform(name, tensor, n, dim, norm)


@st.composite
def several(draw):
    tensor = draw(tensors(dtypes=TYPES, min_size=1, max_size=5))
    dims = draw(st.one_of(st.none(), st.lists(st.integers(-3, 2), max_size=3)))
    count = len(dims) if dims is not None and draw(st.integers(0, 5)) else draw(st.integers(0, 3))
    sizes = draw(st.one_of(st.none(), st.lists(st.integers(-1, 6), min_size=count, max_size=count)))
    return tensor, sizes, dims


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(NAMES), several(), NORM)
def test_several_dims(name, arguments, norm):
    check_transform(f"{name}n", *arguments, norm)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(NAMES), tensors(dtypes=TYPES, min_size=2, max_size=5), NORM)
def test_two_dims(name, tensor, norm):
    check_transform(f"{name}2", tensor, norm=norm)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("suffix", ("", "n"))
def test_a_pending_conjugation_is_where_torch_has_one(name, suffix):
    tensor = torch.randn(4, 3)
    got, expected = (
        getattr(library.fft, name + suffix)(x) for library, x in ((weft, to_weft(tensor)), (torch, tensor))
    )
    assert got.is_conj() == expected.is_conj()


@pytest.mark.parametrize("name", ("fft", "rfft"))
def test_half_precision_computes_in_float32(name):
    tensor = torch.randn(6).half()
    got = getattr(weft.fft, name)(to_weft(tensor))
    assert got.dtype is weft.complex32
    expected = getattr(torch.fft, name)(tensor.float())
    np.testing.assert_allclose(got.to(weft.complex64).numpy(), expected.numpy(), rtol=2e-3, atol=2e-3)
    with pytest.raises(RuntimeError, match="Unsupported dtype BFloat16"):
        getattr(weft.fft, name)(to_weft(tensor.bfloat16()))


def test_large_transforms_use_threads():
    tensor = torch.randn(70000)
    check_transform("fft", tensor)
    back = weft.fft.irfft(weft.fft.rfft(to_weft(tensor)))
    torch.testing.assert_close(to_torch(back), tensor, rtol=1e-4, atol=1e-5)


@pytest.mark.refuses(2)
@pytest.mark.parametrize("name", ("fftfreq", "rfftfreq"))
@pytest.mark.parametrize("n", (0, 1, 4, 5))
def test_frequencies(name, n):
    for dtype in (None, torch.float64, torch.float16, torch.int64):
        check(f"fft.{name}", n, 0.3, dtype=dtype)
    check(f"fft.{name}", n, out=torch.empty(0))
    check(f"fft.{name}", 2.5)


@pytest.mark.may_raise(least=0.35)
@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(("fftshift", "ifftshift")),
    tensors(dtypes=("float32", "complex64")),
    st.one_of(st.none(), st.integers(-3, 2), st.lists(st.integers(-3, 2), max_size=3)),
)
def test_shifts(name, tensor, dim):
    check(f"fft.{name}", tensor, dim)


@pytest.mark.refuses(5)
def test_out_and_wrong_types():
    x = torch.randn(4)
    check("fft.fft", x, out=torch.empty(0, dtype=torch.complex128))
    check("fft.fft", x, out=torch.empty(4))
    check("fft.fft", "x")
    check("fft.fft", x, n=2.5)
    check("fft.rfft", x.to(torch.complex64))
    check("fft.ihfftn", x.to(torch.complex64))


@pytest.mark.parametrize("name", ["fft", "ifft"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 9, 10])
def test_zeros_of_real_signals_have_torchs_sign(name, n):
    tensor = torch.arange(1.0, 3 * n + 1).reshape(3, n) ** 2
    mirrored = slice(0, None, n if n % 2 else n // 2)  # the terms that are their own mirror images
    expected = getattr(torch.fft, name)(tensor).imag[:, mirrored]
    got = to_torch(getattr(weft.fft, name)(to_weft(tensor)).resolve_conj().imag)[:, mirrored]
    assert not got.any()
    assert torch.equal(torch.signbit(got), torch.signbit(expected))


UNFIT = """
torch.fft.rfft2(torch.ones(2, 3), s=(6.0, 8))  # raises
torch.fft.rfft2(torch.ones(2, 3), s=(6, 8.0))  # raises
torch.fft.rfft2(torch.ones(2, 3), s=(True, 8))  # raises
torch.fft.rfft2(torch.ones(2, 3), dim=(0, 1.0))  # raises
torch.fft.fftshift(torch.ones(2, 3), dim=1.0)  # raises
torch.fft.fftn(torch.ones(2, 3), s=4)
torch.fft.fftn(torch.ones(2, 3), dim=0)
torch.fft.fft2(torch.ones(2, 3), dim=None)  # raises
torch.fft.fftn(torch.ones(2, 3), dim=None)
torch.fft.fftshift(torch.tensor(1.0), dim=0)  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
