"""`torch.backends.mha`: the switch of PyTorch's fast path through attention layers. weft has one way only."""

_enabled = True


def get_fastpath_enabled() -> bool:
    """What `set_fastpath_enabled` set."""
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Set the switch, which changes nothing here."""
    global _enabled
    _enabled = value
