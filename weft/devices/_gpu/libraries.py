"""Libraries of vendors: from the system, or from packages of Python."""

from __future__ import annotations

import ctypes
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path


def load(names: Sequence[str], folders: Sequence[str]) -> ctypes.CDLL | None:
    """The first library that is there, under one of its names; None without one.

    The system is asked first. folders: those of packages that may have the library, as seen from a folder of Python's packages.
    """
    places = ["", *(str(Path(entry) / folder) for entry in sys.path for folder in folders)]
    for place, name in itertools.product(places, names):
        path = str(Path(place) / name) if place else name
        if not place or Path(path).exists():
            try:
                return ctypes.CDLL(path)
            except OSError:
                continue
    return None
