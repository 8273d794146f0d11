"""The parts of a loader: collating, fetching, what a worker is."""

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds between two looks of a worker whether its parent is alive

from . import collate, fetch, worker  # noqa: E402  (process.py, which worker imports late, needs the number)

__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "fetch", "worker"]
