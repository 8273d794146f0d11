"""The parts of a loader: collating, fetching, what a worker is."""

from . import collate, fetch, worker
from .process import PARENT_CHECK_INTERVAL as MP_STATUS_CHECK_INTERVAL

__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "fetch", "worker"]
