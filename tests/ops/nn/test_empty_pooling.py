"""Poolings of empty batches, and to empty results: they have gradients, as in PyTorch."""

import pytest
import torch

import weft

BOTH = pytest.mark.parametrize("lib", [weft, torch], ids=["weft", "torch"])


@BOTH
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("name", ["AdaptiveMaxPool", "AdaptiveAvgPool", "MaxPool", "AvgPool"])
def test_an_empty_batch_has_a_gradient(lib, n, name):
    x = lib.ones(0, 4, *[8] * n, requires_grad=True)
    y = getattr(lib.nn, f"{name}{n}d")(2)(x)
    assert y.shape[:2] == (0, 4) and y.requires_grad
    y.sum().backward()
    assert x.grad.shape == x.shape


@BOTH
@pytest.mark.parametrize("n", [1, 2, 3])
def test_no_channels_are_refused(lib, n):
    with pytest.raises(RuntimeError, match="Expected input to have non-zero size for non-batch dimensions"):
        getattr(lib.nn, f"AdaptiveMaxPool{n}d")(3)(lib.ones(1, 0, *[8] * n))


@BOTH
@pytest.mark.parametrize("size", [[0, 1], [1, 0], [0, 0]])
def test_fractional_pooling_to_nothing(lib, size):
    x = lib.rand(2, 3, 8, 8, requires_grad=True)
    values, indices = lib.nn.functional.fractional_max_pool2d(x, 2, output_size=size, return_indices=True)
    assert values.shape == indices.shape == (2, 3, *size) and values.requires_grad
