"""Operands of functions of one tensor."""

from __future__ import annotations

from typing import Any

from ....core.dtype import DType, float32
from ..utils.fuzzer import FuzzedParameter, FuzzedTensor, Fuzzer, ParameterAlias

__all__ = ["UnaryOpFuzzer"]

MIN_SIZE, MAX_SIZE = 16, 16 * 1024**2  # elements of a dim
_STEPS = {1: 0.8, 2: 0.06, 4: 0.06, 8: 0.04, 16: 0.04}


def dims_and_sizes() -> list[Any]:
    """The parameters "dim" and, for each dim, "k0" to "k2" (sizes, many of them powers of two) and "random_value"."""
    powers = {2**n: 1 / 21 for n in range(4, 25)}
    return [
        FuzzedParameter("dim", distribution={1: 0.3, 2: 0.4, 3: 0.3}, strict=True),
        *(FuzzedParameter(f"k_any_{n}", MIN_SIZE, MAX_SIZE, "loguniform") for n in range(3)),
        *(FuzzedParameter(f"k_pow2_{n}", distribution=powers) for n in range(3)),
        *(
            FuzzedParameter(
                f"k{n}",
                distribution={ParameterAlias(f"k_any_{n}"): 0.8, ParameterAlias(f"k_pow2_{n}"): 0.2},
                strict=True,
            )
            for n in range(3)
        ),
        FuzzedParameter("random_value", 0, 2**32 - 1, "uniform"),
    ]


def steps(name: str) -> list[FuzzedParameter]:
    """Return the parameters of the steps of an operand: "x_step_0" and so on, most of them 1."""
    return [FuzzedParameter(f"{name}_step_{n}", distribution=_STEPS) for n in range(3)]


def operand(name: str, size: tuple[Any, ...], dtype: DType, cuda: bool) -> FuzzedTensor:
    """Return an operand with at most 32 million elements."""
    return FuzzedTensor(
        name,
        size,
        steps=tuple(f"{name}_step_{n}" for n in range(3)),
        probability_contiguous=0.75,
        min_elements=4 * 1024,
        max_elements=32 * 1024**2,
        max_allocation_bytes=2 * 1024**3,
        dim_parameter="dim",
        dtype=dtype,
        cuda=cuda,
    )


class UnaryOpFuzzer(Fuzzer):
    """Makes an operand "x" of one to three dims.

    >>> for tensors, facts, parameters in UnaryOpFuzzer(seed=0).take(1):
    ...     tensors["x"].dim() == parameters["dim"]
    True
    """

    def __init__(self, seed: int | None, dtype: DType = float32, cuda: bool = False) -> None:
        tensors = [operand("x", ("k0", "k1", "k2"), dtype, cuda)]
        super().__init__([dims_and_sizes(), steps("x")], tensors, seed=seed)
