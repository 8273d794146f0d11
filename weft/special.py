"""Special functions, `torch.special`."""

from __future__ import annotations

from .core.op import FUNCTIONS

PREFIX = "special."
globals().update({name.removeprefix(PREFIX): f for name, f in FUNCTIONS.items() if name.startswith(PREFIX)})
