"""`torch.Tensor(...)`, `torch.LongTensor` and their relatives."""

import warnings

import pytest
import torch
from expressions import check, lines

import weft

EXPRESSIONS = """
torch.Tensor(2,3).shape
torch.Tensor([1,2])
torch.Tensor()
torch.Tensor(3).shape
torch.Tensor([1,2], device='cpu')
torch.Tensor(torch.ones(2))
torch.Tensor(torch.ones(2, dtype=torch.int64))
torch.Tensor(np.array([1.,2]))
torch.Tensor(np.array([1,2]))
torch.Tensor(np.array([1.,2], dtype=np.float32))
torch.Tensor(torch.Size([2,3])).shape
torch.Tensor(size=(2,3)).shape
torch.Tensor((2,3))
torch.Tensor('a')  # raises
torch.Tensor(range(3))
torch.Tensor([1,2], dtype=torch.float64)  # raises
torch.Tensor([])
torch.Tensor([[1,2],[3,4]])
torch.Tensor(-1)  # raises
torch.FloatTensor([1,2])
torch.LongTensor([1,2])
torch.LongTensor([1.5,2])
torch.LongTensor(2,3).shape
torch.IntTensor([1])
torch.ByteTensor([1,255])
torch.BoolTensor([True, False])
torch.BoolTensor([1, 0])
torch.HalfTensor([1])
torch.BFloat16Tensor([1])
torch.DoubleTensor([1])
torch.CharTensor([1])
torch.ShortTensor([1])
torch.FloatTensor(torch.ones(2))
torch.FloatTensor(torch.ones(2, dtype=torch.int64))  # raises
torch.FloatTensor()
torch.FloatTensor.dtype
torch.FloatTensor.__name__
isinstance(torch.ones(2), torch.FloatTensor)
isinstance(torch.ones(2), torch.LongTensor)
isinstance(torch.ones(2), torch.Tensor)
type(torch.FloatTensor([1])) is torch.Tensor
torch.ones(2).type()
torch.ones(2, dtype=torch.int64).type()
torch.ones(2, dtype=torch.complex64).type()
torch.ones(2, dtype=torch.uint16).type()
torch.ones(2, dtype=torch.float8_e5m2).type()
torch.ones(2, device='meta').type()
torch.ones(2).type('torch.LongTensor')
torch.ones(2).type(torch.LongTensor)
torch.ones(2).type(torch.int32)
torch.ones(2).type('foo')  # raises
torch.ones(2).type(torch.float32)
torch.ones(2).type(float)  # raises
torch.ones(2).type(3)  # raises
torch.ones(2).type(dtype=torch.float64)
torch.ones(2).new([1,2])
torch.ones(2).new(2,3).shape
torch.ones(2).new().shape
torch.ones(2, dtype=torch.int64).new([1,2])
torch.ones(2, dtype=torch.int64).new([1.5,2])
"""


@pytest.mark.parametrize("expression", lines(EXPRESSIONS))
def test_same_as_torch(expression):
    check(expression)


def test_a_subclass_is_made_of_its_own_kind():
    class Special(weft.Tensor):
        pass

    assert type(Special([1, 2])) is Special
    tensor = weft.zeros(2)
    tensor.as_subclass(Special)[0] = 1
    assert tensor[0] == 1


def test_default_tensor_type():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            weft.set_default_tensor_type("torch.DoubleTensor")
            assert weft.zeros(1).dtype is weft.tensor([1.0]).dtype is weft.Tensor(1).dtype is weft.float64
        finally:
            weft.set_default_tensor_type(weft.FloatTensor)
    assert weft.zeros(1).dtype is weft.float32


@pytest.mark.parametrize("lib", [torch, weft], ids=["torch", "weft"])
def test_legacy_classes_have_no_subclasses(lib):
    with pytest.raises(TypeError, match=r"FloatTensor' is not an acceptable base type"):
        type("Own", (lib.FloatTensor,), {})
