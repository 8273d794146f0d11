"""What backward does with the memory of cotangents that nobody needs any more."""

import numpy as np

import weft
from weft.engine import memory

SIZE = 77_777  # nobody else's size class


def test_a_cotangent_that_is_nobody_elses_is_overwritten():
    x = weft.randn(SIZE, requires_grad=True)
    y = x
    for _ in range(5):
        y = y.sin()
    y.sum().backward(retain_graph=True)  # so that no memory of what was saved is free again
    # x, 5 values, and x.grad, which is where all cotangents were.
    assert memory.bin_for(4 * SIZE).total == 7


def test_what_others_hold_stays():
    x = weft.randn(SIZE, requires_grad=True)
    ct = weft.ones(SIZE)
    x.sin().backward(ct)
    assert (ct == 1).all()
    y = x.sin()
    y.retain_grad()
    z = y.exp()
    z.retain_grad()
    z.sum().backward()
    assert (z.grad == 1).all()
    assert weft.equal(y.grad, z.detach())


def test_what_numpy_sees_stays():
    array = np.ones(SIZE, np.float32)

    class Scale(weft.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, ct):
            return weft.from_numpy(array)

    x = weft.randn(SIZE, requires_grad=True)
    Scale.apply(x.sin()).sum().backward()
    assert (array == 1).all()
    assert weft.equal(x.grad, x.detach().cos())


def test_both_operands_of_a_sum_get_its_cotangent():
    x, y = weft.randn(SIZE, requires_grad=True), weft.randn(SIZE, requires_grad=True)
    ((x.sin() + y.cos()) * 3.0).sum().backward()
    assert weft.allclose(x.grad, 3 * x.detach().cos())
    assert weft.allclose(y.grad, -3 * y.detach().sin())
