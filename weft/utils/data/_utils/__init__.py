"""The parts of a loader: collating, fetching, what a worker is."""

from . import collate, fetch, worker

__all__ = ["collate", "fetch", "worker"]
