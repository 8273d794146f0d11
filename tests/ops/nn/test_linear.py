"""Linear and bilinear maps against PyTorch."""

import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from matrices import random
from oracle import check

import weft

SHAPES = [
    ((2, 3), (4, 3), (4,)),
    ((5, 2, 3), (4, 3), (4,)),
    ((3,), (4, 3), (4,)),
    ((2, 3), (4, 3), None),
    ((2, 3), (3,), None),
    ((2, 3), (4, 5), None),
    ((2, 3), (4, 3), (5,)),
    ((), (4, 3), None),
    ((2, 3), (3,), ()),
]


@pytest.mark.refuses(
    [
        "dtype0-shapes5", "dtype0-shapes6", "dtype0-shapes7", "dtype0-shapes8", "dtype1-shapes5",
        "dtype1-shapes6", "dtype1-shapes7", "dtype1-shapes8", "dtype2-shapes5", "dtype2-shapes6",
        "dtype2-shapes7", "dtype2-shapes8", "dtype3-shapes5", "dtype3-shapes6", "dtype3-shapes7",
        "dtype3-shapes8", "dtype4-shapes5", "dtype4-shapes6", "dtype4-shapes7", "dtype4-shapes8",
    ]
)  # fmt: skip
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize(
    "dtype", (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.complex64)
)
def test_linear(shapes, dtype):
    check(
        "nn.functional.linear",
        *(None if shape is None else random(*shape).mul(4).to(dtype) for shape in shapes),
    )


@pytest.mark.refuses(["shapes2", "shapes3"])
@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 3), (2, 4), (5, 3, 4), (5,)),
        ((6, 2, 3), (6, 2, 4), (5, 3, 4)),
        ((2, 3), (3, 4), (5, 3, 4)),
        ((2, 3), (2, 4), (5, 3, 5)),
    ],
)
def test_bilinear(shapes):
    tensors = [random(*shape) for shape in shapes]
    check("nn.functional.bilinear", *tensors) if len(shapes) == 4 else check(
        "nn.functional.bilinear", *tensors
    )


def test_dtypes_that_differ_are_named():
    for t in (torch, weft):
        with pytest.raises(
            RuntimeError, match="mat1 and mat2 must have the same dtype, but got Double and Float"
        ):
            t.nn.functional.linear(t.ones(2, 4, dtype=t.float64), t.ones(3, 4), t.ones(3))


UNFIT = """
torch.nn.functional.linear(torch.ones(2, 8, 8), torch.ones(1, 8, 8))  # raises
torch.nn.functional.linear(torch.ones(2, 8), torch.ones(1, 8, 8), torch.ones(8))  # raises
torch.nn.functional.linear(torch.ones(3), torch.ones(3), torch.tensor(1.0))
torch.nn.functional.linear(torch.ones(2, 2, 3), torch.ones(3), torch.tensor(1.0))
torch.nn.functional.linear(torch.ones(2, 2, 3), torch.ones(3), torch.ones(2, 2))
torch.nn.functional.linear(torch.ones(2, 2, 3, requires_grad=True), torch.ones(3), torch.tensor(1.0))
torch.nn.functional.linear(torch.ones(2, 2, 3), torch.ones(3), torch.ones(3, 2, 2))  # raises
torch.nn.functional.linear(torch.ones(2, 3), torch.ones(3), torch.tensor(1.0))  # raises
torch.nn.functional.linear(torch.ones(2, 2, 3), torch.ones(3), torch.ones(2))  # raises
torch.nn.functional.bilinear(torch.ones(2, 3), torch.ones(2, 4), torch.ones(0, 3, 4))
torch.nn.functional.bilinear(torch.ones(0, 3), torch.ones(0, 4), torch.ones(3, 4))  # raises
torch.nn.functional.bilinear(torch.ones(0, 3), torch.ones(0, 4), torch.ones(2, 3, 4))
torch.nn.functional.bilinear(torch.ones(2, 3), torch.ones(2, 4), torch.ones(5, 3, 4), torch.tensor(1.0))  # raises
torch.nn.functional.bilinear(torch.ones(2, 3), torch.ones(2, 4), torch.ones(5, 3, 4), torch.ones(1))  # raises
torch.nn.functional.bilinear(torch.ones(2, 3), torch.ones(2, 4), torch.ones(5, 3, 4), torch.ones(5).half())  # raises
torch.nn.Bilinear("a", 4, 5)  # raises
torch.nn.Bilinear(0, 4, 5)  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
