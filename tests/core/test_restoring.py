"""Modes are as before, wherever in a `with` statement an exception arrives."""

import sys

import pytest

import weft
from weft.autograd import anomaly, forward_ad, saved
from weft.autograd.graph import saved_tensors_hooks
from weft.core import autocast, device, grad_mode, overrides
from weft.core.recording import unrecorded
from weft.core.restoring import Restoring
from weft.nn.utils import parametrize
from weft.ops.tensor import printing
from weft.serialization import options
from weft.utils import checkpoint

CONTEXTS = {
    "no_grad": weft.no_grad,
    "enable_grad": weft.enable_grad,
    "inference_mode": weft.inference_mode,
    "unrecorded": unrecorded,
    "autocast": lambda: weft.autocast("cpu"),
    "DisableTorchFunctionSubclass": overrides.DisableTorchFunctionSubclass,
    "device": lambda: weft.device("meta"),
    "detect_anomaly": lambda: anomaly.detect_anomaly(check_nan=False),
    "saved_tensors_hooks": lambda: saved_tensors_hooks(lambda t: t, lambda t: t),
    "dual_level": forward_ad.dual_level,
    "skip_data": options.skip_data,
    "cached": parametrize.cached,
    "printoptions": lambda: printing.printoptions(precision=2),
    "set_checkpoint_early_stop": lambda: checkpoint.set_checkpoint_early_stop(False),
}


def modes():
    mode, state = grad_mode.mode, autocast.state
    return {
        "grad": (mode.enabled, mode.inference, mode.reverse),
        "autocast": (state.enabled, state.dtypes, len(autocast.open_contexts)),
        "inference": len(grad_mode.open_inference),
        "levels": list(grad_mode.open_levels),
        "overrides": overrides.switch.on,
        "device": device._default,
        "anomaly": (anomaly.tracing, anomaly.checking),
        "hooks": (len(saved.hooks.stack), saved.hooked),
        "skip_data": options.local.skip_data,
        "cached": parametrize._cache_depth,
        "early_stop": checkpoint._early_stop,
    }


def test_exits_are_machine_code():
    weft.ones(2) + 1
    assert type(Restoring.__exit__).__name__ == "method_descriptor"


@pytest.mark.parametrize("name", CONTEXTS)
def test_the_mode_is_put_back_though_the_exit_is_interrupted(name):
    """A signal handler runs when a Python function begins: here, when `_restore` does."""
    weft.ones(2) + 1
    before = modes()
    interrupted = []

    def trace(frame, event, argument):
        if frame.f_code.co_name == "_restore" and not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        with CONTEXTS[name]():
            sys.settrace(trace)
    sys.settrace(None)
    assert interrupted
    assert modes() == before


@pytest.mark.parametrize("name", CONTEXTS)
def test_exceptions_of_the_block_go_on(name):
    before = modes()
    with pytest.raises(ZeroDivisionError):
        with CONTEXTS[name]():
            1 / 0  # noqa: B018
    assert modes() == before


def test_a_context_may_be_entered_again_while_entered():
    context = weft.no_grad()
    with context:
        with context, weft.enable_grad():
            assert weft.is_grad_enabled()
        assert not weft.is_grad_enabled()
    assert weft.is_grad_enabled()
