"""What is saved for backward goes through hooks."""

import contextlib

import pytest
from alike import same

import weft

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def x3(lib):
    return lib.tensor([0.3, 0.7, 1.1])


@program
def saved_on_the_cpu(lib):
    x = x3(lib).requires_grad_()
    with lib.autograd.graph.save_on_cpu():
        y = (x * x).exp()
    y.sum().backward()
    return x.grad


@program
def hooks_disabled(lib):
    with lib.autograd.graph.disable_saved_tensors_hooks("no way"):
        with lib.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            pass


@program
def unpacked_as_a_number(lib):
    x = x3(lib).requires_grad_()
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = x * x
    y.sum().backward()


@program
def packed_as_something_else(lib):
    x = x3(lib).requires_grad_()
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t):
        y = x * x
    y.sum().backward()
    return x.grad


@program
def a_hook_that_raises_stays_for_the_next_step(lib):
    log = []

    def refuse(tensor):
        log.append("refused")
        raise KeyError

    x = x3(lib).requires_grad_()
    with lib.autograd.graph.saved_tensors_hooks(refuse, lambda t: t):
        for _ in range(2):
            with contextlib.suppress(KeyError):
                x.exp()
    return log


@program
def the_innermost_hooks_count(lib):
    x = x3(lib).requires_grad_()
    log = []
    with lib.autograd.graph.saved_tensors_hooks(lambda t: log.append("o") or t, lambda t: t):
        with lib.autograd.graph.saved_tensors_hooks(lambda t: log.append("i") or t, lambda t: t):
            x * x
        x.sin()
    return log


@program
def second_derivatives_through_hooks(lib):
    x = x3(lib).requires_grad_()
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x * x
    x.data.add_(0)
    (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    return lib.autograd.grad(g.sum(), x)


@program
def an_error_while_packing(lib):
    x = x3(lib).requires_grad_()

    def pack(t):
        raise ValueError("x")

    with lib.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        x * x


@program
def a_pack_hook_that_writes(lib):
    x = x3(lib).requires_grad_()

    def pack(t):
        t.mul_(2)
        return t

    with lib.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        x * x


@pytest.mark.refuses(
    ["hooks_disabled", "unpacked_as_a_number", "an_error_while_packing", "a_pack_hook_that_writes"]
)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_in_pytorch(program):
    same(program)


def test_hooks_see_leaves_and_values_in_order():
    log = []

    def pack(tensor):
        log.append(tensor)
        return tensor

    x = x3(weft).requires_grad_()
    with weft.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = x.exp() * x
    assert log[1].tolist() == x.exp().tolist() and log[2] is x
    y.sum().backward()


def test_numpy_as_storage_of_what_is_saved():
    x = x3(weft).requires_grad_()
    with weft.autograd.graph.saved_tensors_hooks(lambda t: t.detach().numpy().copy(), weft.from_numpy):
        y = (x * x).exp()
    y.sum().backward()
    assert x.grad.tolist() == (2 * x * (x * x).exp()).tolist()
