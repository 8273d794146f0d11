"""Reductions to a stated dtype, of special values, and what autograd makes of them."""

import itertools
import math

import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from twins import outcome

import weft

NAN = math.nan
DTYPES = ("bool", "uint8", "int64", "bfloat16", "float32", "complex64")
VALUES = {
    "bool": [True, False, True, True],
    "uint8": [0, 200, 3, 255],
    "float": [0.5, 0.3, 2.5, 1.0],
    "nan": [0.5, NAN, 2.0, 256.0],
    "complex": [0.5 + 0.25j, 0.25j, 2 + 1j, -1 + 0j],
    "int": [-3, 100, 0, 127],
    "bytes": [256, 512, 0, 0],
}


def kinds(dtype):
    if dtype in ("bool", "uint8"):
        return [dtype]
    if "float" in dtype:
        return ["float", "nan"]
    if dtype == "complex64":
        return ["complex"]
    return ["int"] if dtype == "int8" else ["int", "bytes"]


REDUCTIONS = {
    "sum": lambda lib, t, dtype: t.sum(dtype=dtype),
    "sum of rows": lambda lib, t, dtype: t.expand(3, 4).sum(1, dtype=dtype),
    "sum of columns": lambda lib, t, dtype: t.reshape(2, 2).sum(0, dtype=dtype),
    "nansum": lambda lib, t, dtype: t.nansum(dtype=dtype),
    "nansum of rows": lambda lib, t, dtype: t.expand(3, 4).nansum(1, dtype=dtype),
    "prod": lambda lib, t, dtype: t[:2].prod(dtype=dtype),
    "mean": lambda lib, t, dtype: t.mean(dtype=dtype),
    "nanmean": lambda lib, t, dtype: t.nanmean(dtype=dtype),
    "cumsum": lambda lib, t, dtype: t.cumsum(0, dtype=dtype),
    "cumprod": lambda lib, t, dtype: t[:2].cumprod(0, dtype=dtype),
    "softmax": lambda lib, t, dtype: t.softmax(0, dtype=dtype).dtype,
    "norm": lambda lib, t, dtype: t.norm(math.inf, 0, dtype=dtype),
}


def converted(lib, name, kind, dtype, wanted):
    values = lib.tensor(VALUES[kind], dtype=getattr(lib, dtype))
    return REDUCTIONS[name](lib, values, getattr(lib, wanted))


@pytest.mark.parametrize("name", sorted(REDUCTIONS))
def test_elements_are_converted_as_pytorch_does(name):
    for dtype, wanted in itertools.product(DTYPES, DTYPES):
        for kind in kinds(dtype):
            if kind == "nan" and wanted == "complex64":  # the imaginary part of NaN / n
                continue
            theirs, mine = (outcome(converted, lib, name, kind, dtype, wanted) for lib in (torch, weft))
            if theirs is NotImplementedError:
                continue
            if isinstance(theirs, dict) and wanted in (
                "float16",
                "bfloat16",
            ):  # the last bit is PyTorch's own
                theirs, mine = theirs["dtype"], mine["dtype"].replace("weft", "torch")
            assert repr(mine).replace("weft", "torch") == repr(theirs), (dtype, wanted, kind)


def test_a_sum_of_bools_is_whether_there_is_one():
    """256 of them, and an even number: no carry is cut off, and two do not cancel."""
    for count in (2, 256, 1000):
        assert weft.ones(count).sum(dtype=weft.bool).item() is True
        assert weft.ones(count, 3, dtype=weft.bool).sum(0, dtype=weft.bool).tolist() == [True] * 3
    assert weft.zeros(4).sum(dtype=weft.bool).item() is False


@pytest.mark.parametrize("name", ["sum", "nansum", "prod"])
def test_out_decides_in_which_dtype_is_computed(name):
    for dtype, target in itertools.product(("bool", "uint8", "int64", "float32", "complex64"), repeat=2):

        def program(lib, dtype=dtype, target=target):
            values = lib.tensor([1, 0, 3, 250]).to(getattr(lib, dtype))
            return getattr(lib, name)(values, 0, out=lib.empty(0, dtype=getattr(lib, target)))

        theirs = outcome(program, torch)
        if not isinstance(theirs, type):
            assert repr(outcome(program, weft)).replace("weft", "torch") == repr(theirs), (dtype, target)


@pytest.mark.parametrize("wanted", ["int64", "bool", "uint8"])
@pytest.mark.parametrize("name", ["sum", "nansum", "prod", "cumsum", "cumprod"])
def test_an_integer_result_of_a_recorded_reduction_is_an_error(name, wanted):
    """It would be a constant for autograd, in silence."""
    for lib in (torch, weft):
        x = lib.tensor([1.0, 2.0], requires_grad=True)
        args = (0,) if name.startswith("cum") else ()
        with pytest.raises(RuntimeError):
            getattr(x, name)(*args, dtype=getattr(lib, wanted))
        if wanted != "bool" or not args:
            with lib.no_grad():
                getattr(x, name)(*args, dtype=getattr(lib, wanted))


def test_the_norm_of_one_element_does_not_overflow():
    for value, p in itertools.product((1e30, -1e30, 1e-30, NAN, 0.0), (2, 1, 3.0, 0.5, 0, -1, math.inf)):

        def program(lib, value=value, p=p):
            x = lib.tensor([[value]], requires_grad=True)
            out = lib.linalg.vector_norm(x, p, 1)
            return out.tolist(), out.requires_grad, lib.dist(x, -x).tolist()

        assert repr(program(weft)) == repr(program(torch)), (value, p)


@pytest.mark.parametrize("function", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dtype", ["int64", "bool", "uint8", "complex64", "float32"])
def test_softmax_of_no_elements_takes_every_dtype(function, dtype):
    for shape, dim in itertools.product(((2, 0), (0,), (2,), (0, 3)), (0, -1, 1)):

        def program(lib, shape=shape, dim=dim):
            return getattr(lib.zeros(shape, dtype=getattr(lib, dtype)), function)(dim)

        assert repr(outcome(program, weft)).replace("weft", "torch") == repr(outcome(program, torch))


UNFIT = """
torch.ones(3, 4).sum_to_size((None, 4))  # raises
torch.ones(3, 4).sum_to_size(1.5)  # raises
torch.ones(3, 4).sum_to_size((1, 4.0))  # raises
torch.ones(3, 4).sum_to_size((True, 4))  # raises
torch.ones(3, 4).sum_to_size((1, True))
torch.ones(3, 4).sum((0, True))
torch.ones(3, 4).sum((True, 0))  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)


EXTREMA_THAT_ARE_REFUSED = """
torch.tensor([1j]).argmax(-2, True)  # raises
torch.tensor([1j]).argmax(0)  # raises
torch.tensor([1j]).argmin(5)  # raises
torch.zeros(2, 0, dtype=torch.complex64).argmin(1)  # raises
torch.zeros(2, 0, dtype=torch.complex64).argmin()  # raises
torch.tensor([True]).argmax(-2, True)  # raises
torch.tensor([True]).argmax(0, True)  # raises
torch.zeros(2, 0, dtype=torch.bool).argmax(1)  # raises
torch.zeros(2, 0, dtype=torch.bool).argmax()  # raises
torch.zeros(2, 0, dtype=torch.bool).argmax(0)  # raises
torch.ones(2).argmax(0.5)  # raises
torch.tensor([1j]).max(3)  # raises
torch.tensor([1j]).min(0)  # raises
torch.zeros(0, dtype=torch.complex64).min(0)  # raises
torch.tensor([1j]).amax(3)  # raises
torch.tensor([1j]).amax(0)  # raises
torch.zeros(0, dtype=torch.complex64).amax(0)  # raises
torch.zeros(0, dtype=torch.complex64).amax()  # raises
torch.zeros(0, dtype=torch.complex64).max()  # raises
torch.aminmax(torch.zeros(0, dtype=torch.complex64))  # raises
torch.aminmax(torch.zeros(1, dtype=torch.complex64), dim=4)  # raises
"""


@pytest.mark.parametrize("expression", lines(EXTREMA_THAT_ARE_REFUSED))
def test_extrema_that_are_refused(expression):
    """The dtype, the dims and the sizes are checked in PyTorch's order."""
    check_expression(expression)
