"""weft.distributed: that there is one process only. Scripts ask before they use more."""

from ..compat.missing import module_getattr


def is_available() -> bool:
    """Whether several processes can work together.

    >>> import weft as torch
    >>> torch.distributed.is_available()
    False
    """
    return False


def is_initialized() -> bool:
    """Whether this process is one of several that work together."""
    return False


__getattr__ = module_getattr(__name__)
