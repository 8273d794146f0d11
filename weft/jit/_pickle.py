"""The functions that pickles of TorchScript call to make lists."""

from __future__ import annotations

from typing import Any


def restore_type_tag(value: Any, type_str: str) -> Any:
    """`value`: its type is for TorchScript."""
    return value


def build_intlist(data: list[int]) -> list[int]:
    """`data`."""
    return data


def build_doublelist(data: list[float]) -> list[float]:
    """`data`."""
    return data


def build_boollist(data: list[bool]) -> list[bool]:
    """`data`."""
    return data


def build_tensorlist(data: list[Any]) -> list[Any]:
    """`data`."""
    return data


def build_tensor_from_id(data: Any) -> Any:
    """The number of a tensor that is kept elsewhere, None if it is none."""
    return data if isinstance(data, int) else None
