"""`weft.viz`: pictures of tensors, graphs, kernels, memory and models, as SVG and in notebooks.

Each function returns a `Picture`. A notebook shows it, `picture.save("name.svg")` writes it, and `str(picture)` is its SVG.
docs/pictures.md shows one of each. PyTorch has no such module.
"""

from __future__ import annotations

from .graph import graph
from .heat_map import heat_map
from .kernels import kernels
from .memory import memory
from .picture import Picture
from .storage import storage
from .summary import summary

__all__ = ["Picture", "graph", "heat_map", "kernels", "memory", "storage", "summary"]
