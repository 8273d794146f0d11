"""Operands of functions of two tensors."""

from __future__ import annotations

from ....core.dtype import DType, float32
from ..utils.fuzzer import FuzzedParameter, Fuzzer, ParameterAlias
from .unary import dims_and_sizes, operand, steps

__all__ = ["BinaryOpFuzzer"]


class BinaryOpFuzzer(Fuzzer):
    """Makes two operands "x" and "y" of one to three dims that broadcast: sizes of "y" are those of "x", or 1.

    >>> for tensors, facts, parameters in BinaryOpFuzzer(seed=0).take(1):
    ...     (tensors["x"] + tensors["y"]).shape == tensors["x"].shape
    True
    """

    def __init__(self, seed: int | None, dtype: DType = float32, cuda: bool = False) -> None:
        sizes = [
            FuzzedParameter(f"y_k{n}", distribution={ParameterAlias(f"k{n}"): 0.8, 1: 0.2}, strict=True)
            for n in range(3)
        ]
        tensors = [
            operand("x", ("k0", "k1", "k2"), dtype, cuda),
            operand("y", ("y_k0", "y_k1", "y_k2"), dtype, cuda),
        ]
        super().__init__([dims_and_sizes(), sizes, steps("x"), steps("y")], tensors, seed=seed)
