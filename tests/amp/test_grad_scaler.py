import math
import pickle

import pytest
import torch

import weft


def train(t, factors, **options):
    """What a scaler and a parameter become over steps whose losses are the parameter times `factors`."""
    param = t.ones(2, requires_grad=True)
    optimizer = t.optim.SGD([param], lr=0.5)
    scaler = t.amp.GradScaler("cpu", init_scale=8.0, **options)
    seen = []
    for factor in factors:
        optimizer.zero_grad()
        scaler.scale((param * factor).sum()).backward()
        scaler.unscale_(optimizer)
        seen.append(param.grad.tolist())
        scaler.step(optimizer)
        scaler.update()
        seen.append((param.tolist(), scaler.get_scale(), scaler.state_dict()))
    return seen


@pytest.mark.parametrize("options", [{}, {"growth_interval": 2}, {"enabled": False}])
def test_the_scale_follows_overflows(options):
    factors = [1.0, 2.0, math.inf, 0.5, 0.25, 1.0] if options != {"enabled": False} else [1.0, 2.0]
    assert train(weft, factors, **options) == train(torch, factors, **options)


def test_a_scaler_that_scaled_nothing_says_so():
    for t in (torch, weft):
        optimizer, scaler = t.optim.SGD([t.ones(2, requires_grad=True)], lr=0.5), t.amp.GradScaler("cpu")
        for attempt in (scaler.unscale_, scaler.step, lambda optimizer, scaler=scaler: scaler.update()):
            with pytest.raises(AssertionError, match="Attempted .* but _scale is None"):
                attempt(optimizer)


def test_the_order_of_calls_is_checked():
    for t in (torch, weft):
        param = t.ones(2, requires_grad=True)
        optimizer, scaler = t.optim.SGD([param], lr=0.5), t.amp.GradScaler("cpu")
        with pytest.raises(AssertionError):
            scaler.scale(param.sum()), scaler.update()
        scaler.scale(param.sum()).backward()
        scaler.unscale_(optimizer)
        with pytest.raises(RuntimeError, match="already been called on this optimizer"):
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        with pytest.raises(RuntimeError, match=r"step\(\) has already been called"):
            scaler.step(optimizer)


def test_state_is_loaded():
    source = weft.amp.GradScaler("cpu", init_scale=4.0, growth_interval=7)
    target = weft.amp.GradScaler("cpu")
    target.load_state_dict(source.state_dict())
    assert target.state_dict() == source.state_dict()
    with pytest.raises(RuntimeError, match="empty"):
        target.load_state_dict({})


def test_scale_and_tracker_are_tensors_once_in_use():
    for library in (torch, weft):
        scaler = library.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
        weight = library.ones(2, requires_grad=True)
        optimizer = library.optim.SGD([weight], lr=0.0)
        assert scaler._scale is None and scaler._growth_tracker is None
        assert scaler.get_scale() == 8.0
        said = []
        for _ in range(3):
            scaler.scale(weight.sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            said.append((scaler._scale.item(), scaler._growth_tracker.item(), scaler._get_growth_tracker()))
        assert str(scaler._growth_tracker.dtype) == "torch.int32"
        assert said == [(8.0, 1, 1), (16.0, 0, 0), (16.0, 1, 1)]
        scaler.load_state_dict({**scaler.state_dict(), "scale": 2.0, "_growth_tracker": 0})
        assert scaler._scale.item() == 2.0 and scaler._growth_tracker.item() == 0
        scaler.update(4.0)
        assert scaler.get_scale() == 4.0


def test_scale_stays_finite():
    for library in (torch, weft):
        scaler = library.amp.GradScaler("cpu", init_scale=3e38, growth_interval=1)
        weight = library.ones(2, requires_grad=True)
        scaler.scale(weight.sum() * 0)
        weight.grad = library.zeros(2)
        scaler.step(library.optim.SGD([weight], lr=0.0))
        scaler.update()
        assert scaler.get_scale() == scaler._scale.item() < math.inf


def _unscaled(t, bad=None, allow_fp16=True):
    """The gradients of an optimizer of several dtypes after `_unscale_grads_`, and what it found."""
    parameters = [t.zeros(4, 4), t.zeros(4, 4)[:, :2], t.zeros(3, dtype=t.float16), t.zeros(())]
    for k, each in enumerate(parameters):
        each.grad = t.full_like(each, 4.0)
        if k == bad:
            each.grad.view(-1)[0] = float("inf") if each.is_contiguous() else float("nan")
    scaler = t.amp.GradScaler("cpu")
    optimizer = t.optim.SGD(parameters, lr=1.0)
    found = scaler._unscale_grads_(optimizer, t.full((1,), 0.25), t.zeros(1), allow_fp16)
    return [each.grad.tolist() for each in parameters], [(str(k), v.tolist()) for k, v in found.items()]


@pytest.mark.parametrize("bad", [None, 0, 2, 3])
def test_unscaling_gradients_of_several_dtypes(bad):
    assert str(_unscaled(weft, bad)) == str(_unscaled(torch, bad))


def test_unscaling_refuses_float16():
    for t in (torch, weft):
        with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
            _unscaled(t, allow_fp16=False)


def test_subclasses_may_unscale_themselves():
    """As those of sharded models do, which reduce `found_inf` over all processes."""
    for t in (torch, weft):

        class Pessimist(t.amp.GradScaler):
            def _unscale_grads_(self, *arguments):
                found = super()._unscale_grads_(*arguments)
                return {device: each.fill_(1) for device, each in found.items()}

        x = t.ones(2, requires_grad=True)
        scaler, optimizer = Pessimist("cpu", init_scale=4.0), t.optim.SGD([x], lr=1.0)
        scaler.scale(x.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert (x.tolist(), x.grad.tolist(), scaler.get_scale()) == ([1, 1], [1, 1], 2)


@pytest.mark.parametrize("lib", [torch, weft], ids=["torch", "weft"])
def test_optimizers_that_scale_themselves(lib):
    seen = []

    class Takes(lib.optim.Optimizer):
        _step_supports_amp_scaling = True

        def step(self, closure=None):
            seen.append((self.grad_scale.item(), self.found_inf.item()))

    class TakesScaler(Takes):
        def step(self, closure=None, *, grad_scaler=None):
            seen.append((grad_scaler, hasattr(self, "grad_scale")))

    x = lib.ones(2, requires_grad=True)
    scaler = lib.amp.GradScaler("cpu", init_scale=4.0)
    takes, takes_scaler = Takes([x], {}), TakesScaler([x], {})
    scaler.scale(x.sum()).backward()
    scaler.step(takes)
    with pytest.warns(FutureWarning, match="stop passing itself"):
        scaler.step(takes_scaler)
    scaler.update()
    assert x.grad.tolist() == [4, 4] and not hasattr(takes, "grad_scale") and scaler.get_scale() == 4
    x.grad[0] = float("inf")
    scaler.step(takes)
    scaler.update()
    assert seen == [(4, 0), (scaler, False), (4, 1)] and scaler.get_scale() == 2
    assert scaler._per_optimizer_states[id(takes)]["stage"] is lib.amp.grad_scaler.OptState.READY


@pytest.mark.parametrize("lib", [torch, weft], ids=["torch", "weft"])
def test_pickled_scalers(lib):
    scaler = lib.amp.GradScaler(
        "cpu", init_scale=3.0, growth_factor=4.0, backoff_factor=0.5, growth_interval=2
    )
    scaler.scale(lib.tensor([4.0]))
    copy = pickle.loads(pickle.dumps(scaler))
    assert (copy.get_scale(), copy.get_growth_factor(), copy.get_backoff_factor()) == (3, 4, 0.5)
    assert copy.scale(lib.tensor([4.0])).tolist() == [12]
