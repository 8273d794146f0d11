"""`torch.distributed.elastic.multiprocessing.errors.handlers`: which ErrorHandler `record` uses."""

from .error_handler import ErrorHandler

__all__ = ["get_error_handler"]


def get_error_handler() -> ErrorHandler:
    """The ErrorHandler of this process."""
    return ErrorHandler()
