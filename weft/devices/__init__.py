"""The devices: a folder for each, with a class that has the methods of `base.Backend`."""

from ..core.device import started_backends


def synchronize() -> None:
    """Wait until all work given to all devices is done.

    >>> import weft
    >>> weft.synchronize()
    """
    for backend in started_backends():
        backend.synchronize()
