"""Running one expression in weft and in PyTorch, and comparing everything that can be seen of the results."""

import warnings
from typing import NamedTuple

import numpy as np
import torch
from expected import is_raising, judge
from hypothesis import strategies as st

import weft


class Layout(NamedTuple):
    """A tensor by its metadata; its storage counts up from 0."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0
    dtype: str = "float32"
    conj: bool = False


@st.composite
def layouts(draw, shape=None, dtypes=("float32", "int64", "bool", "complex64"), max_dims=4):
    """Layouts that are contiguous, permuted, with gaps, expanded, offset, empty."""
    if shape is None:
        ndim = draw(st.integers(0, max_dims))
        shape = draw(st.lists(st.integers(0, 4), min_size=ndim, max_size=ndim))
    stride, step = [0] * len(shape), draw(st.sampled_from([1, 1, 1, 2]))
    for dim in (
        draw(st.permutations(range(len(shape)))) if draw(st.booleans()) else reversed(range(len(shape)))
    ):
        stride[dim] = step if draw(st.integers(0, 7)) else 0
        step *= max(shape[dim], 1) * draw(st.sampled_from([1, 1, 1, 2]))
    dtype = draw(st.sampled_from(dtypes))
    conj = dtype == "complex64" and draw(st.booleans())
    return Layout(tuple(shape), tuple(stride), draw(st.integers(0, 3)), dtype, conj)


def tensor(library, layout):
    span = 1 + sum((n - 1) * step for n, step in zip(layout.shape, layout.stride, strict=True) if n)
    values = np.arange(layout.offset + span + 1)
    if layout.dtype == "complex64":
        values = values * (1 - 2j)
    base = library.from_numpy(values).to(getattr(library, layout.dtype))
    result = library.as_strided(base, layout.shape, layout.stride, layout.offset)
    return result.conj() if layout.conj else result


def _evaluate(library, expression, layouts):
    names = {name: tensor(library, layout) for name, layout in layouts.items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(expression, {"torch": library, "np": np, **names}), names
    except Exception as error:
        return error, names


def _address(tensor):
    return tensor.untyped_storage().data_ptr()


def _assert_same(ours, theirs, our_inputs, their_inputs):
    assert type(ours).__name__ == type(theirs).__name__, (ours, theirs)
    if isinstance(theirs, Exception):
        return
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            _assert_same(a, b, our_inputs, their_inputs)
        return
    if not isinstance(theirs, torch.Tensor):
        assert ours == theirs
        return
    of = {name for name, each in our_inputs.items() if each.untyped_storage() is ours.untyped_storage()}
    assert (
        of == {name for name, each in their_inputs.items() if _address(each) == _address(theirs) != 0}
        or not ours.numel()
    )
    assert [name for name, each in our_inputs.items() if each is ours] == [
        name for name, each in their_inputs.items() if each is theirs
    ]
    assert (ours.shape, str(ours.dtype)) == (theirs.shape, str(theirs.dtype))
    assert ours.stride() == theirs.stride()
    if of:
        assert ours.storage_offset() == theirs.storage_offset()
    assert (ours.is_conj(), ours.is_neg()) == (theirs.is_conj(), theirs.is_neg())
    np.testing.assert_array_equal(ours.numpy(force=True), theirs.numpy(force=True))


def check(expression, *, message=False, raises=False, **layouts):
    """Assert that values, dtypes, strides, offsets, shared storages and errors agree; the result of torch."""
    ours, our_inputs = _evaluate(weft, expression, layouts)
    theirs, their_inputs = _evaluate(torch, expression, layouts)
    judge(theirs, raises or is_raising(expression), expression)
    try:
        _assert_same(ours, theirs, our_inputs, their_inputs)
        if message:
            assert str(ours).splitlines()[0] == str(theirs).splitlines()[0]
    except AssertionError as error:
        error.add_note(f"{expression} with {layouts}\nweft: {ours!r}\ntorch: {theirs!r}")
        raise
    return theirs


# Shapes of images: with one channel, with one sample, and empty ones among them, where memory formats are alike.
IMAGES = st.sampled_from([(2, 3, 2, 2), (1, 4, 3, 3), (2, 1, 2, 2), (2, 4, 2, 2, 2), (0, 2, 2, 2)])
