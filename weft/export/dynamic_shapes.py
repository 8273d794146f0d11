"""Which dimensions of the inputs of an exported program may change from call to call."""

from __future__ import annotations

import dataclasses
from collections import UserDict
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from ..core.pytree import tree_map_with_path
from ..core.tensor import Tensor

__all__ = [
    "AdditionalInputs", "Constraint", "Dim", "ShapesCollection", "dims",
    "refine_dynamic_shapes_from_suggested_fixes",
]  # fmt: skip

UNBOUNDED = 2**63 - 1


class _DimHintType(Enum):
    AUTO = auto()
    STATIC = auto()
    DYNAMIC = auto()


@dataclasses.dataclass
class _DimHint:
    """What is known of a dimension without a name. Calling it gives it bounds: `Dim.DYNAMIC(min=4)`."""

    type: _DimHintType
    min: int | None = None
    max: int | None = None
    _factory: bool = True

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:
        if not self._factory:
            raise TypeError(f"'{type(self)}' object is not callable")
        return _DimHint(self.type, min, max, _factory=False)


class Dim:
    """A dimension with a name: all dimensions with the same Dim have the same size, between `min` and `max`.

    Arithmetic gives derived dimensions, as `2 * batch + 1`.

    >>> import weft as torch
    >>> batch = torch.export.Dim("batch", min=1, max=64)
    >>> (2 * batch + 1).evaluate(3)
    7
    """

    AUTO = _DimHint(_DimHintType.AUTO)
    DYNAMIC = _DimHint(_DimHintType.DYNAMIC)
    STATIC = _DimHint(_DimHintType.STATIC)

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None):
        low, high = 0 if min is None else min, UNBOUNDED if max is None else max
        if high <= low:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__ = name
        self.min, self.max = low, high
        self.root: Dim = self
        self.evaluate: Callable[[int], int] = lambda size: size

    def _derived(self, name: str, function: Callable[[int], int]) -> Dim:
        derived = object.__new__(Dim)
        outer = self.evaluate
        derived.__name__, derived.root = name, self.root
        derived.evaluate = lambda size: function(outer(size))
        derived.min, derived.max = (
            function(self.min),
            function(self.max) if self.max < UNBOUNDED else UNBOUNDED,
        )
        return derived

    def __add__(self, other: int) -> Dim:
        self._check(other, "+")
        return self._derived(f"{self.__name__} + {other}", lambda size: size + other)

    def __radd__(self, other: int) -> Dim:
        return self + other

    def __sub__(self, other: int) -> Dim:
        self._check(other, "-")
        return self._derived(f"{self.__name__} - {other}", lambda size: size - other)

    def __rsub__(self, other: int) -> Dim:
        raise NotImplementedError(
            f"Attempted to negate {self.__name__}. Please use an increasing linear operation with integer coefficients"
        )

    def __mul__(self, other: int) -> Dim:
        self._check(other, "*")
        if other <= 0:
            raise NotImplementedError(
                f"Attempted to multiply {other} with {self.__name__}, where an integer > 0 was expected"
            )
        return self._derived(f"{other}*{self.__name__}", lambda size: other * size)

    def __rmul__(self, other: int) -> Dim:
        return self * other

    def _check(self, other: Any, sign: str) -> None:
        if type(other) is not int:
            raise NotImplementedError(f"Attempted {self.__name__} {sign} {other}: an integer was expected")

    def __repr__(self) -> str:
        return f"Dim('{self.__name__}', min={self.min}" + (
            ")" if self.max == UNBOUNDED else f", max={self.max})"
        )


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several dimensions of the same bounds: `height, width = dims("height", "width")`."""
    return tuple(Dim(name, min=min, max=max) for name in names)


@dataclasses.dataclass
class _Constraint:
    """A dynamic dimension of an input, with bounds."""

    t_id: int
    dim: int
    name: str
    constraint_range: Any


@dataclasses.dataclass
class _DerivedConstraint:
    """A dimension of an input that is computed from another: `2 * batch`."""

    t_id: int
    dim: int
    name: str
    constraint_range: Any
    root: Any
    fn: Callable


@dataclasses.dataclass
class _RelaxedConstraint:
    """A dimension of an input that has a hint instead of a name."""

    t_id: int
    dim: int


Constraint = _Constraint | _DerivedConstraint | _RelaxedConstraint


class ShapesCollection(UserDict):
    """Dynamic dimensions by the tensors themselves: `shapes[tensor] = {0: dim}`."""

    def __init__(self) -> None:
        super().__init__()
        self._tensors: list[Tensor] = []  # keeps the ids valid

    def __setitem__(self, t: Any, shape: Any) -> None:
        if not isinstance(t, Tensor):
            raise AssertionError(f"Cannot assign shape to non-tensor type {type(t)}")
        self._tensors.append(t)
        self.data[id(t)] = shape

    def __getitem__(self, t: Any) -> Any:
        return self.data.setdefault(id(t), {})

    def dynamic_shapes(self, m: Any, args: tuple, kwargs: dict[str, Any] | None = None) -> Any:
        """The `dynamic_shapes` of `export` for these inputs."""
        import inspect

        bound = inspect.signature(m.forward).bind(*args, **(kwargs or {})).arguments
        return tree_map_with_path(lambda _, leaf: self.data.get(id(leaf)), dict(bound))


class AdditionalInputs:
    """Further example inputs: dimensions in which they differ are dynamic."""

    def __init__(self) -> None:
        self._examples: list[tuple[tuple, dict[str, Any]]] = []

    def add(self, args: tuple, kwargs: dict[str, Any] | None = None) -> None:
        """Add inputs."""
        if not isinstance(args, tuple):
            raise AssertionError(f"args should be a tuple, got {type(args)}")
        self._examples.append((args, kwargs or {}))

    def dynamic_shapes(self, m: Any, args: tuple, kwargs: dict[str, Any] | None = None) -> Any:
        """The `dynamic_shapes` of `export` for all inputs together."""
        import inspect

        from ..core.pytree import tree_map

        def arguments(args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
            return dict(inspect.signature(m.forward).bind(*args, **kwargs).arguments)

        def common(first: Any, *others: Any) -> Any:
            if not isinstance(first, Tensor):
                return None
            return [
                None if all(each.shape[dim] == size for each in others) else Dim.DYNAMIC
                for dim, size in enumerate(first.shape)
            ]

        return tree_map(common, arguments(args, kwargs or {}), *(arguments(*each) for each in self._examples))

    def verify(self, ep: Any) -> None:
        """Run the exported program on all inputs."""
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **kwargs)


def refine_dynamic_shapes_from_suggested_fixes(msg: str, dynamic_shapes: Any) -> Any:
    """The dynamic shapes with the fixes that the message of an error of PyTorch's suggests: `d = 3`, `d = Dim("d", max=9)`."""
    import re

    fixes: dict[str, Any] = {}
    for line in msg.partition("Suggested fixes:")[2].strip().splitlines():
        match = re.match(r"\s*(\w+) = (.+)", line)
        if match:
            name, text = match.groups()
            bounds = {key: int(value) for key, value in re.findall(r"(min|max)=(\d+)", text)}
            fixes[name] = Dim(name, **bounds) if text.startswith("Dim") else int(text)

    def fixed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: fixed(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(fixed(each) for each in value)
        return fixes.get(value.__name__, value) if isinstance(value, Dim) else value

    return fixed(dynamic_shapes)
