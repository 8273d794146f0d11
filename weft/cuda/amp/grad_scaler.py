"""`GradScaler` for CUDA, by its old name."""

from ...amp.by_device import grad_scaler_of

__all__ = ["GradScaler"]

GradScaler = grad_scaler_of("cuda", __name__)
