"""What `jvp` of a Function must return, which inputs `apply` returns as they are, and duals that are written in place."""

import importlib

import pytest
import torch

import weft

BOTH = pytest.mark.parametrize("lib", [weft, torch], ids=["weft", "torch"])


def _forward_ad(lib):
    return importlib.import_module(f"{lib.__name__}.autograd.forward_ad")


def _function(lib, compute, push, prepare=lambda ctx, x: None):
    """A Function of one tensor whose jvp is `push`."""

    class Custom(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            prepare(ctx, x)
            return compute(x)

        @staticmethod
        def backward(ctx, gradient):
            return 2 * gradient

        @staticmethod
        def jvp(ctx, tangent):
            return push(ctx, tangent)

    return Custom


def _pushed(lib, function, tangent):
    """The result, and its tangent."""
    forward_ad = _forward_ad(lib)
    with forward_ad.dual_level():
        result = function.apply(forward_ad.make_dual(lib.ones(2), tangent))
        return forward_ad.unpack_dual(result)


@BOTH
def test_inputs_that_forward_returns(lib):
    """They come back as views, recorded or not."""

    class Several(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x, y * 2, y

        @staticmethod
        def backward(ctx, *gradients):
            return gradients[0], gradients[2]

    x, y = lib.ones(2), lib.ones(2)
    for required in (False, True):
        y.requires_grad_(required)
        first, second, third = Several.apply(x, y)
        assert first is not x and third is not y
        assert first._base is x and second._base is None and third._base is y
    with lib.no_grad():
        first, _, third = Several.apply(x, y)
    assert first._base is x and third is not y and third._base is None and not third.requires_grad


WRITES = {
    "as it should be": (lambda ctx, t: t.mul_(2), None),
    "a new tangent": (lambda ctx, t: 2 * t, "not modifying the forward mode gradients inplace"),
    "a copy": (lambda ctx, t: t.mul_(2).clone(), "not modifying the forward mode gradients inplace"),
    "nothing": (lambda ctx, t: t, "not modifying the forward mode gradients inplace"),
    "an alias": (lambda ctx, t: t.mul_(2).detach(), "not returning the forward mode gradients as-is"),
}


@BOTH
@pytest.mark.parametrize("name", WRITES)
def test_tangents_of_inputs_that_are_modified(lib, name):
    push, error = WRITES[name]
    function = _function(lib, lambda x: x.mul_(2), push, lambda ctx, x: ctx.mark_dirty(x))
    tangent = lib.ones(2)
    if error is not None:
        with pytest.raises(RuntimeError, match=error):
            _pushed(lib, function, tangent)
    else:
        result = _pushed(lib, function, tangent)
        assert result.tangent is tangent and result.tangent.tolist() == result.primal.tolist() == [2, 2]


VIEWS = {
    "a view": (lambda t: t[:1], None, None),
    "a copy": (lambda t: t[:1].clone(), "the jvp is not returning a view", "the jvp is not returning a view"),
    "a view of a copy": (
        lambda t: t.clone()[:1],
        "not returning a view of the given grad input",
        "not returning a view of the same base",
    ),
}


@BOTH
@pytest.mark.parametrize("viewed", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_tangents_of_views(lib, viewed, name):
    push, *errors = VIEWS[name]
    function = _function(lib, lambda x: x[:1], lambda ctx, t: push(t))
    tangent = lib.full((2,), 3.0)
    tangent = tangent.view(2) if viewed else tangent
    if errors[viewed] is None:
        assert _pushed(lib, function, tangent).tangent.tolist() == [3]
    else:
        with pytest.raises(RuntimeError, match=errors[viewed]):
            _pushed(lib, function, tangent)
    # Transforms do not ask for views.
    with lib.no_grad():
        compute = _transformable(lib, push)
    assert lib.func.jvp(compute, (lib.ones(2),), (tangent,))[1].tolist() == [3]


def _transformable(lib, push):
    class Custom(lib.autograd.Function):
        @staticmethod
        def forward(x):
            return x[:1]

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def jvp(ctx, tangent):
            return push(tangent)

    return Custom.apply


@BOTH
@pytest.mark.parametrize("position", [1, 2, 3])
def test_results_without_derivative_have_no_tangent(lib, position):
    class Several(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            constant = x.clone()
            ctx.mark_non_differentiable(constant)
            return x * 2, constant, lib.tensor([1, 2]), x * 3

        @staticmethod
        def jvp(ctx, tangent):
            return tuple(tangent.clone() if k in (0, position) else None for k in range(4))

    forward_ad = _forward_ad(lib)
    with forward_ad.dual_level():
        x = forward_ad.make_dual(lib.ones(2), lib.ones(2))
        if position in (1, 2):
            with pytest.raises(RuntimeError, match="You should return None at that position instead"):
                Several.apply(x)
        else:
            tangents = [forward_ad.unpack_dual(each).tangent for each in Several.apply(x)]
            assert [each is None for each in tangents] == [False, True, True, False]


@BOTH
def test_saved_tensors_in_jvp_are_those_for_forward(lib):
    found = []
    for saves in (lambda ctx, x: None, lambda ctx, x: ctx.save_for_forward(x, None)):

        def prepare(ctx, x, saves=saves):
            ctx.save_for_backward(x)
            saves(ctx, x)

        function = _function(
            lib, lambda x: x * 2, lambda ctx, t: (found.append(len(ctx.saved_tensors)), t)[1], prepare
        )
        _pushed(lib, function, lib.ones(2))
    assert found == [0, 2]


@BOTH
def test_gradients_of_duals_that_are_written(lib):
    """A dual is a view. Backward knows of writes to it, and of writes to the tensor below."""
    forward_ad = _forward_ad(lib)
    custom = _function(lib, lambda x: x.mul_(2), lambda ctx, t: t.mul_(2), lambda ctx, x: ctx.mark_dirty(x))
    z = lib.ones(2, requires_grad=True)
    with forward_ad.dual_level():
        for write in (lambda x: x.mul_(2), custom.apply):
            below = z.clone()
            dual = forward_ad.make_dual(below, lib.ones(2))
            write(dual)
            assert forward_ad.unpack_dual(dual).tangent.tolist() == [2, 2]
            assert lib.autograd.grad(dual.sum(), z, retain_graph=True)[0].tolist() == [2, 2]
            assert lib.autograd.grad(below.sum(), z)[0].tolist() == [2, 2]
        below = z.clone()
        dual = forward_ad.make_dual(below, lib.ones(2))
        below.mul_(3)
        assert lib.autograd.grad(dual.sum(), z)[0].tolist() == [3, 3]
