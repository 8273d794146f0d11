"""Errors name what was probably meant."""

import pytest

import weft as torch


@pytest.mark.parametrize(
    "call, nearest",
    [
        (lambda x: x.sum(dims=0), "dim"),
        (lambda x: torch.softmax(x, dims=-1), "dim"),
        (lambda x: torch.full((2,), 1.0, dytpe=torch.float32), "dtype"),
        (lambda x: torch.nn.functional.cross_entropy(x, x, weigth=None), "weight"),
    ],
)
def test_unknown_keywords_name_the_nearest_parameter(call, nearest):
    with pytest.raises(TypeError, match="got an unexpected keyword argument") as raised:
        call(torch.ones(2, 3))
    assert raised.value.__notes__ == [f"the nearest parameter is {nearest!r}"]


def test_no_parameter_is_near():
    with pytest.raises(TypeError) as raised:
        torch.ones(2).sum(colour=0)
    assert not hasattr(raised.value, "__notes__")


def test_the_device_gpu_is_called_cuda():
    with pytest.raises(RuntimeError, match=r"device string: gpu \(NVIDIA's GPUs are called cuda\)"):
        torch.ones(2, device="gpu")


def test_dtypes_are_no_strings():
    with pytest.raises(TypeError, match=r"not str \(write torch.float32\)"):
        torch.zeros(2, dtype="float32")
