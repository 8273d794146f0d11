"""L-BFGS is Newton's method with an inverse Hessian that it estimates from the last steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..ops.assembly.joining import cat
from ..ops.views.complex_views import view_as_real
from .line_search import Point, strong_wolfe
from .optimizer import Optimizer, ParamsT, check_lr, evaluate

LONGEST_SEARCH = 25  # evaluations that a line search may use after the first one


class LBFGS(Optimizer):
    """Steps along -H grad, where H is estimated from the last `history_size` steps and changes of the gradient.

    Each call of `step` makes up to `max_iter` iterations and `max_eval` evaluations of the closure (by default
    max_iter * 5 / 4), until the gradient is below `tolerance_grad`, or a step or the change of the loss below
    `tolerance_change`. `line_search_fn` is None or "strong_wolfe". All parameters must be in one group.
    Source: Nocedal and Wright, Numerical Optimization, 2006, algorithm 7.4.

    >>> import weft as torch
    >>> x = torch.tensor([3.0, -1.0], requires_grad=True)
    >>> optimizer = torch.optim.LBFGS([x], lr=1.0)
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((x - 1) * (x - 1)).sum()
    ...     loss.backward()
    ...     return loss
    >>> loss = optimizer.step(closure)
    >>> x.detach()
    tensor([1., 1.])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ):
        check_lr(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    @no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Minimise the loss; `closure` computes it and its gradients. Returns the loss before the first iteration."""
        group = self.param_groups[0]
        lr, tolerance = group["lr"], group["tolerance_change"]
        lr = lr.squeeze() if isinstance(lr, Tensor) else lr
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        first_loss = evaluate(closure)
        loss, grad = float(first_loss), self._gather()
        evaluations, iterations = 1, 0
        state["func_evals"] += 1
        if grad.abs().max() <= group["tolerance_grad"]:
            return first_loss
        while iterations < group["max_iter"]:
            iterations += 1
            state["n_iter"] += 1
            direction = self._direction(grad, state, group["history_size"])
            start = state["n_iter"] == 1
            state["t"] = step = min(1.0, 1.0 / grad.abs().sum()) * lr if start else lr  # type: ignore[operator]
            state["prev_flat_grad"], state["prev_loss"] = grad.clone(), loss
            slope = grad.dot(direction)
            if slope > -tolerance:
                break
            made, last_loss = 0, loss
            if group["line_search_fn"] is not None:
                here, budget = Point(0, loss, grad, slope), group["max_eval"] - evaluations
                (step, loss, grad, _), made = self._search(closure, direction, step, here, budget)
                self._add(step, direction)
            else:
                self._add(step, direction)
                if iterations != group["max_iter"]:
                    loss, grad, made = float(evaluate(closure)), self._gather(), 1
            state["t"] = step
            evaluations += made
            state["func_evals"] += made
            if (
                evaluations >= group["max_eval"]
                or grad.abs().max() <= group["tolerance_grad"]
                or (direction * step).abs().max() <= tolerance
                or abs(loss - last_loss) < tolerance
            ):
                break
        return first_loss

    def _direction(self, grad: Tensor, state: dict[str, Any], history_size: int) -> Tensor:
        """Add the last step to the history, and return -H grad, which two loops over the history compute."""
        if state["n_iter"] == 1:
            state.update(d=grad.neg(), t=None, old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return state["d"]
        changes, steps, factors = state["old_dirs"], state["old_stps"], state["ro"]
        change, step = grad - state["prev_flat_grad"], state["d"] * state["t"]
        curvature = change.dot(step)
        if curvature > 1e-10:
            for history in (changes, steps, factors):
                if len(history) == history_size:
                    history.pop(0)
            changes.append(change)
            steps.append(step)
            factors.append(1.0 / curvature)
            state["H_diag"] = curvature / change.dot(change)
        weights = state.setdefault("al", [None] * history_size)
        result = grad.neg()
        for k in reversed(range(len(changes))):
            weights[k] = steps[k].dot(result) * factors[k]
            result.add_(changes[k], alpha=-weights[k].item())
        result = result * state["H_diag"]
        for k in range(len(changes)):
            result.add_(steps[k], alpha=(weights[k] - changes[k].dot(result) * factors[k]).item())
        state["d"] = result
        return result

    def _search(
        self, closure: Callable[[], Any], direction: Tensor, step: Any, here: Point, budget: int
    ) -> tuple[Point, int]:
        """Search along the direction. Returns the point found and the number of evaluations."""
        group = self.param_groups[0]
        if group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        along, longest = self._along(closure, direction), direction.abs().max()
        limit = min(LONGEST_SEARCH, budget)
        return strong_wolfe(along, step, here, longest, group["tolerance_change"], limit)

    def _along(self, closure: Callable[[], Any], direction: Tensor) -> Callable[[Any], Point]:
        """Return a function that evaluates the loss after a step of a given length and then restores the parameters."""
        origin = [param.clone() for param in self._params]

        def point(step: Any) -> Point:
            self._add(step, direction)
            loss, grad = float(evaluate(closure)), self._gather()
            for param, value in zip(self._params, origin, strict=True):
                param.copy_(value)
            return Point(step, loss, grad, grad.dot(direction))

        return point

    def _gather(self) -> Tensor:
        """Return all gradients as one vector."""
        parts = []
        for param in self._params:
            grad = param.new_zeros(param.shape) if param.grad is None else param.grad
            parts.append(_flat(grad.to_dense()))
        return cat(parts, 0)

    def _add(self, step: Any, direction: Tensor) -> None:
        """Add step * direction to the parameters."""
        start = 0
        for param in self._params:
            target = view_as_real(param) if param.is_complex() else param
            part = direction[start : start + target.numel()]
            target.add_(part.view(target.shape), alpha=float(step))
            start += target.numel()


def _flat(value: Tensor) -> Tensor:
    return (view_as_real(value.resolve_conj()) if value.is_complex() else value).reshape(-1)
