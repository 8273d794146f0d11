"""Checkpoints that keep some results; the operators are PyTorch's where `torch.ops.aten` has them."""

import functools

import pytest
import torch

import weft
from weft.utils.checkpoint import (
    CheckpointError,
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
    get_device_states,
    set_checkpoint_debug_enabled,
    set_device_states,
)

KEPT = ("matmul", "mm", "linear", "addmm", "softmax", "_softmax")


def is_kept(op):
    name = getattr(op, "__name__", str(op)).split(".")[0]
    return name in KEPT


def model(x, w, calls=None):
    hidden = (x @ w).softmax(-1)
    hidden = weft.nn.functional.linear(hidden, w, hidden[0]).tanh()
    return (hidden * hidden.sigmoid()).sum()


def gradients(function, **options):
    weft.manual_seed(0)
    x, w = weft.randn(4, 4, requires_grad=True), weft.randn(4, 4, requires_grad=True)
    result = checkpoint(function, x, w, use_reentrant=False, **options) if options else function(x, w)
    result.backward()
    return [result.tolist(), x.grad.tolist(), w.grad.tolist()]


@pytest.mark.parametrize("answer", [*CheckpointPolicy, True, False])
def test_any_policy_gives_the_same_gradients(answer):
    contexts = functools.partial(
        create_selective_checkpoint_contexts, lambda ctx, op, *args, **kwargs: answer
    )
    assert gradients(model, context_fn=contexts) == gradients(model)


@pytest.mark.parametrize("early_stop", [True, False])
def test_what_is_kept_does_not_run_again(early_stop):
    runs = []

    class Count(weft.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            runs.append("function")
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    asked = []

    def policy(ctx, op, *args, **kwargs):
        asked.append((ctx.is_recompute, getattr(op, "__name__", str(op)).split(".")[0]))
        return CheckpointPolicy.MUST_SAVE if is_kept(op) else CheckpointPolicy.PREFER_RECOMPUTE

    def function(x, w):
        return Count.apply((x @ w).exp()).sin().sum()

    contexts = functools.partial(create_selective_checkpoint_contexts, policy)
    assert gradients(function, context_fn=contexts, early_stop=early_stop) == gradients(function)
    assert (False, "exp") in asked and not any(again for again, _ in asked)


@pytest.mark.parametrize("lib", [torch, weft], ids=["torch", "weft"])
def test_a_policy_is_asked_in_the_first_run_only(lib):
    module = lib.utils.checkpoint
    for decision in (module.CheckpointPolicy.MUST_SAVE, module.CheckpointPolicy.PREFER_RECOMPUTE):
        asked = []

        def policy(ctx, op, *args, decision=decision, asked=asked, **kwargs):
            asked.append((ctx.is_recompute, len(asked)))
            return decision

        contexts = functools.partial(module.create_selective_checkpoint_contexts, policy)
        x = lib.tensor([0.5, 1.0], requires_grad=True)
        y = module.checkpoint(lambda x: x.sin().sin().sin(), x, use_reentrant=False, context_fn=contexts)
        y.sum().backward()
        assert asked == [(False, 0), (False, 1), (False, 2)]


@pytest.mark.parametrize("lib", [torch, weft], ids=["torch", "weft"])
def test_custom_operators_and_overloads_with_a_correction(lib):
    module, runs, asked = lib.utils.checkpoint, [], []
    name = f"kept_by_{lib.__name__}::waves"

    @lib.library.custom_op(name, mutates_args=())
    def waves(x: lib.Tensor) -> lib.Tensor:
        runs.append(name)
        return x.sin()

    waves.register_autograd(
        lambda ctx, grad: grad * ctx.saved_tensors[0].cos(),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    overload = getattr(lib.ops, f"kept_by_{lib.__name__}").waves.default

    def policy(ctx, op, *args, **kwargs):
        asked.append(op)
        return op in (overload, lib.ops.aten.var_mean.correction)

    def function(x):
        spread, mean = lib.var_mean(overload(x).exp())
        return spread * mean

    contexts = functools.partial(module.create_selective_checkpoint_contexts, policy)
    x = lib.tensor([0.5, 1.0, 2.0], requires_grad=True)
    module.checkpoint(function, x, use_reentrant=False, context_fn=contexts).backward()
    assert runs == [name] and overload in asked and lib.ops.aten.var_mean.correction in asked
    expected = x.detach().requires_grad_()
    function(expected).backward()
    lib.testing.assert_close(x.grad, expected.grad)


@pytest.mark.parametrize("lib", [torch, weft], ids=["torch", "weft"])
def test_a_second_backward_is_refused(lib):
    module = lib.utils.checkpoint

    def policy(ctx, op, *args, **kwargs):
        return op is lib.ops.aten.sin.default

    contexts = functools.partial(module.create_selective_checkpoint_contexts, policy)
    x = lib.tensor([0.5, 1.0], requires_grad=True)
    y = module.checkpoint(lambda x: x.sin().cos().exp(), x, use_reentrant=False, context_fn=contexts)
    y.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        y.sum().backward(retain_graph=True)


def test_kept_results_are_the_same_memory():
    """The second run gets the result of the first: random numbers that were kept are not drawn again."""

    def function(x, w):
        return (weft.nn.functional.dropout(x, 0.5) * w).sin().sum()

    contexts = functools.partial(
        create_selective_checkpoint_contexts, lambda ctx, op, *a, **k: CheckpointPolicy.MUST_SAVE
    )
    assert gradients(function, context_fn=contexts, preserve_rng_state=False) == gradients(function)


def test_results_that_were_written_to():
    def function(x, w):
        y = x.exp()
        z = y.sin()
        with weft.no_grad():
            z.detach().add_(1)
        return (z * w).cos().sum()

    everything = functools.partial(create_selective_checkpoint_contexts, lambda ctx, op, *a, **k: True)
    with pytest.raises(RuntimeError, match="mutated"):
        gradients(function, context_fn=everything)


def test_lists_of_operators():
    x = weft.ones(2, requires_grad=True)
    contexts = functools.partial(create_selective_checkpoint_contexts, [weft.exp])
    checkpoint(lambda x: weft.exp(x).sin().sum(), x, use_reentrant=False, context_fn=contexts).backward()
    assert weft.allclose(x.grad, weft.cos(weft.exp(weft.ones(2))) * weft.exp(weft.ones(2)))
    with pytest.raises(ValueError, match="op_list"):
        create_selective_checkpoint_contexts([3])
    with pytest.raises(ValueError, match="update the OpOverloadPacket to a specific OpOverload"):
        create_selective_checkpoint_contexts([weft.ops.aten.sin])
    with pytest.raises(TypeError):
        create_selective_checkpoint_contexts(3)


def differing(lib, first, second, **options):
    runs = []

    def function(x):
        runs.append(0)
        return (first if len(runs) == 1 else second)(x)

    x = lib.ones(3, requires_grad=True)
    with pytest.raises(lib.utils.checkpoint.CheckpointError) as raised:
        lib.utils.checkpoint.checkpoint(function, x, use_reentrant=False, **options).sum().backward()
    return str(raised.value)


def test_messages_are_pytorchs():
    for first, second in (
        (lambda x: x.exp().sin(), lambda x: x.exp()),
        (lambda x: x.exp().sin(), lambda x: x.double().exp().sin()),
        (lambda x: x.repeat(2).exp()[:3].sin(), lambda x: x.exp().sin()),
    ):
        own, reference = differing(weft, first, second), differing(torch, first, second)
        assert own.split("\n\nTip")[0] == reference.split("\n\nTip")[0]


def test_debug_lists_what_ran():
    text = differing(weft, lambda x: x.exp().sin(), lambda x: x.exp(), debug=True)
    assert "original forward:\n\n    0  exp([3])\n    1  sin([3])" in text
    with set_checkpoint_debug_enabled(True):
        assert "recomputation:" in differing(weft, lambda x: x.exp().sin(), lambda x: x.exp())
    with pytest.raises(CheckpointError):
        raise CheckpointError


def test_devices():
    x = weft.ones(1)
    assert get_device_states(x) == torch.utils.checkpoint.get_device_states(torch.ones(1)) == ([], [])
    set_device_states([], [])
    with pytest.raises(RuntimeError, match="Found no NVIDIA driver"):
        set_device_states([0], [x])
    kind = weft.utils.checkpoint.DefaultDeviceType
    assert kind.get_device_type() == "cuda"
    with weft.utils.checkpoint.GraphExecGroup():
        assert weft.utils.checkpoint.GraphExecGroup._get_current_group() is not None
