"""Which operators have effects beyond their results."""

from __future__ import annotations

import enum

from ...compat.missing import module_getattr


class EffectType(enum.Enum):
    """The kind of effect of an operator: calls with ordered effects keep their order."""

    ORDERED = "Ordered"


__getattr__ = module_getattr(__name__)
