"""Optimizers that wrap others do not call `Optimizer.__init__`."""

from collections import OrderedDict

import pytest
import torch

import weft


@pytest.mark.parametrize("lib", [torch, weft])
def test_an_optimizer_around_another(lib):
    class Wrapper(lib.optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner
            self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks = OrderedDict(), OrderedDict()
            self._patch_step_function()
            self.defaults = inner.defaults
            self.state = {}

        @property
        def param_groups(self):
            return self.inner.param_groups

        def step(self, closure=None):
            return self.inner.step(closure)

    parameter = lib.nn.Parameter(lib.ones(1))
    wrapper = Wrapper(lib.optim.SGD([parameter], lr=0.5))
    calls = []
    wrapper.register_step_pre_hook(lambda *given: calls.append("before"))
    wrapper.register_step_post_hook(lambda *given: calls.append("after"))
    parameter.grad = lib.ones(1)
    wrapper.step()
    wrapper.zero_grad()
    assert (parameter.item(), parameter.grad, calls) == (0.5, None, ["before", "after"])
    assert wrapper._zero_grad_profile_name == "Optimizer.zero_grad#Wrapper.zero_grad"
    lib.optim.lr_scheduler.StepLR(wrapper, 1).step()
    assert wrapper.param_groups[0]["lr"] == pytest.approx(0.05)


@pytest.mark.parametrize("lib", [torch, weft])
def test_lists_by_device_and_dtype(lib):
    from importlib import import_module

    utils = import_module(f"{lib.__name__}.utils._foreach_utils")
    one, two, three = lib.ones(1), lib.ones(2, dtype=lib.float64), lib.zeros(1)
    found = utils._group_tensors_by_device_and_dtype(
        [[one, two, three], [None, two, None]], with_indices=True
    )
    cpu = lib.device("cpu")
    assert found[cpu, lib.float32] == ([[one, three], [None, None]], [0, 2])
    assert found[cpu, lib.float64] == ([[two], [two]], [1])
    assert utils._group_tensors_by_device_and_dtype([[one]])[cpu, lib.float32] == ([[one]], [])
    assert utils._has_foreach_support([one], cpu)
    assert utils._group_tensors_by_device_and_dtype([[one], []])[cpu, lib.float32] == ([[one], []], [])
    for wrong in ([], [[]], [[one, two], [one]]):
        with pytest.raises(RuntimeError):
            utils._group_tensors_by_device_and_dtype(wrong)
