"""Convolutions of bytes as products (`byte_gemm.py`) whose rows are read where they lie in the input, without patches in memory."""

from __future__ import annotations

import math

import numpy as np

from .byte_gemm import byte_products
from .byte_tiles import QUAD, Epilogue, Pieces
from .depthwise import Places
from .kernel import Launch


def byte_convolution(
    epilogue: Epilogue, images: int, channels: int, columns: int, groups: int, places: Places
) -> Launch:
    """Write `c[image, position] = epilogue(the sum over taps and channels of a[image, element] * weight[tap, channel])`.

    Call it as the launch of `byte_products`. a: [images, *sizes, channels], contiguous. The terms of the weight are [*kernel, channels
    of a group], and a group has a multiple of four channels. columns: those that a group makes. c: [images, *positions, groups * columns].
    """
    own = channels // groups
    assert own % QUAD == 0, "a quad must not hold the channels of two taps"
    starts, taps = places.distances(images, channels)
    if groups == 1 and places.dilation[-1] == 1:  # what a row of the kernel reads is one piece of memory
        taps = taps[..., 0]
    rows = (np.arange(groups)[:, None] * own + starts.ravel()).ravel()
    sizes = starts.size, own * math.prod(places.kernel), columns
    pieces = Pieces(rows, np.ascontiguousarray(taps).ravel())
    return byte_products(epilogue, sizes, 0, groups * columns, groups, pieces)
