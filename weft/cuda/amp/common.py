"""Whether mixed precision can work on CUDA."""

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    return True
