"""`torch.jit.annotations`: annotations that only TorchScript reads."""

from __future__ import annotations

from typing import Any

from ..compat.missing import module_getattr


class _BroadcastingList:
    """`BroadcastingList2[int]` annotates a list of ints that one int may stand for. Nothing reads it here."""

    def __getitem__(self, types: Any) -> None:
        return None

    def __call__(self, *args: Any) -> None:
        raise TypeError("BroadcastingList is only an annotation: write BroadcastingList2[int]")


for _k in range(1, 7):
    globals()[f"BroadcastingList{_k}"] = _BroadcastingList()

__getattr__ = module_getattr(__name__)
