"""Hooks of tensors and nodes, program by program in both libraries."""

import copy

import pytest
import torch
from alike import same

import weft

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def leaf(lib, size=3):
    return lib.tensor([1.0 + k for k in range(size)], requires_grad=True)


@program
def tensor_hooks_run_in_order_until_removed(lib):
    x = leaf(lib)
    y = x * 2
    log = []
    y.register_hook(lambda g: log.append(("a", g.tolist())))
    h = y.register_hook(lambda g: g * 2)
    y.register_hook(lambda g: log.append(("c", g.tolist())))
    x.register_hook(lambda g: log.append(("x", g.tolist())))
    y.sum().backward(retain_graph=True)
    h.remove()
    y.sum().backward()
    return (log, x.grad)


@program
def a_hook_needs_requires_grad(lib):
    lib.ones(3).register_hook(print)


@program
def post_accumulate_hooks_are_for_leaves(lib):
    (leaf(lib) * 2).register_post_accumulate_grad_hook(print)


@program
def post_accumulate_hooks_return_nothing(lib):
    x = leaf(lib)
    x.register_post_accumulate_grad_hook(lambda tensor: tensor.grad)
    (x * 2).sum().backward()


@program
def post_accumulate_hooks_need_requires_grad(lib):
    lib.ones(3).register_post_accumulate_grad_hook(print)


@program
def post_accumulate_hooks_may_take_the_gradient(lib):
    x = leaf(lib)
    log = []
    x.register_post_accumulate_grad_hook(lambda t: log.append((t is x, t.grad.tolist())))
    x.register_post_accumulate_grad_hook(lambda t: setattr(t, "grad", None))
    (x * x).sum().backward()
    return (log, x.grad)


@program
def a_hook_that_returns_text(lib):
    x = leaf(lib)
    x.register_hook(lambda g: "no")
    x.sum().backward()


@program
def a_hook_that_changes_the_shape_of_a_leaf(lib):
    x = leaf(lib)
    x.register_hook(lambda g: lib.ones(2))
    x.sum().backward()
    return x.grad


@program
def a_hook_that_changes_the_shape(lib):
    x = leaf(lib)
    y = x * 2
    y.register_hook(lambda g: lib.ones(2))
    y.sum().backward()
    return x.grad


@program
def a_hook_that_changes_the_dtype(lib):
    x = leaf(lib)
    y = x * 2
    y.register_hook(lambda g: g.double())
    y.sum().backward()
    return x.grad


@program
def node_hooks_see_gradients(lib):
    x = leaf(lib)
    y = x * 2
    log = []
    y.grad_fn.register_hook(lambda gi, go: log.append(("post", gi, go)))
    y.grad_fn.register_prehook(lambda go: log.append(("pre", go)))
    y.sum().backward()
    return log


@program
def node_hooks_replace_gradients(lib):
    x = leaf(lib)
    y = x * 2
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, None))
    y.grad_fn.register_prehook(lambda go: (go[0] * 3,))
    y.sum().backward()
    return x.grad


@program
def a_node_hook_that_returns_too_few(lib):
    x = leaf(lib)
    y = x * 2
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10,))
    y.sum().backward()
    return x.grad


@program
def a_node_hook_that_returns_no_tuple(lib):
    x = leaf(lib)
    y = x * 2
    y.grad_fn.register_hook(lambda gi, go: gi[0] * 10)
    y.sum().backward()
    return x.grad


@program
def a_prehook_that_returns_no_tuple(lib):
    x = leaf(lib)
    y = x * 2
    y.grad_fn.register_prehook(lambda go: go[0] * 10)
    y.sum().backward()
    return x.grad


@program
def hooks_of_accumulate_grad(lib):
    x = leaf(lib)
    acc = x.expand_as(x).grad_fn.next_functions[0][0]
    log = []
    h = acc.register_hook(lambda gi, go: log.append(("post", gi, go, x.grad)))
    acc.register_prehook(lambda go: log.append(("pre", go)))
    (x * 2).sum().backward()
    h.remove()
    (x * 2).sum().backward()
    return (log, x.grad)


@program
def a_handle_is_a_context(lib):
    x = leaf(lib)
    log = []
    with x.register_hook(log.append):
        (x * 2).sum().backward()
    (x * 2).sum().backward()
    return log


@program
def tensor_hooks_run_before_prehooks(lib):
    x = leaf(lib)
    y = x * 2
    log = []
    y.register_hook(lambda g: log.append("t"))
    y.grad_fn.register_prehook(lambda g: log.append("p"))
    y.register_hook(lambda g: log.append("t2"))
    y.sum().backward()
    return log


@program
def hooks_before_and_after_a_write_in_place(lib):
    x = leaf(lib)
    y = x * 2
    log = []
    y.register_hook(lambda g: log.append(g.tolist()))
    y.mul_(3)
    y.register_hook(lambda g: log.append(("new", g.tolist())))
    y.sum().backward()
    return (log, x.grad)


@program
def grad_runs_hooks_but_accumulates_nothing(lib):
    x = leaf(lib)
    log = []
    x.register_hook(lambda g: log.append("hook"))
    x.register_post_accumulate_grad_hook(lambda t: log.append("acc"))
    g = lib.autograd.grad((x * 2).sum(), x)
    return (log, g)


@program
def grad_sees_what_a_tensor_hook_returns(lib):
    x = leaf(lib)
    y = x * 2
    y.register_hook(lambda g: g * 5)
    g = lib.autograd.grad((y * 2).sum(), y)
    return g


@program
def grad_does_not_see_what_a_prehook_returns(lib):
    x = leaf(lib)
    y = x * 2
    y.grad_fn.register_prehook(lambda g: (g[0] * 5,))
    g = lib.autograd.grad((y * 2).sum(), y)
    return g


@program
def hooks_run_without_recording(lib):
    x = leaf(lib)
    y = x * 2
    log = []
    y.register_hook(lambda g: log.append(lib.is_grad_enabled()))
    y.sum().backward(create_graph=False)
    return log


@program
def an_error_in_a_hook(lib):
    x = leaf(lib)
    y = x * 2

    def hook(g):
        raise AssertionError("boom")

    y.register_hook(hook)
    y.sum().backward()


@program
def multi_grad_hook_once_per_backward(lib):
    x, y = (leaf(lib), leaf(lib))
    log = []
    h = lib.autograd.graph.register_multi_grad_hook((x, y), lambda gs: log.append(gs))
    (x * 2).sum().backward()
    n = len(log)
    (x * y).sum().backward()
    h.remove()
    return (n, log)


@program
def multi_grad_hook_for_the_first(lib):
    x, y = (leaf(lib), leaf(lib))
    log = []
    h = lib.autograd.graph.register_multi_grad_hook((x, y), lambda g: log.append(g), mode="any")
    (x * 2).sum().backward()
    (x * y).sum().backward()
    h.remove()
    return log


@program
def a_leaf_has_its_gradient_when_the_last_step_that_uses_it_gives_none(lib):
    class First(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * b

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    log = []
    leaves = {name: leaf(lib) for name in "xyz"}
    for name, x in leaves.items():
        x.register_post_accumulate_grad_hook(lambda t, name=name: log.append((name, t.grad)))
    early = leaves["z"] * 1
    middle = First.apply(leaves["x"], leaves["y"])
    late = leaves["y"] * 2
    (early + middle + late).sum().backward()
    return log


@program
def a_deep_copy_has_no_hooks(lib):
    x = leaf(lib)
    log = []
    x.register_hook(lambda g: log.append(1))
    y = copy.deepcopy(x)
    y.sum().backward()
    return (log, y.grad)


@pytest.mark.refuses(
    [
        "a_hook_needs_requires_grad",
        "post_accumulate_hooks_are_for_leaves",
        "post_accumulate_hooks_need_requires_grad",
        "post_accumulate_hooks_return_nothing",
        "a_hook_that_returns_text",
        "a_hook_that_changes_the_shape_of_a_leaf",
        "a_hook_that_changes_the_shape",
        "a_hook_that_changes_the_dtype",
        "a_node_hook_that_returns_too_few",
        "a_node_hook_that_returns_no_tuple",
        "a_prehook_that_returns_no_tuple",
        "an_error_in_a_hook",
    ]
)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_in_pytorch(program):
    same(program)


def test_handles_are_removable_handles():
    for t in (torch, weft):
        x = t.ones(2, requires_grad=True)
        y = x * 2
        for handle in (
            x.register_hook(print),
            x.register_post_accumulate_grad_hook(print),
            y.register_hook(print),
            y.grad_fn.register_hook(print),
            y.grad_fn.register_prehook(print),
        ):
            assert isinstance(handle, t.utils.hooks.RemovableHandle)
            with handle:
                pass
        y.sum().backward()
