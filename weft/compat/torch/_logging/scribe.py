"""`torch._logging.scribe`: reports to a service of PyTorch's owner, which do nothing outside of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def make_scribe_logger(name: str, thrift_src: str) -> Callable[..., None]:
    """A function that takes the fields of a report and drops them."""

    return _dropped


def _dropped(**fields: Any) -> None:
    """Take a report, and drop it."""


open_source_signpost = make_scribe_logger("TorchOpenSourceSignpost", "")
