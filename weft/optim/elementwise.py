"""The base of the optimizers whose step treats each element alike, so that one kernel updates a parameter."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..core.grad_mode import enable_grad
from ..core.layout_spec import is_strided
from ..core.recording import unrecorded
from ..core.tensor import Tensor
from ..families.update import FusedUpdate
from ..ops.creation.creation import zeros_like
from ..ops.views.complex_views import view_as_real
from .optimizer import Optimizer, evaluate, scalar_tensor


class Elementwise(Optimizer):
    """A subclass defines the rule of its update, the state that the rule changes, and the numbers of a step.

    The rule is `rule(options, grad, param, *state, *numbers)`, as `families/update.py` describes.
    """

    update: FusedUpdate
    _legacy_options: dict[str, Any] = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def _slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        """Return the names of the state that the rule updates, in the order of its arguments."""
        return ()

    def _start(self, state: dict[str, Any], param: Tensor, group: dict[str, Any]) -> None:
        """Fill the empty state of a parameter."""
        state["step"] = scalar_tensor(0.0)
        for name in self._slots(group):
            state[name] = zeros_like(param)

    def _next(
        self, group: dict[str, Any], state: dict[str, Any], param: Tensor, step: float
    ) -> tuple[tuple, tuple]:
        """Return the options that choose a variant of the rule, and the numbers of the step.

        `step` is the number of the step of this parameter, which begins at 1; it is 0 if the state has no "step".
        """
        raise NotImplementedError(f"{type(self).__name__} must define _next(group, state, param, step)")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have gradients; `closure` computes the loss again. Returns the loss."""
        with enable_grad() if self.defaults.get("differentiable") else unrecorded():
            loss = evaluate(closure)
            for group in self.param_groups:
                self._step_group(group)
        return loss

    def _step_group(self, group: dict[str, Any]) -> None:
        if group.get("capturable"):
            _refuse_capture(group["params"])
        states, slots = self.state, self._slots(group)
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            if not is_strided(grad.spec) and not grad.is_nested:
                self._check_strided(param)
                self._step_sparse(param, grad, group)
                continue
            state: dict[str, Any] = {}
            if slots:
                state = states[param]
                if not state:
                    self._start(state, param, group)
            capture = param.spec.device.backend.capture
            if capture is None or "step" not in state:
                self._step_param(group, state, param, grad)
            else:  # the host counts the steps, so that it has work in each replay
                self._cuda_graph_capture_health_check()
                capture.between(functools.partial(self._step_captured, group, state, param, grad))

    def _step_param(self, group: dict[str, Any], state: dict[str, Any], param: Tensor, grad: Tensor) -> None:
        update = self.update.compose if group.get("differentiable") else self.update
        step = count(state) if "step" in state else 0.0
        options, numbers = self._next(group, state, param, step)
        targets = [param, *[state[name] for name in self._slots(group)]]
        if param.spec.dtype.is_complex:
            grad, targets = _as_real(grad), list(map(_as_real, targets))
        update(options, grad, targets, numbers)

    def _step_captured(self, *arguments: Any) -> None:
        with unrecorded():
            self._step_param(*arguments)

    def _check_strided(self, param: Tensor) -> None:
        """Raises: NotImplementedError if a parameter is sparse itself."""
        if not is_strided(param.spec):
            raise NotImplementedError(
                f"{type(self).__name__}: sparse gradients update strided parameters, and this one is {param.layout}: "
                "make a Parameter of its values, and the sparse tensor from them in each step"
            )


def count(state: dict[str, Any]) -> float:
    """Count a step of the parameter with this state, and return the number of the step."""
    return state["step"].add_(1).item()


def decay_kind(group: dict[str, Any]) -> str:
    """Return how weight decay acts: "coupled" (on the gradient), "decoupled" (on the parameter itself) or "none"."""
    if group["weight_decay"] == 0:
        return "none"
    return "decoupled" if group["decoupled_weight_decay"] else "coupled"


def _as_real(value: Tensor) -> Tensor:
    """Return a complex tensor as pairs of real numbers, because a step treats the real and imaginary parts alike."""
    return view_as_real(value.resolve_conj())


def _refuse_capture(params: list[Tensor]) -> None:
    """Raise AssertionError unless all parameters are on a device whose work can be captured."""
    devices = ["cuda", "xpu", "hpu", "privateuseone", "xla"]
    if any(param.spec.device.type not in devices for param in params if param.grad is not None):
        raise AssertionError(
            f"If capturable=True, params and state_steps must be on supported devices: {devices}."
        )
