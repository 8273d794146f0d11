"""Derivatives of classes that wrap tensors and define `__torch_dispatch__`."""

import importlib
import warnings

import pytest
import torch

import weft

TWICE = {
    "exp": lambda lib, x: x.exp(),
    "tanh": lambda lib, x: x.tanh(),
    "sigmoid": lambda lib, x: x.sigmoid(),
    "relu": lambda lib, x: (x * x).relu(),
    "repeat": lambda lib, x: x.repeat(2, 3) ** 3,
    "sqrt": lambda lib, x: x.sqrt(),
    "rsqrt": lambda lib, x: x.rsqrt(),
}


@pytest.mark.parametrize("name", TWICE)
def test_second_derivatives(name):
    """The gradients of gradients, of which a class that wraps tensors is told as well."""

    def run(lib):
        wrapper = wrapper_class(lib)
        x = wrapper(lib.full((2, 3), 0.3, dtype=lib.float64)).requires_grad_()
        y = TWICE[name](lib, x)
        (first,) = lib.autograd.grad((y * 2).sum(), x, create_graph=True)
        assert type(first) is wrapper and first.requires_grad
        (second,) = lib.autograd.grad((first * 3).sum(), x)
        assert type(second) is wrapper
        return first.inner.tolist(), second.inner.tolist()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours = run(weft)
    for mine, other in zip(ours, run(torch), strict=True):
        torch.testing.assert_close(torch.tensor(mine), torch.tensor(other))


def wrapper_class(lib):
    tree_map = importlib.import_module(f"{lib.__name__}.utils._pytree").tree_map

    class Wrapper(lib.Tensor):
        @staticmethod
        def __new__(cls, inner):
            made = lib.Tensor._make_wrapper_subclass(
                cls, inner.shape, strides=inner.stride(), dtype=inner.dtype, device=inner.device
            )
            made.inner = inner.detach()
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            args, kwargs = tree_map(lambda x: x.inner if isinstance(x, cls) else x, (args, kwargs or {}))
            return tree_map(lambda x: cls(x) if isinstance(x, lib.Tensor) else x, func(*args, **kwargs))

    return Wrapper
