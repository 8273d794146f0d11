"""Which operators have effects beyond their results."""

from __future__ import annotations

import enum


class EffectType(enum.Enum):
    """The kind of effect of an operator: calls with ordered effects keep their order."""

    ORDERED = "Ordered"
