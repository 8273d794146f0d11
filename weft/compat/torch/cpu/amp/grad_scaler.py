"""`GradScaler` for the processor, by its old name."""

from weft.amp.by_device import grad_scaler_of

__all__ = ["GradScaler"]

GradScaler = grad_scaler_of("cpu", __name__)
