"""Tensors of odd strides drawn by hypothesis, and functions of a library that must do the same in both."""

import torch
from expected import judge
from hypothesis import strategies as st
from oracle import converted, strides_that_count

import weft

DTYPES = (
    "float32",
    "float64",
    "int64",
    "uint8",
    "bool",
    "complex64",
    "bfloat16",
    "float16",
    "int16",
    "complex128",
)


def counting(shape, dtype="float32"):
    """1, 2, 3, ... in this shape."""
    shape = tuple(shape)
    return torch.arange(1, torch.Size(shape).numel() + 1).to(getattr(torch, dtype)).reshape(shape)


@st.composite
def tensors(draw, min_dims=0, max_dims=3, max_size=4, dtypes=("float32",), min_size=0, expanded=True):
    """A tensor of the oracle: contiguous, permuted, with steps, or expanded."""
    shape = draw(st.lists(st.integers(min_size, max_size), min_size=min_dims, max_size=max_dims))
    steps = [draw(st.integers(1, 2)) for _ in shape]
    order = draw(st.permutations(range(len(shape))))
    inverse = [list(order).index(dim) for dim in range(len(shape))]
    repeated = draw(st.integers(0, 3)) if expanded and shape else 3
    size = [1 if dim == repeated else shape[dim] * steps[dim] for dim in range(len(shape))]
    base = counting((size[dim] for dim in order), draw(st.sampled_from(dtypes)))
    if not shape:
        return base
    return base.permute(*inverse)[tuple(slice(None, None, step) for step in steps)].expand(*shape)


def facts(result):
    """All that must agree, as plain Python."""
    if isinstance(result, (tuple, list)):
        return [facts(each) for each in result]
    if not isinstance(result, (torch.Tensor, weft.Tensor)):
        return result
    return {
        "shape": tuple(result.shape),
        "stride": strides_that_count(result),
        "dtype": str(result.dtype),
        "values": repr(result.tolist()),
    }


def outcome(function, *arguments):
    """The facts of a result, or the type of the exception."""
    try:
        return facts(function(*arguments))
    except Exception as error:
        return type(error)


def check(function, *operands, raises=False):
    """Assert that function(library, *operands) does the same in both libraries: with `raises`, an exception of the same type."""
    twins = converted(operands)  # before the function writes into them
    theirs = outcome(function, torch, *operands)
    judge(theirs, raises, operands)
    assert outcome(function, weft, *twins) == theirs
