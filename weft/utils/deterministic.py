"""`torch.utils.deterministic`: what deterministic mode does besides choosing algorithms."""

from __future__ import annotations

# Whether new memory is filled with NaN in deterministic mode. weft fills none; the switch can be set and read.
fill_uninitialized_memory = True
