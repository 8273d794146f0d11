"""Copies and conversions against PyTorch."""

import pytest
import torch
from expressions import check, evaluate, facts, lines
from hypothesis import given
from hypothesis import strategies as st
from oracle import to_weft
from twins import DTYPES, tensors

import weft

EXPRESSIONS = """
torch.ones(2).to()
torch.ones(2).to('cpu')
torch.ones(2).to('cpu', torch.float64)
torch.ones(2).to(torch.float64, True)
torch.ones(2).to(torch.float64, True, True)
torch.ones(2).to(torch.float64, False, True, True)  # raises
torch.ones(2).to(torch.ones(2, dtype=torch.int32))
torch.ones(2).to(float)
torch.ones(2).to(int)
torch.ones(2).to('foo')  # raises
torch.ones(2).to(None)
torch.ones(2).to(device=None, dtype=None)
torch.ones(2).to(dtype='a')  # raises
torch.ones(2).to(torch.float32, foo=1)  # raises
torch.ones(2).to([1])  # raises
torch.ones(2).to(torch.channels_last)  # raises
torch.ones(2,3,4,5).to(memory_format=torch.channels_last).stride()
torch.ones(2,3).to(memory_format=torch.channels_last)  # raises
torch.ones(2).to('meta')
torch.ones(2, device='meta').to('cpu')  # raises
torch.ones(2, device='meta').cpu()  # raises
torch.ones(2, dtype=torch.complex64).to(torch.float32)
torch.ones(2).copy_(torch.ones(2, dtype=torch.complex64))
torch.ones(2).copy_(torch.ones(3))  # raises
torch.ones(2).copy_(torch.ones(1))
torch.ones(2).copy_(torch.tensor(3))
torch.ones(2).copy_(torch.ones(2,2))  # raises
torch.ones(2).copy_(3)
torch.ones(2).copy_(np.ones(2))  # raises
torch.ones(2).copy_(torch.ones(1,2))  # raises
torch.ones(0).copy_(torch.ones(1))
torch.ones(2).copy_(torch.ones(2, device='meta'))  # raises
torch.ones(2, device='meta').copy_(torch.ones(2))
torch.ones(1).expand(2).copy_(torch.ones(2))  # raises
torch.ones(2).copy_(torch.ones(2), True)
torch.ones(2).double().dtype
torch.ones(2,3,4,5).double(memory_format=torch.channels_last).stride()
torch.ones(2).float() is torch.ones(2)
torch.ones(2).type_as(torch.ones(2, dtype=torch.int8))
torch.ones(2).contiguous(memory_format=torch.channels_last)  # raises
torch.ones(2).is_contiguous(memory_format=torch.channels_last)
torch.ones(2).is_contiguous(memory_format=torch.preserve_format)
torch.ones(2,3).clone(memory_format=torch.contiguous_format)
torch.clone(torch.ones(2,3).t(), memory_format=None).stride()
torch.clone(3)  # raises
"""


@pytest.mark.parametrize("expression", lines(EXPRESSIONS))
def test_same_as_torch(expression):
    check(expression)


@given(tensor=tensors(dtypes=DTYPES), dtype=st.sampled_from(DTYPES))
def test_conversions(tensor, dtype):
    ours = to_weft(tensor)
    for expression in (
        f"t.to(torch.{dtype})",
        f"t.to(torch.{dtype}, copy=True)",
        "t.clone()",
        "t.contiguous()",
        "t.clone(memory_format=torch.contiguous_format)",
        f"torch.zeros(t.shape, dtype=torch.{dtype}).copy_(t)",
        f"torch.zeros(3, *t.shape, dtype=torch.{dtype}).copy_(t)",
        f"torch.empty_like(t, dtype=torch.{dtype}).copy_(t)",
    ):
        assert facts(evaluate(weft, expression, t=ours)) == facts(evaluate(torch, expression, t=tensor)), (
            expression
        )


def test_to_gives_the_tensor_itself_if_nothing_changes():
    tensor = weft.ones(2)
    assert tensor.to(weft.float32) is tensor.to("cpu") is tensor.to(tensor) is tensor.float() is tensor
    assert tensor.to(weft.float32, copy=True) is not tensor


def test_copies_within_one_storage():
    tensor = weft.arange(6)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        tensor[1:].copy_(tensor[:-1])
    assert tensor.tolist() == [0, 1, 2, 3, 4, 5]
    tensor[3:].copy_(tensor[:3])
    assert tensor.tolist() == [0, 1, 2, 0, 1, 2]


def test_losing_an_imaginary_part_warns():
    weft.core.warn.warn_once.forget()
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        weft.ones(2, dtype=weft.complex64).to(weft.float32)


COPIES_ONTO_ITSELF = """
(lambda t: (t.__setitem__(..., t), t._version))(torch.ones(3).expand(2, 3))
(lambda t: (t.__setitem__((), t), t._version))(torch.ones(3).expand(2, 3))
(lambda t: (t.__setitem__(slice(None), t), t._version))(torch.ones(3).expand(2, 3))
(lambda t: (t.__setitem__((...,), t), t._version))(torch.ones(3).expand(2, 3))
(lambda t: (t.__setitem__((slice(None), slice(None)), t), t._version))(torch.ones(3).expand(2, 3))
(lambda t: (t.copy_(t), t._version))(torch.ones(3).expand(2, 3))
(lambda t: (t.copy_(t), t._version))(torch.ones(3))
(lambda t: (t.__setitem__(..., t), t._version))(torch.ones(3))
(lambda t: (t.__setitem__(slice(None), t), t._version))(torch.ones(3))
(lambda t: t.copy_(t))(torch.ones(3, requires_grad=True))  # raises
(lambda t: t.copy_(t))(torch.ones(3, requires_grad=True) * 2)
(lambda t: t.__setitem__((slice(None), slice(1, None)), t))(torch.ones(3, 1))
(lambda t: t[:, 1:].copy_(t))(torch.ones(3, 1))
(lambda t: t[:, 1:].add_(t))(torch.ones(3, 1))
(lambda t: t[3:].add_(t[1]))(torch.ones(3, 1))
(lambda t: torch.add(t, 1, out=t[3:]))(torch.ones(3, 1))
(lambda t: torch.gather(t, 0, torch.zeros(0, 1, dtype=torch.int64), out=t[3:]))(torch.ones(3, 1))
"""


@pytest.mark.parametrize("expression", lines(COPIES_ONTO_ITSELF))
def test_copies_onto_itself(expression):
    """A copy of a tensor onto itself is none, and no elements overlap with nothing."""
    check(expression)


def test_a_copy_of_no_elements_is_recorded():
    for library in (torch, weft):
        source = library.ones(1, requires_grad=True)
        target = library.zeros(0).copy_(source)
        assert target.requires_grad
        target.sum().backward()
        assert source.grad.tolist() == [0.0]
