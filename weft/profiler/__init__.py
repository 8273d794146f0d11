"""`torch.profiler`: the wall time of operators and of ranges with names, over all of a program or over some of its steps."""

from __future__ import annotations

import enum
from typing import Any

from ..autograd.profiler import KinetoStepTracker as _Steps
from ..autograd.profiler import record_function
from ..autograd.profiler_util import DeviceType
from ..autograd.questions import kineto_available
from ..compat.missing import module_getattr


class ProfilerActivity(enum.Enum):
    """What is observed: the processor, or a device."""

    CPU = 0
    XPU = 1
    CUDA = 2
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5


from .profiler import (  # noqa: E402 (it needs ProfilerActivity)
    ExecutionTraceObserver,
    ProfilerAction,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "DeviceType", "ExecutionTraceObserver", "ProfilerAction", "ProfilerActivity", "kineto_available",
    "profile", "record_function", "schedule", "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip


def _optimizer_post_hook(optimizer: Any, args: tuple, kwargs: dict) -> None:
    _Steps.increment_step("Optimizer")


__getattr__ = module_getattr(__name__, ("itt", "profiler"))
