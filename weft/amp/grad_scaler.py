"""The scaling of losses, so that gradients in float16 do not vanish."""

from __future__ import annotations

import inspect
import warnings
from collections import abc, defaultdict
from enum import Enum
from typing import Any

from ..core.device import device, is_present
from ..core.dtype import float16, float32, int32
from ..core.grad_mode import no_grad
from ..core.layout_spec import is_strided
from ..core.tensor import Tensor
from ..core.warn import user_level
from ..ops.creation.creation import full
from ..ops.nn.kernels import _amp_foreach_non_finite_check_and_unscale_ as check_and_unscale


class OptState(Enum):
    """How far a step has come for one optimizer."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


_READY, _UNSCALED, _STEPPED = OptState


def _refresh_per_optimizer_state() -> dict[str, Any]:
    """What a scaler notes of an optimizer between two calls of `update`."""
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def _overflows(own: dict[str, Any]) -> bool:
    return any(each.item() for each in own["found_inf_per_device"].values())


class GradScaler:
    """Multiplies losses by a factor that grows until gradients overflow, and skips the steps in which they do.

    `scale(loss).backward(); step(optimizer); update()`; before clipping, `unscale_(optimizer)`.
    With enabled=False all of it passes through.

    >>> import weft as torch
    >>> scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    >>> scaler.scale(torch.tensor(2.0)), scaler.get_scale()
    (tensor(16.), 8.0)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        self._device = str(device)
        if enabled and self._device != "cpu" and not is_present(self._device):
            warnings.warn(
                f"torch.{self._device}.amp.GradScaler is enabled, but {self._device.upper()} is not available.  Disabling.",
                UserWarning,
                stacklevel=user_level(),
            )
            enabled = False
        self._enabled = enabled
        if enabled and growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if enabled and backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale, self._init_growth_tracker = init_scale, 0
        # Tensors from the first `scale` on.
        self._scale: Tensor | None = None
        self._growth_tracker: Tensor | None = None
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        # id of an optimizer -> its stage, and by device a tensor that is 1 if a gradient was not finite
        self._per_optimizer_states: defaultdict[int, dict[str, Any]] = defaultdict(
            _refresh_per_optimizer_state
        )

    def scale(self, outputs: Any) -> Any:
        """`outputs`, a tensor or an iterable of them, times the scale."""
        if not self._enabled:
            return outputs
        if self._scale is None:
            self._scale = full((), self._init_scale, dtype=float32, device=self._device)
            self._growth_tracker = full((), self._init_growth_tracker, dtype=int32, device=self._device)
        if isinstance(outputs, Tensor):
            return outputs * self._scale.to(outputs.device)
        if isinstance(outputs, abc.Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _in_use(self, attempted: str) -> tuple[Tensor, Tensor]:
        """The scale, and the steps since it last changed."""
        if self._scale is None or self._growth_tracker is None:
            raise AssertionError(
                f"Attempted {attempted} but _scale is None.  This may indicate your script did not use "
                "scaler.scale(loss or outputs) earlier in the iteration."
            )
        return self._scale, self._growth_tracker

    @no_grad()
    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of the optimizer's parameters by the scale, and note whether one is not finite.

        Raises: RuntimeError if called twice since `update`, or after `step`; ValueError for gradients in float16.
        """
        if not self._enabled:
            return
        scale, _ = self._in_use("unscale_")
        own = self._per_optimizer_states[id(optimizer)]
        if own["stage"] == _UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if own["stage"] == _STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = scale.double().reciprocal().float()
        found = full((), 0.0, device=scale.device)
        own["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, found, False)
        own["stage"] = _UNSCALED

    def _check_inf_per_device(self, optimizer: Any) -> dict[device, Tensor]:
        """Note whether a gradient is not finite, and leave the gradients as they are."""
        scale, _ = self._in_use("_check_inf_per_device")
        found = self._unscale_grads_(optimizer, full((), 1.0), full((), 0.0, device=scale.device), True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    @no_grad()
    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[device, Tensor]:
        """Multiply the gradients by `inv_scale`, and set `found_inf` to 1 if one is not finite. Subclasses may override this.

        Returns: `found_inf` by the device of the gradients. Raises: ValueError for gradients in float16, unless `allow_fp16`.
        """
        by_device: dict[device, list[Tensor]] = {}
        for group in optimizer.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                if param.grad.dtype is float16:
                    if not allow_fp16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    if param.grad.is_sparse:  # sums of entries may overflow
                        param.grad = param.grad.coalesce()
                numbers = param.grad if is_strided(param.grad.spec) else param.grad._values()
                by_device.setdefault(numbers.device, []).append(numbers)
        found = {where: found_inf.to(where) for where in by_device}
        for where, gradients in by_device.items():
            check_and_unscale(gradients, found[where], inv_scale.to(where))
        return found

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step(*args, **kwargs)` with unscaled gradients, unless one of them overflowed: then None.

        An optimizer that has `_step_supports_amp_scaling` is called in any case: it gets `grad_scale` and `found_inf` as attributes, or
        the scaler if its `step` has an argument `grad_scaler`.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._in_use("step")
        own = self._per_optimizer_states[id(optimizer)]
        if own["stage"] == _STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_that_scales(optimizer, own, args, kwargs)
        else:
            if own["stage"] == _READY:
                self.unscale_(optimizer)
            if not own["found_inf_per_device"]:
                raise AssertionError("No inf checks were recorded for this optimizer.")
            result = None if _overflows(own) else optimizer.step(*args, **kwargs)
        own["stage"] = _STEPPED
        return result

    def _step_that_scales(
        self, optimizer: Any, own: dict[str, Any], args: tuple, kwargs: dict[str, Any]
    ) -> Any:
        """A step of an optimizer that divides the gradients itself, or skips the step."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near future "
                "GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and let the optimizer "
                "use them directly.",
                FutureWarning,
                stacklevel=user_level(),
            )
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        scale, _ = self._in_use("step")
        if own["stage"] == _READY:
            self._check_inf_per_device(optimizer)
            optimizer.grad_scale = scale * getattr(optimizer, "grad_scale", 1)
        else:
            optimizer.grad_scale = getattr(optimizer, "grad_scale", None)
        optimizer.found_inf = sum(own["found_inf_per_device"].values())
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Shrink the scale if gradients overflowed since the last time, else let it grow after so many steps."""
        if not self._enabled:
            return
        scale, tracker = self._in_use("update")
        checked = [
            _overflows(own) for own in self._per_optimizer_states.values() if own["found_inf_per_device"]
        ]
        if new_scale is not None:
            scale.fill_(new_scale)
        elif not checked:
            raise AssertionError("No inf checks were recorded prior to update.")
        elif any(checked):
            scale.mul_(self._backoff_factor)
            tracker.zero_()
        else:
            tracker.add_(1)
            if tracker.item() == self._growth_interval:
                grown = scale * self._growth_factor
                if grown.isfinite():
                    scale.copy_(grown)
                tracker.zero_()
        self._per_optimizer_states.clear()

    def is_enabled(self) -> bool:
        return self._enabled

    def get_scale(self) -> float:
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else int(tracker.item())

    def state_dict(self) -> dict[str, Any]:
        """The scale, how it changes, and the steps since it last did; empty if not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Raises: RuntimeError if `state_dict` is empty, that of a scaler that was not enabled."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale, self._init_growth_tracker = state_dict["scale"], state_dict["_growth_tracker"]
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)
        for name in ("growth_factor", "backoff_factor", "growth_interval"):
            setattr(self, f"_{name}", state_dict[name])
