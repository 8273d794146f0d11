"""`torch.multiprocessing`: Python's multiprocessing, through which tensors go in shared memory.

The tensors that are sent stay where they are, in memory that both processes see from then on. The process that sends
must live until the other has received: one that ends waits for its children, and as a child a few seconds for others.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403

from weft.core.names import name_public
from weft.interop import sharing

from .spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)
from .strategies import get_all_sharing_strategies, get_sharing_strategy, set_sharing_strategy

__all__ = [  # noqa: PLE0604
    *multiprocessing.__all__,
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

name_public(__name__, "multiprocessing.strategies")
