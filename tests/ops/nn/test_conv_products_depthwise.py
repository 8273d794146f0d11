"""Convolutions with one input channel for each group, and their derivatives, against PyTorch."""

import itertools

import numpy as np
import pytest
import torch

import weft

CHANNELS = 3
CASES = [
    (kernel, stride, dilation, padding)
    for kernel, stride, dilation, padding in itertools.product((1, 5), (1, 3), (1, 2), (0, 3))
]


def results(T, function, arrays, **options):
    """Of a function: its result, the gradients, and the gradients of their squares."""
    inputs = [T.tensor(each).requires_grad_() for each in arrays]
    found = function(*inputs, groups=CHANNELS, **options)
    first = T.autograd.grad((found * found).sum(), inputs, create_graph=True)
    second = T.autograd.grad(sum((each * each).sum() for each in first), inputs)
    return [found, *first, *second]


def compare(name, arrays, **options):
    pair = [results(T, getattr(T.nn.functional, name), arrays, **options) for T in (torch, weft)]
    for expected, found in zip(*pair, strict=True):
        expected = expected.detach().numpy()
        limit = 1e-10 * np.abs(expected).max()
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-10, atol=limit)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("multiplier", [1, 2])
def test_convolution(n, multiplier):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, CHANNELS, *[11, 10, 9][:n]))
    for kernel, stride, dilation, padding in CASES:
        w = rng.standard_normal((CHANNELS * multiplier, 1, *[kernel] * n))
        compare(f"conv{n}d", [x, w], stride=stride, padding=padding, dilation=dilation)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("stride", [1, 2])
def test_transposed_convolution(n, stride):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, CHANNELS, *[5, 4][:n])), rng.standard_normal((CHANNELS, 1, *[3] * n))
    compare(f"conv_transpose{n}d", [x, w], stride=stride, padding=1, output_padding=stride - 1)


def test_narrow_floats_round_once():
    x, w = weft.randn(1, 4, 9, 9).bfloat16(), weft.randn(4, 1, 7, 7).bfloat16()
    found = weft.nn.functional.conv2d(x, w, groups=4)
    exact = weft.nn.functional.conv2d(x.double(), w.double(), groups=4)
    assert (found.double() - exact).abs().max() <= exact.abs().max() * 2.0**-8
