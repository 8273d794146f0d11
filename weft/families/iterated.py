"""Elements that take a loop each (`engine/iterations.py`), computed by a kernel of the device."""

from __future__ import annotations

from ..core.device import device
from ..core.dtype import float64
from ..core.generator import Generator
from ..core.iteration import broadcast_shapes
from ..core.spec import contiguous_spec
from ..core.tensor import Tensor, address, empty
from ..engine.iterations import Cases
from .indexed import bare
from .map import COPY


def has_iterations(where: device) -> bool:
    """Whether the device has such a kernel."""
    return "iterations" in where.backend.extras


def iterated(cases: Cases, first: Tensor, second: Tensor, generator: Generator | None = None) -> Tensor:
    """An element of float64 for each pair of parameters, whose shapes broadcast. generator: None if no case draws."""
    where = first.spec.device
    sizes = broadcast_shapes("iterated", first.spec.shape, second.spec.shape)
    spec = contiguous_spec(sizes, float64, where)
    result, *operands = (
        empty(spec),
        *(COPY.write(empty(spec), bare(each).expand(sizes)) for each in (first, second)),
    )
    if spec.numel:
        addresses = address(result), *map(address, operands)
        where.backend.extras["iterations"](cases, addresses, spec.numel, generator)
    return result
