"""Recordings by a driver whose functions are NVIDIA's: its graphs."""

from __future__ import annotations

import ctypes
from typing import Any

from .nvidia import Driver

# Of cuStreamCreate: work on the default stream neither waits for the new stream nor ends its capture, and the other way round.
NON_BLOCKING = 1
# Of cuStreamBeginCapture: the thread may load kernels and allocate memory meanwhile. `Runtime.refuse_recording` refuses what may not be done.
_RELAXED = 2


class Recorder:
    """A stream whose work the driver notes instead of doing it."""

    def __init__(self, driver: Driver):
        self._driver = driver
        self.stream = ctypes.c_void_p()
        driver.check(driver.cuStreamCreate(ctypes.byref(self.stream), NON_BLOCKING), "cuStreamCreate")
        driver.check(driver.cuStreamBeginCapture_v2(self.stream, _RELAXED), "cuStreamBeginCapture")

    def end(self) -> RunnableGraph:
        """What was noted."""
        graph = ctypes.c_void_p()
        code = self._driver.cuStreamEndCapture(self.stream, ctypes.byref(graph))
        self._driver.check(code, "cuStreamEndCapture")
        try:
            return RunnableGraph(self._driver, graph)
        finally:
            self._driver.cuGraphDestroy(graph)

    def __del__(self) -> None:
        self._driver.cuStreamDestroy_v2(self.stream)


class RunnableGraph:
    """Noted work that the driver can do, in the context of this thread."""

    def __init__(self, driver: Driver, graph: Any):
        self._driver = driver
        self._handle = ctypes.c_void_p()
        flags = ctypes.c_uint64()
        code = driver.cuGraphInstantiateWithFlags(ctypes.byref(self._handle), graph, flags)
        driver.check(code, "cuGraphInstantiate")

    def launch(self, queue: ctypes.c_void_p) -> None:
        """Let a queue do the work."""
        self._driver.check(self._driver.cuGraphLaunch(self._handle, queue), "cuGraphLaunch")

    def __del__(self) -> None:
        self._driver.cuGraphExecDestroy(self._handle)
