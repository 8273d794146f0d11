"""Roots of unity."""

from __future__ import annotations

import numpy as np


def roots_of_unity(n: int) -> np.ndarray:
    """exp(-2 pi i k / n) for k below n, complex128.

    Sines and cosines are those of angles up to pi / 4, whose rounding moves the results by less than that of larger angles.
    """
    octant, rest = np.divmod(8 * np.arange(n), n)
    angle = np.pi / 4 * np.where(octant % 2, n - rest, rest) / n
    near, far = np.cos(angle), np.sin(angle)
    swapped = (octant + 1) // 2 % 2 == 1  # the angle is that to the imaginary axis
    real, imag = np.where(swapped, far, near), np.where(swapped, near, far)
    return np.where((octant >= 2) & (octant < 6), -real, real) + 1j * np.where(octant < 4, -imag, imag)
