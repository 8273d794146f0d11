import pytest
import torch

import weft

BOTH = pytest.mark.parametrize("lib", [weft, torch], ids=["weft", "torch"])


@BOTH
def test_hooks_on_a_saved_tensor(lib):
    x = lib.ones(3, requires_grad=True)
    y = x * x
    place = y.grad_fn._raw_saved_self
    assert type(place).__name__ == "SavedTensor"
    place.register_hooks(lambda t: t * 2, lambda t: t)
    assert y.grad_fn._saved_self.tolist() == [2, 2, 2]
    assert place.unpack().tolist() == [2, 2, 2] and place.data.tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="hooks have already been set"):
        place.register_hooks(lambda t: t, lambda t: t)
    y.sum().backward()
    assert x.grad.tolist() == [3, 3, 3]
    with pytest.raises(RuntimeError, match="after it has been freed"):
        place.register_hooks(lambda t: t, lambda t: t)


@BOTH
def test_results_and_functions(lib):
    x = lib.ones(3, requires_grad=True)
    node = x.exp().grad_fn
    assert "_raw_saved_result" in dir(node)
    with pytest.raises(TypeError):
        node._raw_saved_result.register_hooks(1, 2)
    with pytest.raises(RuntimeError, match="modifying its input in place"):
        node._raw_saved_result.register_hooks(lambda t: t.mul_(2), lambda t: t)
    with pytest.raises(AttributeError):
        x.sum(0).grad_fn._raw_saved_dim  # noqa: B018

    class Cube(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, x * 2)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0] * 3

    y = Cube.apply(x)
    first, second = y.grad_fn._raw_saved_tensors
    first.register_hooks(lambda t: t + 1, lambda t: t)
    assert second.unpack().tolist() == [2, 2, 2]
    y.sum().backward()
    assert x.grad.tolist() == [6, 6, 6]


@BOTH
def test_writing_to_saved_tensors(lib):
    allowed = lib.autograd.graph.allow_mutation_on_saved_tensors
    with allowed():
        x = lib.ones(3, requires_grad=True)
        y = x.clone()
        result = (y * y).sum()
        y.sin_()
        result.backward()
        with pytest.raises(RuntimeError, match="cannot be nested"), allowed():
            pass
        late = (x * x).sum()
    assert x.grad.tolist() == [2, 2, 2]
    with pytest.raises(AssertionError, match="outside of"):
        late.backward()


def _counts(lib):
    """The numbers of copies and of saved tensors within `allow_mutation_on_saved_tensors`, after each step."""
    counts = []
    with lib.autograd.graph.allow_mutation_on_saved_tensors() as context:
        kept = (lib.ones(2, requires_grad=True) * 1) ** 2

        def count():
            counts.append((len(list(context.cloned.items())), len(list(context.tid_to_weakhandle.items()))))

        a = lib.full((2, 3), 0.5, requires_grad=True).clone()
        first, second = (a**2).sum(), (a**2).sum()  # one tensor, saved twice
        count()
        a[0].sin_()
        count()
        third = (a**2).sum()
        a.mul_(2)
        count()
        del first
        count()
        del second
        count()
        third.backward()
        a.mul_(2)
        count()
    count()  # nothing, although `kept` has saved a tensor
    assert kept.requires_grad
    return counts


def test_copies_of_saved_tensors_that_are_written():
    """`ctx.cloned` has the saved tensors that were written since, as long as a node needs them."""
    counts = _counts(weft)
    assert counts == _counts(torch)
    assert counts[0] == (0, 2) and counts[2] == (2, 4) and counts[-2:] == [(0, 1), (0, 0)]


def test_saved_views_and_bases_that_are_written():
    """Where both are written, PyTorch computes a wrong gradient."""
    with weft.autograd.graph.allow_mutation_on_saved_tensors():
        x = weft.arange(6.0, requires_grad=True)
        base = x * 1
        view = base[1:3]
        out = (base**2).sum() + (view**3).sum()
        view.mul_(10)
        base.zero_()
        out.backward()
    assert x.grad.tolist() == [0, 2 + 3, 4 + 12, 6, 8, 10]


def test_saved_memory_is_shared_until_it_is_written():
    with weft.autograd.graph.allow_mutation_on_saved_tensors():
        x = weft.ones(3, requires_grad=True)
        y = x * 1
        out = (y * y).sum()
        assert weft._C._is_cow_tensor(y)
        y.add_(1)
        assert not weft._C._is_cow_tensor(y)
        out.backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_a_context_of_hooks_that_is_left_too_often():
    """PyTorch stops with an internal error, or does nothing, depending on what the thread did before."""
    context = weft.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)
    context.__enter__()
    context.__exit__(None, None, None)
    context.__exit__(None, None, None)
    x = weft.ones(3, requires_grad=True)
    y = x * x
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)  # no hooks are left
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


@BOTH
def test_saved_values_that_are_none_take_no_hooks(lib):
    class Custom(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    y = Custom.apply(lib.ones(2, requires_grad=True))
    first, second = y.grad_fn._raw_saved_tensors
    assert first.unpack().tolist() == [1, 1] if lib is weft else first is not None
    with pytest.raises(RuntimeError, match="None is forbidden"):
        second.register_hooks(lambda t: t, lambda t: t)


@BOTH
def test_dtype_of_gradients(lib):
    w = lib.ones(3, dtype=lib.bfloat16, requires_grad=True)
    assert w.grad_dtype is lib.bfloat16
    w.grad_dtype = lib.float32
    for _ in range(2):
        (w * 2).sum().backward()
    assert w.grad.dtype is lib.float32 and w.grad.tolist() == [4, 4, 4]
    with pytest.raises(RuntimeError, match="already a gradient"):
        w.grad_dtype = lib.float16
    with pytest.raises(RuntimeError, match="attempting to assign"):
        w.grad = lib.ones(3, dtype=lib.float64)
    w.grad_dtype = None
    w.grad = lib.ones(3, dtype=lib.float64)
    with pytest.raises(RuntimeError, match="must be a torch.dtype or None"):
        w.grad_dtype = 3
    with pytest.raises(RuntimeError, match="leaf tensors"):
        (w * 2).grad_dtype  # noqa: B018
    with pytest.raises(RuntimeError, match="leaf tensors"):
        (w * 2).grad_dtype = lib.float32


@BOTH
def test_switches(lib):
    for switch in (lib.no_grad(), lib.enable_grad(), lib.inference_mode(), lib.inference_mode(False)):
        copy = switch.clone()
        with switch:
            expected = lib.is_grad_enabled(), lib.is_inference_mode_enabled()
        with copy:
            assert (lib.is_grad_enabled(), lib.is_inference_mode_enabled()) == expected
    for kind in (lib.autograd.set_multithreading_enabled, lib.autograd.enforce_grad_layout_policy):
        switch = kind(False)  # switches off at once; the end of the outer block puts back what was there
        with switch, switch.clone():
            pass
    with pytest.raises(ValueError, match="must be in"):
        lib.autograd.graph.region_activation_memory_budget(2.0)
    with pytest.raises(RuntimeError, match="compile"):
        lib.autograd.graph.region_activation_memory_budget(0.5)


def test_older_jacobians():
    import sys

    results = []
    for lib in (weft, torch):
        module = sys.modules[f"{lib.__name__}.autograd.gradcheck"]
        x = lib.tensor([1.0, 2.0], dtype=lib.float64, requires_grad=True)
        w = lib.ones(2, 3, dtype=lib.float64, requires_grad=True)
        numeric = module.get_numerical_jacobian(lambda inputs: inputs[0] @ inputs[1], (x, w))
        analytic, *rest = module.get_analytical_jacobian((x, w), x @ w)
        one = module.get_numerical_jacobian_wrt_specific_input(lambda x, w: x @ w, 0, (x, w), (x @ w,), 1e-6)
        results.append(
            [[each.detach().round(decimals=6).tolist() for each in (*numeric, *analytic, *one)], rest]
        )
    assert results[0] == results[1]
