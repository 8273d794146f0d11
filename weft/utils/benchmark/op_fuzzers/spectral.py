"""Operands of Fourier transforms."""

from __future__ import annotations

from ....core.dtype import DType, float64
from ..utils.fuzzer import FuzzedParameter, FuzzedTensor, Fuzzer, ParameterAlias

__all__ = ["SpectralOpFuzzer"]


def _regular_sizes(limit: int) -> list[int]:
    """Return the numbers up to `limit` without prime factors beyond 5, for which Fourier transforms are fastest."""
    found = []
    for n in range(2, limit + 1):
        rest = n
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            found.append(n)
    return found


class SpectralOpFuzzer(Fuzzer):
    """Makes an operand "x" of one to three dims, whose sizes are powers of two, have small prime factors, or neither."""

    def __init__(
        self,
        *,
        seed: int,
        dtype: DType = float64,
        cuda: bool = False,
        probability_regular: float = 1.0,
    ) -> None:
        sizes = _regular_sizes(4096)
        parameters = [
            FuzzedParameter("ndim", distribution={1: 0.3, 2: 0.4, 3: 0.3}, strict=True),
            *(FuzzedParameter(f"k_any_{n}", 2, 4096, "loguniform") for n in range(3)),
            *(
                FuzzedParameter(f"k_regular_{n}", distribution=dict.fromkeys(sizes, 1 / len(sizes)))
                for n in range(3)
            ),
            *(
                FuzzedParameter(
                    f"k{n}",
                    distribution={
                        ParameterAlias(f"k_regular_{n}"): probability_regular,
                        ParameterAlias(f"k_any_{n}"): 1 - probability_regular,
                    },
                    strict=True,
                )
                for n in range(3)
            ),
            *(FuzzedParameter(f"step_{n}", distribution={1: 0.9, 2: 0.1}) for n in range(3)),
        ]
        tensor = FuzzedTensor(
            "x",
            ("k0", "k1", "k2"),
            steps=("step_0", "step_1", "step_2"),
            probability_contiguous=0.75,
            min_elements=4,
            max_elements=8 * 1024**2,
            max_allocation_bytes=2 * 1024**3,
            dim_parameter="ndim",
            dtype=dtype,
            cuda=cuda,
        )
        super().__init__(parameters, [tensor], seed=seed)
