"""Tensors as Python objects: conversions, truth, length, iteration, formats."""

import warnings
import weakref

import pytest
from expressions import check, lines

import weft

EXPRESSIONS = """
torch.ones(2).item()  # raises
torch.ones(2).tolist()
torch.tensor(3.7).__int__()
int(torch.tensor(float('nan')))  # raises
int(torch.tensor(float('inf')))  # raises
int(torch.tensor([3]))
int(torch.tensor([3,4]))  # raises
float(torch.tensor(3+0j))
float(torch.tensor(3+1j))  # raises
complex(torch.tensor(3))
int(torch.tensor(3+0j))
bool(torch.tensor(1j))
bool(torch.tensor([]))  # raises
bool(torch.tensor([1,2]))  # raises
range(3)[torch.tensor(1)]
range(3)[torch.tensor(1.)]  # raises
range(3)[torch.tensor([1])]
range(3)[torch.tensor(True)]
[1,2][torch.tensor(True)]
torch.tensor(3., device='meta').item()  # raises
float(torch.tensor(3., device='meta'))  # raises
torch.ones(2, device='meta').tolist()  # raises
bool(torch.tensor(3., device='meta'))  # raises
2 in torch.tensor([1,2])
'a' in torch.tensor([1,2])  # raises
torch.tensor(2) in torch.tensor([1,2])
None in torch.tensor([1,2])  # raises
torch.tensor([1,2]) in torch.tensor([[1,2]])
len(torch.tensor(3))  # raises
list(torch.tensor(3))  # raises
list(torch.ones(2,2))
list(torch.ones(0,2))
format(torch.tensor(3.14159), '.2f')
format(torch.ones(2), '.2f')  # raises
format(torch.ones(2))
f"{torch.tensor(3)}"
f"{torch.tensor(3):d}"
torch.tensor(3.5) in [torch.tensor(3.5)]
torch.ones(2).is_nonzero()  # raises
torch.is_nonzero(torch.tensor([0.]))
torch.is_nonzero(torch.tensor([]))  # raises
torch.is_nonzero(3)  # raises
torch.tensor(3, dtype=torch.uint64).item()
torch.tensor(3, dtype=torch.complex32).item()
torch.tensor(3, dtype=torch.float8_e5m2).item()
torch.tensor(3, dtype=torch.bfloat16).tolist()
torch.tensor([3], dtype=torch.float8_e5m2).tolist()
torch.tensor([1+2j]).conj().tolist()
torch.tensor([1+2j], dtype=torch.complex32).tolist()
list(reversed(torch.arange(3)))
torch.zeros(2, dtype=torch.int64).requires_grad_()  # raises
torch.zeros(2, dtype=torch.complex64).requires_grad_()
setattr(torch.zeros(2, dtype=torch.int64), 'requires_grad', True)  # raises
"""


@pytest.mark.parametrize("expression", lines(EXPRESSIONS))
def test_same_as_torch(expression):
    check(expression)


@pytest.mark.parametrize("dtype", list(weft.core.dtype.DTYPES.values()), ids=str)
def test_item_and_tolist_of_every_dtype(dtype):
    check(f"torch.tensor([0, 1, 1]).to({dtype})[1].item()")
    check(f"torch.tensor([[0], [1]]).to({dtype}).tolist()")


def test_a_tensor_is_its_own_key():
    a, b = weft.ones(1), weft.ones(1)
    assert {a: 1, b: 2}[a] == 1
    assert weakref.ref(a)() is a


@pytest.mark.parametrize("convert", [float, complex])
def test_a_number_of_a_tensor_that_requires_grad_warns(convert):
    weft.core.warn.warn_once.forget()
    with pytest.warns(UserWarning, match="requires_grad=True to a scalar") as caught:
        assert convert(weft.ones(1, requires_grad=True)) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert convert(weft.ones(1)) == 1
        assert convert(weft.ones(1, requires_grad=True).detach()) == 1
        with weft.no_grad():
            assert convert(weft.ones(1, requires_grad=True)) == 1
        assert int(weft.ones(1, requires_grad=True)) == 1
