"""Registers all batching rules."""

from . import (  # noqa: F401
    arrays,
    copies,
    default,
    elementwise,
    indexed,
    kernel_graphs,
    products,
    rearranging,
    reductions,
    resizing,
    steps,
    views,
)
