"""`gradcheck` finds wrong derivatives, and only those."""

import pytest
import torch

import weft

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def xd(lib):
    return lib.tensor([0.3, 0.7, 1.1], dtype=lib.float64, requires_grad=True)


def bad(lib):
    """The square, with a wrong derivative."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0] * 3

    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Bad", (lib.autograd.Function,), methods).apply


@program
def a_wrong_derivative(lib):
    return lib.autograd.gradcheck(bad(lib), (xd(lib),))


@program
def a_wrong_derivative_reported(lib):
    return (
        lib.autograd.gradcheck(bad(lib), (xd(lib),), raise_exception=False),
        lib.autograd.gradcheck(bad(lib), (xd(lib),), raise_exception=False, fast_mode=True),
    )


@program
def nothing_requires_grad(lib):
    return lib.autograd.gradcheck(lambda x: x.sin(), (lib.ones(2),))


@program
def single_precision(lib):
    return lib.autograd.gradcheck(
        lambda x: x.sin(), (lib.ones(2, requires_grad=True),), raise_exception=False
    )


@program
def forward_mode_too(lib):
    return (
        lib.autograd.gradcheck(lambda x: x.sin(), xd(lib), check_forward_ad=True),
        lib.autograd.gradcheck(lambda x: x.sin(), xd(lib), fast_mode=True, check_forward_ad=True),
        lib.autograd.gradgradcheck(lambda x: x.sin(), xd(lib), check_fwd_over_rev=True),
    )


@program
def random_numbers(lib):
    return lib.autograd.gradcheck(lambda x: x * lib.rand(3, dtype=lib.float64), xd(lib))


@program
def complex_matrices(lib):
    return lib.autograd.gradcheck(
        lambda x, y: x @ y,
        (
            lib.randn(2, 3, dtype=lib.complex128, requires_grad=True),
            lib.randn(3, 2, dtype=lib.float64, requires_grad=True).to(lib.complex128)
            if 0
            else lib.randn(3, 2, dtype=lib.complex128, requires_grad=True),
        ),
        check_forward_ad=True,
        check_batched_grad=True,
    )


@program
def a_detached_result(lib):
    return lib.autograd.gradcheck(lambda x: x.detach(), xd(lib))


@program
def a_wrong_second_derivative(lib):
    return lib.autograd.gradgradcheck(bad(lib), xd(lib), raise_exception=False)


@program
def an_expanded_input(lib):
    return lib.autograd.gradcheck(
        lambda x: x.sum(),
        lib.ones(3, dtype=lib.float64).expand(3).requires_grad_()
        if 0
        else lib.ones(1, dtype=lib.float64).expand(3).requires_grad_(),
    )


def test_as_in_pytorch_whatever_the_message():
    for program in PROGRAMS:
        theirs, ours = outcome(program, torch), outcome(program, weft)
        assert ours == theirs, program.__name__


def outcome(program, lib):
    try:
        return program(lib)
    except Exception as error:
        return type(error).__name__


def test_wrong_forward_mode_is_found():
    methods = {
        "forward": staticmethod(lambda ctx, x: x * 2),
        "backward": staticmethod(lambda ctx, grad: grad * 2),
        "jvp": staticmethod(lambda ctx, tangent: tangent * 3),
    }
    f = type("F", (weft.autograd.Function,), methods).apply
    assert weft.autograd.gradcheck(f, xd(weft))
    for fast in (False, True):
        with pytest.raises(weft.autograd.GradcheckError, match="forward mode"):
            weft.autograd.gradcheck(f, xd(weft), check_forward_ad=True, fast_mode=fast)
