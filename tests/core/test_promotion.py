import itertools

import pytest
import torch

import weft
from weft.core.dtype import DTYPES
from weft.core.promotion import can_cast, promote_types

NAMES = sorted(DTYPES)


def outcome(function, *arguments):
    try:
        return str(function(*arguments))
    except RuntimeError as error:
        return str(error).splitlines()[0]


@pytest.mark.parametrize("first", NAMES)
def test_every_pair_promotes_as_in_torch(first):
    for second in NAMES:
        ours = outcome(promote_types, DTYPES[first], DTYPES[second])
        assert ours == outcome(torch.promote_types, getattr(torch, first), getattr(torch, second))
        assert can_cast(DTYPES[first], DTYPES[second]) == torch.can_cast(
            getattr(torch, first), getattr(torch, second)
        )


def operands(module, name):
    """A tensor with dims, a 0-dim tensor, and Python numbers of every kind."""
    dtype = getattr(module, name)
    return [module.ones(2, dtype=dtype), module.ones((), dtype=dtype)]


PLAIN = [
    "bool",
    "uint8",
    "int8",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex32",
    "complex64",
]


@pytest.mark.parametrize("name", PLAIN)
def test_dimensions_and_numbers_have_priorities(name):
    for other in PLAIN:
        for i, j in itertools.product(range(2), repeat=2):
            ours = operands(weft, name)[i] * operands(weft, other)[j]
            theirs = torch.result_type(operands(torch, name)[i], operands(torch, other)[j])
            assert str(ours.dtype) == str(theirs), (name, other, i, j)
    for number in (True, 2, 2.0, 2j):
        for i in range(2):
            ours = operands(weft, name)[i] * number
            assert str(ours.dtype) == str(torch.result_type(operands(torch, name)[i], number)), (name, number)


def test_default_dtype_decides_what_numbers_are():
    before = weft.get_default_dtype()
    try:
        weft.set_default_dtype(weft.float64)
        assert (weft.ones(2, dtype=weft.int32) * 2.0).dtype is weft.float64
        assert weft.zeros(2).dtype is weft.float64
    finally:
        weft.set_default_dtype(before)
    assert weft.zeros(2).dtype is weft.float32
    with pytest.raises(TypeError, match="floating"):
        weft.set_default_dtype(weft.int32)
