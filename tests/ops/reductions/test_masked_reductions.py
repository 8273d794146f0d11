import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import check

import weft
import weft.masked

pytestmark = pytest.mark.filterwarnings("ignore")


@st.composite
def inputs(draw, dtypes=("float32", "int64", "bool", "bfloat16", "uint8", "complex64")):
    shape = draw(st.lists(st.integers(1, 3), max_size=3))
    torch.manual_seed(draw(st.integers(0, 99)))
    x = torch.randn(shape).mul(3).to(getattr(torch, draw(st.sampled_from(dtypes))))
    mask_shape = shape[draw(st.integers(0, len(shape))) :]
    mask = draw(st.sampled_from([None, torch.rand(mask_shape) > 0.3]))
    dim = draw(st.none() | st.integers(-len(shape), len(shape) - 1)) if shape else None
    return x, dim, mask


@pytest.mark.may_raise(least=0.8)
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["sum", "prod", "amax", "amin", "argmax", "argmin"]), inputs(), st.booleans())
def test_reductions(name, given, keepdim):
    x, dim, mask = given
    if mask is not None and (x.dtype is torch.bool or x.is_complex()) and name.startswith("a"):
        return  # PyTorch has no identity for these
    check(f"masked.{name}", x, dim, keepdim=keepdim, mask=mask)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["mean", "var", "std", "logsumexp"]), inputs(("float32", "float64")), st.booleans())
def test_means_and_moments(name, given, keepdim):
    x, dim, mask = given
    check(f"masked.{name}", x, dim, keepdim=keepdim, mask=mask)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["softmax", "log_softmax", "softmin", "cumsum", "cumprod", "median"]),
    inputs(("float32", "float64")),
)
def test_along_a_dim(name, given):
    x, dim, mask = given
    check(f"masked.{name}", x, dim or 0, mask=mask)


@settings(max_examples=60, deadline=None)
@given(inputs(("float32", "float64")), st.sampled_from([1.0, 2.0, torch.inf, -torch.inf, 0.0]))
def test_norms(given, order):
    x, dim, mask = given
    check("masked.norm", x, order, dim, mask=mask)
    check("masked.normalize", x, order, dim or 0, mask=mask)


def test_complex_logsumexp():
    x = torch.randn(5, 40, dtype=torch.complex128)
    check("masked.logsumexp", x, 0, mask=x.real > 0)


def test_logaddexp():
    a, b, mask = torch.randn(3), torch.randn(3), torch.tensor([True, False, True])
    check("masked.logaddexp", a, b, input_mask=mask)


@pytest.mark.refuses("all")
def test_errors():
    check("masked.sum", torch.ones(2), mask=torch.ones(2, 2, dtype=torch.bool))
    check("masked.mean", torch.ones(2, dtype=torch.int64))
    check("masked.median", torch.ones(2, dtype=torch.int64), 0, mask=torch.zeros(2, dtype=torch.bool))


IDENTITIES = (
    "sum cumsum masked.prod cumprod amax argmax logaddexp logsumexp amin argmin mean norm median var softmax"
)


@pytest.mark.parametrize("name", IDENTITIES.split())
def test_values_that_reductions_ignore(name):
    def found(library, dtype, *order):
        try:
            value = library.masked._reduction_identity(
                name, library.ones(2, dtype=getattr(library, dtype)), *order
            )
        except (NotImplementedError, TypeError) as error:
            return "complex" in dtype or (type(error), str(error).replace("weft", "torch"))
        return value if value is None else (value.item(), str(value.dtype).partition(".")[2])

    for dtype in "bool uint8 int8 int64 float16 bfloat16 float32 complex64".split():
        assert repr(found(weft, dtype)) == repr(found(torch, dtype)), dtype
    assert repr(found(weft, "float32", -float("inf"))) == repr(found(torch, "float32", -float("inf")))


def test_masks_of_results():
    def found(library):
        masked, x = library.masked, library.arange(6.0).reshape(2, 3)
        mask = library.tensor([[1, 0, 1], [0, 0, 0]])
        return [
            masked._input_mask(x, mask=mask[0]).tolist(),
            masked._output_mask(masked.sum, x, dim=1, mask=mask).tolist(),
            masked._output_mask(masked.amax, x, 0, keepdim=True, mask=mask).tolist(),
            masked._output_mask(masked.norm, x, 2.0, 1, mask=mask).tolist(),
            masked._output_mask(masked.mean, x, mask=mask).tolist(),
            masked._output_mask(masked.softmax, x, 1, mask=mask).tolist(),
            masked._output_mask(masked.cumsum, x, 1, mask=mask).tolist(),
        ]

    assert found(weft) == found(torch)
    for library in (torch, weft):
        x = library.ones(2)
        for wrong in (library.relu, 3):
            with pytest.raises(ValueError, match="expected masked operation"):
                library.masked._output_mask(wrong, x, mask=x > 0)
        with pytest.raises(ValueError, match="requires explicit mask"):
            library.masked._input_mask(x)
