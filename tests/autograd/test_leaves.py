"""A graph keeps its leaves alive, as PyTorch's does, and hooks are attributes of tensors."""

import copy
import gc
import weakref

import pytest
import torch
from alike import same

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


PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def node_of(x):
    return x.view_as(x).grad_fn.next_functions[0][0]


@program
def new_memory_makes_a_new_leaf(lib):
    """Graphs recorded before lead to the old one, which adds to the same `.grad`, with the hooks of the tensor."""
    log = []
    x = lib.ones(2, requires_grad=True)
    x.register_hook(lambda grad: log.append(grad.tolist()))
    x.register_post_accumulate_grad_hook(lambda x: log.append("accumulated"))
    before = node_of(x)
    before.register_hook(lambda given, grads: log.append("old leaf"))
    old = x * 2
    with lib.no_grad():
        x.set_(lib.zeros(2))
    unused = lib.autograd.grad(old.sum(), x, allow_unused=True, retain_graph=True)
    old.sum().backward()
    (x * 3).sum().backward()
    return log, unused, x.grad, node_of(x) is before


@program
def new_data_makes_a_new_leaf_if_the_dtype_differs(lib):
    x = lib.ones(2, requires_grad=True)
    before = node_of(x)
    same_leaf = []
    for data in (lib.zeros(2), lib.zeros(3), lib.zeros(3, dtype=lib.float64)):
        x.data = data
        same_leaf.append(node_of(x) is before)
    return same_leaf


@program
def data_of_another_layout(lib):
    lib.ones(2).data = lib.ones(2).to_sparse()


@program
def deleted_data(lib):
    del lib.ones(2).data


@program
def deleted_requires_grad(lib):
    del lib.ones(2).requires_grad


@program
def deleted_hooks(lib):
    del lib.ones(2)._backward_hooks


@program
def gradients_of_a_recorded_pass_are_copies(lib):
    ct = lib.ones(2, requires_grad=True)
    x = lib.ones(2, requires_grad=True)
    x.view(2).backward(ct, create_graph=True)
    return x.grad, x.grad.data_ptr() == ct.data_ptr(), type(x.grad.grad_fn).__name__


@program
def gradients_of_the_memory_format_of_the_leaf(lib):
    x = lib.ones(1, 2, 3, 4).to(memory_format=lib.channels_last).requires_grad_()
    (x * x).sum().backward(create_graph=True)
    return x.grad.stride(), x.grad.detach()


@program
def copies_of_tensors_that_do_not_require_grad(lib):
    x = lib.zeros(3)
    x.grad = lib.ones(3)
    first, second = copy.deepcopy([x, x.grad])
    return first.grad, first.grad is second, first.requires_grad


@program
def edges_have_no_zeros(lib):
    x = lib.ones(2, requires_grad=True).clone()
    edge = lib.autograd.graph.get_gradient_edge(x)
    used = lib.autograd.grad((x * 2).sum(), edge, allow_unused=True, materialize_grads=True)
    assert used[0].tolist() == [2, 2]
    lib.autograd.grad((lib.ones(2, requires_grad=True) * 2).sum(), edge, materialize_grads=True)


@program
def columns_of_an_identity_matrix(lib):
    tensors = lib.zeros(2), lib.zeros((), dtype=lib.float64)
    return lib.autograd.functional._construct_standard_basis_for(tensors, (2, 1))


@pytest.mark.refuses(
    [
        "data_of_another_layout",
        "deleted_data",
        "deleted_requires_grad",
        "deleted_hooks",
        "edges_have_no_zeros",
    ]
)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_in_pytorch(program):
    same(program)


@pytest.mark.parametrize("lib", [torch, weft])
def test_old_names(lib):
    class Double(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            with pytest.warns(DeprecationWarning, match="'saved_variables' is deprecated"):
                (x,) = ctx.saved_variables
            return grad * 2 * x

    x = lib.full((2,), 3.0, requires_grad=True)
    y = Double.apply(x)
    assert type(y.grad_fn) is Double._backward_cls
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]
