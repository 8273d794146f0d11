"""QuantType: when the results and the weights of a layer are quantized."""

from enum import IntEnum


class QuantType(IntEnum):
    """With parameters that suit each input, with fixed ones, with fixed ones after training, or the weights only."""

    DYNAMIC = 0
    STATIC = 1
    QAT = 2
    WEIGHT_ONLY = 3
