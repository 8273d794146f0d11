"""The devices: what each can do is a small class in a file of its own."""

from ..core.device import started_backends


def synchronize() -> None:
    """Wait until all work given to all devices is done.

    >>> import weft
    >>> weft.synchronize()
    """
    for backend in started_backends():
        backend.synchronize()
