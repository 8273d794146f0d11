"""The namespace of the array API standard, function by function against array_api_strict."""

import pytest

strict = pytest.importorskip(
    "array_api_strict", reason="array_api_strict, the standard's reference, is not installed"
)

import array_standard as standard  # noqa: E402  (needs array_api_strict)

import weft  # noqa: E402
from weft.compat.libraries import array_api as xp  # noqa: E402

PROTOCOL = {"set_array_api_strict_flags", "get_array_api_strict_flags", "reset_array_api_strict_flags"}
EXTENSIONS = {"fft", "linalg"}


@pytest.fixture(scope="module")
def found():
    weft.set_default_dtype(weft.float64)
    try:
        return standard.failures(xp)
    finally:
        weft.set_default_dtype(weft.float32)


FUNCTIONS = sorted({function for function, *_ in standard.cases()})


@pytest.mark.parametrize("function", FUNCTIONS)
def test_same_as_the_reference(function, found):
    total, failed = found
    assert total[function] and failed.get(function, []) == []


def test_every_name_of_the_standard():
    names = {name for name in strict.__all__ if name[0].islower() and not name.startswith("_")}
    assert [name for name in sorted(names - PROTOCOL - EXTENSIONS) if not hasattr(xp, name)] == []


def test_every_function_is_compared():
    functions = {name for name in strict.__all__ if type(getattr(strict, name)).__name__ == "function"}
    assert functions - PROTOCOL - EXTENSIONS - {"empty_like"} <= {*FUNCTIONS, "empty", "where"}


def test_tensors_know_their_namespace():
    tensor = weft.ones(2)
    assert tensor.__array_namespace__() is tensor.__array_namespace__(api_version="2023.12") is xp
    with pytest.raises(ValueError, match="2099.12"):
        tensor.__array_namespace__(api_version="2099.12")
    assert tensor.to_device("cpu") is tensor


def test_is_in_inverted():
    assert xp.isin(xp.asarray([1, 2, 3]), xp.asarray([2]), invert=True).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: xp.add(1, 2), ValueError),
        (lambda: xp.result_type(xp.uint64, xp.int8), TypeError),
        (lambda: xp.isdtype(xp.int8, "whole"), ValueError),
        (lambda: xp.squeeze(xp.ones((2, 1)), axis=0), ValueError),
        (lambda: xp.sum(xp.ones((2, 1)), axis=(0, 0)), ValueError),
        (lambda: xp.sum(xp.ones((2, 1)), axis=2), IndexError),
        (lambda: xp.reshape(xp.ones((2, 3)).mT, (6,), copy=False), ValueError),
        (lambda: xp.take(xp.ones((2, 3)), xp.asarray([0])), ValueError),
        (lambda: xp.cumulative_sum(xp.ones((2, 3))), ValueError),
        (lambda: xp.nonzero(xp.asarray(1)), ValueError),
        (lambda: xp.vecdot(xp.ones((2, 3)), xp.ones((2, 1))), ValueError),
        (lambda: xp.broadcast_shapes((2,), (3,)), (ValueError, RuntimeError)),
    ],
)
def test_refused(call, error):
    with pytest.raises(error):
        call()


def test_derivatives_pass_through():
    x = weft.tensor([1.0, 2.0], requires_grad=True)
    xp.sum(xp.multiply(xp.clip(x, 0, 1.5), x)).backward()
    assert x.grad.tolist() == [2.0, 1.5]
