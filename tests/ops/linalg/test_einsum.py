"""einsum against PyTorch."""

import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import assert_same, check, to_torch, to_weft

import weft

SIZE = {"a": 2, "b": 3, "c": 4, "d": 1, "e": 5}


def operand(labels, broadcast=()):
    shape = [1 if label in broadcast else SIZE[label] for label in labels]
    return torch.rand(shape, dtype=torch.float64)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_random_equations(data):
    count = data.draw(st.integers(1, 4))
    inputs = [data.draw(st.text("abcde", max_size=4)) for _ in range(count)]
    used = sorted(set("".join(inputs)))
    output = "".join(data.draw(st.permutations(used)))[: data.draw(st.integers(0, len(used)))]
    broadcast = data.draw(st.sets(st.sampled_from("abc")))
    operands = [
        operand(labels, broadcast if len(set(labels)) == len(labels) and i % 2 else ())
        for i, labels in enumerate(inputs)
    ]
    equation = ",".join(inputs) + (f"->{output}" if data.draw(st.booleans()) else "")
    expected = torch.einsum(equation, *operands)
    got = weft.einsum(equation, *map(to_weft, operands))
    assert tuple(got.shape) == tuple(expected.shape)
    torch.testing.assert_close(to_torch(got), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    "equation, shapes",
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]),
        ("b h i d , b h j d -> b h i j", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("...ij,...jk->...ik", [(5, 1, 2, 3), (4, 3, 2)]),
        ("...,...", [(2, 3), (3,)]),
        ("i...->...", [(2, 3)]),
        ("ii", [(3, 3)]),
        ("ii->i", [(3, 3)]),
        ("...ii->...i", [(2, 3, 3)]),
        ("i,j->ij", [(2,), (3,)]),
        ("i,i", [(3,), (3,)]),
        ("i,i->i", [(3,), (3,)]),
        ("ij->ji", [(2, 3)]),
        ("ij->", [(2, 3)]),
        ("bn,anm,bm->ba", [(2, 3), (4, 3, 5), (2, 5)]),
        (",->", [(), ()]),
        ("ba", [(2, 3)]),
        ("bA", [(2, 3)]),
    ],
)
def test_equations_give_values_and_strides(equation, shapes):
    check("einsum", equation, *(torch.rand(shape, dtype=torch.float64) for shape in shapes))


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.bfloat16, torch.complex64, torch.uint8])
@pytest.mark.parametrize("equation", ["ij,jk->ik", "ij,ij->ij", "ij->i"])
def test_dtypes(equation, dtype):
    tensors = [torch.randint(0, 3, (3, 3)).to(dtype) for _ in range(1 + ("," in equation))]
    check("einsum", equation, *tensors)


def test_lists_of_dims():
    a, b = torch.rand(2, 3), torch.rand(3, 4)
    assert_same(
        weft.einsum(to_weft(a), [0, 1], to_weft(b), [1, 51], [51, 0]),
        torch.einsum(a, [0, 1], b, [1, 51], [51, 0]),
    )
    b = torch.rand(3, 2)
    assert_same(
        weft.einsum(to_weft(a), [..., 1], to_weft(b), [1, ...]), torch.einsum(a, [..., 1], b, [1, ...])
    )


WRONG = [
    ("ij,jk->ik", [(2, 3)]),
    ("ij", [(2, 3), (3, 4)]),
    ("ij,jk->iz", [(2, 3), (3, 4)]),
    ("ij,jk->ii", [(2, 3), (3, 4)]),
    ("ij,jk->ik", [(2, 3), (4, 4)]),
    ("i1,jk->ik", [(2, 3), (3, 4)]),
    ("i..,jk", [(2, 3), (3, 4)]),
    ("......i", [(2, 3)]),
    ("i", [(2, 3)]),
    ("ijk", [(2, 3)]),
    ("ii", [(2, 3)]),
    ("i->...", [(2, 3)]),
]


@pytest.mark.parametrize("equation, shapes", WRONG)
def test_wrong_equations_raise_what_torch_raises(equation, shapes):
    operands = [torch.rand(shape) for shape in shapes]
    with pytest.raises(Exception) as theirs:
        torch.einsum(equation, *operands)
    with pytest.raises(theirs.type):
        weft.einsum(equation, *map(to_weft, operands))


@pytest.mark.parametrize("arguments", [(), ("i",), (3, 4), ("i", 3)])
def test_wrong_arguments(arguments):
    with pytest.raises(Exception) as theirs:
        torch.einsum(*arguments)
    with pytest.raises(theirs.type):
        weft.einsum(*arguments)


UNFIT = """
torch.einsum(torch.ones(2, 3), ["a", "b"], ["b"])  # raises
torch.einsum(torch.ones(2, 3), [0.0, 1], [0])  # raises
torch.einsum(torch.ones(2, 3), [0, 99], [0])  # raises
torch.einsum(torch.ones(2, 3), [0, 1], [0])
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)


def test_dtypes_mix_where_only_dims_of_size_1_are_summed():
    check("einsum", "ij,ij->i", torch.tensor([[5], [3]]), torch.tensor([[2.5], [1.5]], dtype=torch.float64))
    check("einsum", "ij,kj->ik", torch.tensor([[5], [3]]), torch.tensor([[2.5]]))
    check("einsum", "ij,ij->i", torch.ones(2, 2), torch.ones(2, 2, dtype=torch.float64), raises=True)


@pytest.mark.refuses(["ijk,jl->il"])
@pytest.mark.parametrize("equation", ["ik,j->ij", "i,j->", "ik,il,j->ij", "ij,j->i", "ijk,jl->il"])
def test_sums_of_one_operand_promote_integers(equation):
    operands = [
        torch.ones([2] * len(labels), dtype=torch.int8) for labels in equation.split("->")[0].split(",")
    ]
    check("einsum", equation, *operands)
