"""Operators that take functions: `cond`, `while_loop`, `map`, `scan`, `associative_scan`. They run at once, in Python."""

from .associative_scan import associative_scan, associative_scan_op
from .cond import cond, cond_op
from .map import map, map_impl  # noqa: A004 (PyTorch's name)
from .out_dtype import out_dtype
from .scan import scan, scan_op
from .strict_mode import strict_mode
from .while_loop import while_loop, while_loop_op
from .wrap import wrap, wrap_with_autocast, wrap_with_set_grad_enabled

__all__ = [
    "associative_scan", "cond", "map", "out_dtype", "scan", "strict_mode", "while_loop", "wrap_with_autocast",
    "wrap_with_set_grad_enabled",
]  # fmt: skip
