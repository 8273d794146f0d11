"""A graph keeps its leaves alive, as PyTorch's does, and hooks are attributes of tensors."""

import gc
import weakref

import pytest
import torch

import weft


@pytest.mark.parametrize("lib", [torch, weft])
def test_a_graph_keeps_its_leaves(lib):
    x = lib.ones(2, requires_grad=True)
    y = (x * x).sum()
    leaf = y.grad_fn.next_functions[0][0].next_functions[0][0]
    assert leaf.variable is x
    seen = []
    x.register_hook(seen.append)
    del x
    y.backward()
    assert leaf.variable.grad.tolist() == [2.0, 2.0]
    assert len(seen) == 1


@pytest.mark.parametrize("lib", [torch, weft])
def test_a_function_keeps_its_leaves(lib):
    class Double(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, ct):
            return ct * 2

    y = Double.apply(lib.ones(2, requires_grad=True))
    y.sum().backward()
    assert y.grad_fn.next_functions[0][0].variable.grad.tolist() == [2.0, 2.0]


def test_leaves_die_with_the_graph():
    gc.disable()
    try:
        x = weft.ones(2, requires_grad=True)
        gone = weakref.ref(x)
        y = weft.zeros(2).add_(x).relu() * x
        y.sum().backward()
        del x
        assert gone() is not None
        del y
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("lib", [torch, weft])
def test_hooks_are_attributes(lib):
    x = lib.ones(2, requires_grad=True)
    assert x._backward_hooks is None
    assert x._post_accumulate_grad_hooks is None
    assert lib.ones(2)._backward_hooks is None
    handle = x.register_hook(lambda grad: grad)
    assert list(x._backward_hooks) == [handle.id]
    y = x * 2
    handle = y.register_hook(lambda grad: grad)
    assert list(y._backward_hooks) == [handle.id]
    x.register_post_accumulate_grad_hook(lambda tensor: None)
    assert len(x._post_accumulate_grad_hooks) == 1


@pytest.mark.parametrize("lib", [torch, weft])
def test_numpy_without_grad_mode(lib):
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()
    with lib.no_grad():
        assert x.numpy().tolist() == (x * 1).numpy().tolist() == [1.0, 1.0]
    with lib.inference_mode():
        assert x.numpy().tolist() == [1.0, 1.0]


@pytest.mark.parametrize("lib", [torch, weft])
def test_vjp_of_a_tuple(lib):
    x = lib.ones(2)
    _, pull = lib.func.vjp(lambda pair: (pair[0] * 2, pair[0]), (x,))
    ((found,),) = pull((x, x))
    assert found.tolist() == [3.0, 3.0]
