"""Random sizes and tensors to measure with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ....core.dtype import DType, float32

__all__ = ["FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias"]

_TRIES = 1000  # of one set of parameters before the constraints count as impossible


class ParameterAlias:
    """In a custom distribution: the value of another parameter."""

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedParameter:
    """A random number: "uniform" or "loguniform" between two bounds, or one of the keys of a dict by its weight.

    Floats if a bound is a float, else integers.
    """

    def __init__(
        self,
        name: str,
        minval: float | None = None,
        maxval: float | None = None,
        distribution: str | dict[Any, float] | None = None,
        strict: bool = False,
    ) -> None:
        self._name, self._minval, self._maxval, self.strict = name, minval, maxval, strict
        if isinstance(distribution, str) and distribution not in ("loguniform", "uniform"):
            raise AssertionError(f"Unknown distribution: {distribution}")
        if distribution is None:
            raise AssertionError(f"{name}: a distribution is required")
        self._distribution = self._normalized(distribution)

    def _normalized(self, distribution: str | dict[Any, float]) -> Any:
        if isinstance(distribution, str):
            if self._minval is None or self._maxval is None:
                raise AssertionError(f"{self._name}: a {distribution} distribution needs minval and maxval")
            return distribution
        total = sum(distribution.values())
        if any(weight < 0 for weight in distribution.values()) or abs(total - 1) > 1e-5 * total:
            raise AssertionError(f"{self._name}: the weights must not be negative and must sum to 1")
        return {value: weight / total for value, weight in distribution.items()}

    @property
    def name(self) -> str:
        """Its name, which sizes refer to."""
        return self._name

    def sample(self, state: np.random.RandomState) -> Any:
        """Return a value."""
        if isinstance(self._distribution, dict):
            values, weights = zip(*self._distribution.items(), strict=True)
            return values[int(state.choice(len(values), p=weights))]
        low: Any = self._minval
        high: Any = self._maxval
        if self._distribution == "loguniform":
            found = 2 ** state.uniform(math.log2(low), math.log2(high))
            return found if isinstance(low, float) or isinstance(high, float) else int(np.round(found))
        if isinstance(low, int) and isinstance(high, int):
            return int(state.randint(low, high + 1))
        return state.uniform(low, high)


class FuzzedTensor:
    """A tensor whose sizes are numbers or names of parameters. It may be permuted and strided.

    Constraints: the number of elements, and of bytes with what the strides leave out.
    """

    def __init__(
        self,
        name: str,
        size: tuple[str | int, ...],
        steps: tuple[str | int, ...] | None = None,
        probability_contiguous: float = 0.5,
        min_elements: int | None = None,
        max_elements: int | None = None,
        max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None,
        roll_parameter: str | None = None,
        dtype: DType = float32,
        cuda: bool = False,
        tensor_constructor: Callable | None = None,
    ) -> None:
        self._name, self._size, self._steps = name, size, steps
        self._probability_contiguous = probability_contiguous
        self._min_elements, self._max_elements = min_elements, max_elements
        self._max_allocation_bytes = max_allocation_bytes
        self._dim_parameter, self._roll_parameter = dim_parameter, roll_parameter
        self._dtype, self._cuda = dtype, cuda
        self._tensor_constructor = tensor_constructor

    @property
    def name(self) -> str:
        """Its name among the operands."""
        return self._name

    @staticmethod
    def default_tensor_constructor(size: Sequence[int], dtype: DType, **kwargs: Any) -> Any:
        """Random numbers: normal ones, or integers below 127."""
        from .... import rand, randint

        if dtype.is_floating_point or dtype.is_complex:
            return rand(size=size, dtype=dtype, device="cpu")
        return randint(0, 127, size=size, dtype=dtype, device="cpu")

    def _sizes(self, params: dict[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Return the sizes, the steps, and the sizes of the memory that steps go through."""
        dim = len(self._size) if self._dim_parameter is None else params[self._dim_parameter]
        steps_given: Any = self._steps or ()
        sizes = tuple(params[each] if isinstance(each, str) else each for each in self._size)[:dim]
        steps = tuple(params[each] if isinstance(each, str) else each for each in steps_given)[:dim]
        steps += (1,) * (dim - len(steps))
        if self._roll_parameter is not None:
            turn = params[self._roll_parameter] % max(dim, 1)
            sizes, steps = sizes[-turn:] + sizes[:-turn], steps[-turn:] + steps[:-turn]
        memory = tuple(size * step for size, step in zip(sizes, steps, strict=True))
        return sizes, steps, memory

    def satisfies_constraints(self, params: dict[str, Any]) -> bool:
        """Return whether a tensor of these parameters has an allowed size."""
        sizes, _, memory = self._sizes(params)
        count, held = math.prod(sizes), math.prod(memory) * self._dtype.itemsize
        return (
            (self._min_elements is None or count >= self._min_elements)
            and (self._max_elements is None or count <= self._max_elements)
            and (self._max_allocation_bytes is None or held <= self._max_allocation_bytes)
        )

    def _make_tensor(
        self, params: dict[str, Any], state: np.random.RandomState
    ) -> tuple[Any, dict[str, Any]]:
        sizes, steps, memory = self._sizes(params)
        make = self._tensor_constructor or self.default_tensor_constructor
        order = np.arange(len(sizes))
        dense = state.rand() <= self._probability_contiguous
        if not dense:
            while len(order) > 1 and all(order == np.arange(len(order))):
                order = state.permutation(order)
        raw = make(tuple(memory[each] for each in order), self._dtype, **params)
        inverse = tuple(int(each) for each in np.argsort(order))
        tensor = raw.permute(inverse) if len(inverse) else raw
        tensor = tensor[tuple(slice(0, None, step) for step in steps)] if steps else tensor
        facts = {
            "numel": int(tensor.numel()),
            "order": order,
            "steps": steps,
            "is_contiguous": tensor.is_contiguous(),
            "dtype": str(self._dtype),
        }
        return tensor, facts


class Fuzzer:
    """Draws parameters until the tensors satisfy their constraints, then makes the tensors.

    >>> fuzzer = Fuzzer([FuzzedParameter("n", 2, 5, "uniform")], [FuzzedTensor("x", ("n", 3))], seed=0)
    >>> for tensors, facts, parameters in fuzzer.take(1):
    ...     tensors["x"].shape[1], 2 <= parameters["n"] <= 5
    (3, True)
    """

    def __init__(
        self,
        parameters: list[Any],
        tensors: list[Any],
        constraints: list[Callable] | None = None,
        seed: int | None = None,
    ) -> None:
        self._seed = (
            int(np.random.RandomState().randint(0, 2**32 - 1, dtype=np.int64)) if seed is None else seed
        )
        self._parameters = self._unpack(parameters, FuzzedParameter)
        self._tensors = self._unpack(tensors, FuzzedTensor)
        self._constraints = constraints or []
        names = [each.name for each in (*self._parameters, *self._tensors)]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"Parameter and tensor names must be unique, got {sorted(twice)} more than once")
        self._rejections = self._total = 0

    @staticmethod
    def _unpack(values: list[Any], cls: type) -> list[Any]:
        return [
            each
            for value in values
            for each in (value if isinstance(value, (list, tuple)) else [value])
            if isinstance(each, cls)
        ]

    @property
    def rejection_rate(self) -> float:
        """Return which part of the parameters that were drawn did not satisfy the constraints."""
        return self._rejections / self._total if self._total else 0.0

    def take(self, n: int) -> Iterator[tuple[dict, dict, dict]]:
        """n times: the tensors by name, facts about each, the parameters."""
        state = np.random.RandomState(self._seed)
        for _ in range(n):
            parameters = self._drawn(state)
            tensors, facts = {}, {}
            for each in self._tensors:
                tensor, found = each._make_tensor(parameters, state)
                if tensor is not None:
                    tensors[each.name], facts[each.name] = tensor, found
            yield tensors, facts, parameters

    def _drawn(self, state: np.random.RandomState) -> dict[str, Any]:
        for _ in range(_TRIES):
            candidate = {each.name: each.sample(state) for each in self._parameters}
            found = {name: self._resolved(candidate, value) for name, value in candidate.items()}
            self._total += 1
            fits = all(check(found) for check in self._constraints) and all(
                each.satisfies_constraints(found) for each in self._tensors
            )
            if fits:
                return found
            self._rejections += 1
        raise ValueError(f"Failed to generate a set of valid parameters in {_TRIES} tries")

    @staticmethod
    def _resolved(params: dict[str, Any], value: Any) -> Any:
        while isinstance(value, ParameterAlias):
            value = params[value.alias_to]
        return value
