"""`torch._dynamo.utils`: questions that libraries ask before they compile."""

from __future__ import annotations

from typing import Any


def is_compile_supported(device_type: Any) -> bool:
    """Whether `torch.compile` works for a device: on the CPU, where it gives functions back as they are."""
    return str(device_type).partition(":")[0] == "cpu"
