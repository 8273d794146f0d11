"""The base of optimizers: groups, saving, hooks. What PyTorch does is asked of the oracle, in the same test."""

import copy
import gc
import weakref

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook as _their_post_hook
from torch.optim.optimizer import register_optimizer_step_pre_hook as _their_pre_hook

import weft
from weft.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook, required

LIBRARIES = [(weft, weft.optim), (torch, torch.optim)]


def outcomes(function):
    """What `function(library, optim)` returns, or raises, with ours and with the oracle."""
    results = []
    for library, optim in LIBRARIES:
        try:
            results.append(function(library, optim))
        except Exception as error:
            results.append((type(error).__name__, str(error)))
    return results


def both_the_same(function):
    ours, theirs = outcomes(function)
    assert ours == theirs
    return ours


@pytest.mark.parametrize(
    "params",
    [
        lambda p: p(),
        lambda p: [],
        lambda p: [1],
        lambda p: "ab",
        lambda p: None,
        lambda p: {"a": p()},
        lambda p: [{"params": {p()}}],
        lambda p: [{"x": p()}],
        lambda p: [("a", p()), p()],
        lambda p: [{"params": [("a", p())]}, {"params": [p()]}],
        lambda p: [{"params": [p()]}, {"params": [("a", p())]}],
        lambda p: (lambda each: [{"params": [each]}, {"params": each}])(p()),
    ],
)
def test_parameters_that_are_refused(params):
    result = both_the_same(lambda library, optim: optim.SGD(params(lambda: library.ones(2)), lr=0.1))
    assert isinstance(result, tuple)


def test_groups_and_their_options():
    def groups(library, optim):
        first, second = library.ones(2), library.ones(3)
        optimizer = optim.SGD(
            [{"params": first}, {"params": [second], "lr": 0.5, "extra": 1}], lr=0.1, momentum=0.9
        )
        optimizer.add_param_group({"params": (library.ones(1) for _ in range(2)), "momentum": 0})
        assert optimizer.param_groups[0]["params"][0] is first
        shapes = [[tuple(param.shape) for param in group["params"]] for group in optimizer.param_groups]
        return shapes, [list(group.items())[1:] for group in optimizer.param_groups], repr(optimizer)

    both_the_same(groups)


def test_wrong_groups():
    both_the_same(lambda library, optim: optim.SGD([library.ones(2)]).add_param_group([library.ones(2)]))

    def twice(library, optim):
        weight = library.ones(2)
        optim.SGD([weight]).add_param_group({"params": weight})

    both_the_same(twice)


def test_duplicates_warn():
    weight = weft.ones(2)
    with pytest.warns(UserWarning, match="optimizer contains a parameter group with duplicate parameters"):
        optimizer = weft.optim.SGD([weight, weight])
    assert optimizer.state_dict()["param_groups"][0]["params"] == [0, 0]


def test_results_of_operations_are_refused():
    with pytest.raises(ValueError, match="can't optimize a non-leaf Tensor"):
        weft.optim.SGD([weft.ones(2, requires_grad=True) * 2])


def test_required_options():
    class Own(weft.optim.Optimizer):
        def step(self, closure=None):
            return closure and closure()

    with pytest.raises(
        ValueError, match="parameter group didn't specify a value of required optimization parameter lr"
    ):
        Own([weft.ones(2)], {"lr": required})
    assert Own([{"params": [weft.ones(2)], "lr": 3}], {"lr": required}).param_groups[0]["lr"] == 3


def test_named_parameters():
    def named(library, optim):
        make = library.ones
        optimizer = optim.SGD([("a", make(1)), ("b", make(1))], lr=0.1, momentum=0.9)
        other = optim.SGD([make(1), make(1)], lr=0.2)
        other.load_state_dict(optimizer.state_dict())
        third = optim.SGD([("c", make(1)), ("d", make(1))], lr=0.2)
        third.load_state_dict(optim.SGD([make(1), make(1)]).state_dict())
        return [each.state_dict() for each in (optimizer, other, third)], repr(optimizer)

    both_the_same(named)


@pytest.mark.parametrize(
    "change",
    [
        lambda saved: saved["param_groups"].append(saved["param_groups"][0]),
        lambda saved: saved["param_groups"][0]["params"].append(2),
        lambda saved: saved["param_groups"][0].update(lr=3, foo=1),
        lambda saved: saved["param_groups"][0].pop("nesterov"),
        lambda saved: saved.pop("state"),
        lambda saved: saved["state"].update({"foo": 3, 0: {"list": (1, 2), "number": 3}}),
    ],
)
def test_changed_state_dicts(change):
    def load(library, optim):
        optimizer = optim.SGD([library.ones(2), library.ones(2)], momentum=0.9)
        saved = optimizer.state_dict()
        change(saved)
        optimizer.load_state_dict(saved)
        return optimizer.state_dict()

    both_the_same(load)


def test_loaded_state_gets_the_dtype_of_its_parameter():
    weight = weft.ones(2, dtype=weft.bfloat16)
    optimizer = weft.optim.Adam([weight])
    saved = optimizer.state_dict()
    saved["state"] = {0: {"step": weft.tensor(3.0), "exp_avg": weft.ones(2), "list": [weft.ones(2)]}}
    optimizer.load_state_dict(saved)
    state = optimizer.state[weight]
    assert state["step"].dtype is weft.float32 and state["exp_avg"].dtype is weft.bfloat16
    assert state["list"][0].dtype is weft.bfloat16


def test_closure_records_gradients_and_its_loss_is_returned():
    optimizer = weft.optim.SGD([weft.ones(2)])
    with weft.no_grad():
        assert optimizer.step(weft.is_grad_enabled) is True
        assert not weft.is_grad_enabled()
    assert weft.is_grad_enabled()


def test_zero_grad():
    weight = weft.ones(2, requires_grad=True)
    optimizer = weft.optim.SGD([weight])
    weight.grad = weft.ones(2)
    kept = weight.grad
    optimizer.zero_grad(set_to_none=False)
    assert weight.grad is kept and kept.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert weight.grad is None


def test_step_hooks_run_in_order():
    def order(library, optim):
        pre, post = (
            (register_optimizer_step_pre_hook, register_optimizer_step_post_hook)
            if library is weft
            else (_their_pre_hook, _their_post_hook)
        )
        log = []
        optimizer = optim.SGD([library.ones(2)])
        handles = [
            pre(lambda *args: log.append(("all before", len(args)))),
            post(lambda *args: log.append(("all after", len(args)))),
        ]
        optimizer.register_step_pre_hook(lambda owner, args, kwargs: log.append(("before", args[1:], kwargs)))
        optimizer.register_step_post_hook(lambda owner, args, kwargs: log.append(("after", args[1:], kwargs)))
        optimizer.step()
        for handle in handles:
            handle.remove()
        optimizer.step(closure=None)
        return log

    assert len(both_the_same(order)) == 6


def test_step_pre_hook_may_change_the_arguments():
    optimizer = weft.optim.SGD([weft.ones(2)])
    handle = optimizer.register_step_pre_hook(lambda owner, args, kwargs: ((owner, lambda: 7), {}))
    assert optimizer.step() == 7
    handle.remove()
    optimizer.register_step_pre_hook(lambda owner, args, kwargs: 5)
    with pytest.raises(
        RuntimeError, match=r"must return None or a tuple of \(new_args, new_kwargs\), but got 5"
    ):
        optimizer.step()


def test_own_optimizers_have_hooks_too():
    class Own(weft.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {})

        @weft.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for param in group["params"]:
                    param.add_(param.grad, alpha=-1)

    weight = weft.ones(2, requires_grad=True)
    weight.grad = weft.ones(2)
    optimizer, log = Own([weight]), []
    optimizer.register_step_post_hook(lambda *args: log.append("after"))
    optimizer.step()
    assert log == ["after"] and weight.tolist() == [0.0, 0.0]


def test_state_dict_hooks():
    def hooks(library, optim):
        log = []
        optimizer = optim.SGD([library.ones(2)])
        optimizer.register_state_dict_pre_hook(lambda owner: log.append("save"))
        optimizer.register_state_dict_post_hook(lambda owner, saved: {**saved, "x": 1})
        optimizer.register_state_dict_post_hook(lambda owner, saved: log.append(sorted(saved)), prepend=True)
        optimizer.register_load_state_dict_pre_hook(lambda owner, saved: log.append(sorted(saved)))
        optimizer.register_load_state_dict_post_hook(lambda owner: log.append("loaded"))
        saved = optimizer.state_dict()
        optimizer.load_state_dict(saved)
        return log, sorted(saved)

    both_the_same(hooks)


def test_optimizers_and_parameters_are_freed_without_the_collector():
    weight = weft.ones(2, requires_grad=True)
    weight.grad = weft.ones(2)
    optimizer = weft.optim.Adam([weight])
    weft.optim.lr_scheduler.StepLR(optimizer, 3)
    optimizer.step()
    gone = weakref.ref(optimizer)
    gc.disable()
    try:
        del optimizer
        assert gone() is None
    finally:
        gc.enable()


def test_step_of_a_default_float64_counts_in_float64():
    weft.set_default_dtype(weft.float64)
    try:
        weight = weft.ones(2)
        weight.grad = weft.ones(2)
        optimizer = weft.optim.Adam([weight])
        optimizer.step()
        assert optimizer.state[weight]["step"].dtype is weft.float64
    finally:
        weft.set_default_dtype(weft.float32)


@pytest.mark.parametrize(
    "change",
    [
        lambda params, saved: None,
        lambda params, saved: saved["param_groups"][0].update(lr=5.0),
        lambda params, saved: saved["state"].clear(),
        lambda params, saved: params.popitem(),
        lambda params, saved: saved["param_groups"][0]["params"].pop(),
        lambda params, saved: saved["param_groups"].append({}),
    ],
)
def test_swapping_parameters_and_state(change):
    def swap(library, optim):
        weights = [library.ones(2), library.ones(3)]
        optimizer = optim.Adam(weights, lr=0.5)
        for weight in weights:
            weight.grad = library.ones(weight.shape)
        optimizer.step()
        params = {"a": library.zeros(2), "b": library.zeros(3)}
        for param in params.values():
            param.grad = library.ones(param.shape)
        saved = copy.deepcopy(optimizer.state_dict())
        change(params, saved)
        with optim.swap_in_optimizer_params_and_state(optimizer, params, saved):
            optimizer.step()
        steps = [state["step"].item() for state in saved["state"].values()]
        found = [round(value, 5) for each in (*weights, *params.values()) for value in each.tolist()]
        return found, steps, optimizer.state_dict()["state"][0]["step"].item()

    both_the_same(swap)


def test_swapping_needs_state():
    optimizer = weft.optim.SGD([weft.ones(2)])
    with pytest.raises(RuntimeError, match="requires initialized optimizer state"):
        with weft.optim.swap_in_optimizer_params_and_state(optimizer, {}, optimizer.state_dict()):
            pass


@pytest.mark.parametrize("graph", [True, False])
@pytest.mark.parametrize("of", ["optimizer", "module"])
def test_zero_grad_detaches_gradients_that_take_part_in_autograd(graph, of):
    for library in (torch, weft):
        weight = library.nn.Parameter(library.tensor([1.0, 2.0]))
        module = library.nn.Module()
        module.weight = weight
        owner = library.optim.SGD([weight]) if of == "optimizer" else module
        if graph:
            (weight.grad,) = library.autograd.grad((weight**3).sum(), weight, create_graph=True)
        else:
            weight.grad = library.ones(2, requires_grad=True)
        kept = weight.grad
        owner.zero_grad(set_to_none=False)
        assert weight.grad is kept and kept.tolist() == [0.0, 0.0]
        assert not kept.requires_grad and kept.grad_fn is None and kept.is_leaf
