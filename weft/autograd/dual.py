"""Tensors with a tangent: what forward mode keeps beside a tensor that requires no grad."""

from __future__ import annotations

from typing import Any


class Dual:
    """In a tensor's `_autograd`: it has a tangent, and needs no cotangent."""

    __slots__ = ("tangent",)

    def __init__(self, tangent: Any):
        self.tangent = tangent
