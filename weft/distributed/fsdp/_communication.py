"""How the parameters of a module are gathered and their gradients added up: what the setters of FSDPModule change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.tensor import Tensor
from ...ops.creation.creation import empty
from .. import _collectives
from .._reduce_op import ReduceOp

__all__ = ["AllGather", "Comm", "ReduceScatter"]


class Comm(ABC):
    """A collective that a program puts in the place of FSDP's own."""

    @abstractmethod
    def allocate(self, size: Sequence[int], *, dtype: Any, device: Any) -> Tensor:
        """The memory of an output."""


class AllGather(Comm):
    """Fills `output_tensor` with the `input_tensor` of all ranks."""

    @abstractmethod
    def __call__(
        self, output_tensor: Tensor, input_tensor: Tensor, group: Any, async_op: bool = False
    ) -> Any: ...


class ReduceScatter(Comm):
    """Reduces the `input_tensor` of all ranks, and fills `output_tensor` with the part of this rank."""

    @abstractmethod
    def __call__(
        self, output_tensor: Tensor, input_tensor: Tensor, group: Any, op: Any, async_op: bool = False
    ) -> Any: ...


class DefaultAllGather(AllGather):
    """The group's own collective."""

    def allocate(self, size: Sequence[int], *, dtype: Any, device: Any) -> Tensor:
        return empty(tuple(size), dtype=dtype, device=device)

    def __call__(
        self, output_tensor: Tensor, input_tensor: Tensor, group: Any, async_op: bool = False
    ) -> Any:
        return _collectives.all_gather_single(output_tensor, input_tensor, group=group, async_op=async_op)


class DefaultReduceScatter(ReduceScatter):
    """The group's own collective."""

    def allocate(self, size: Sequence[int], *, dtype: Any, device: Any) -> Tensor:
        return empty(tuple(size), dtype=dtype, device=device)

    def __call__(
        self, output_tensor: Tensor, input_tensor: Tensor, group: Any, op: Any, async_op: bool = False
    ) -> Any:
        return _collectives.reduce_scatter_single(
            output_tensor, input_tensor, op=op, group=group, async_op=async_op
        )


class HookedReduceScatter(ReduceScatter):
    """Lets `hook(state, input, output)` reduce, as FullyShardedDataParallel calls it."""

    def __init__(self, hook: Callable, state: Any) -> None:
        self.hook, self.state = hook, state

    allocate = DefaultReduceScatter.allocate

    def __call__(
        self, output_tensor: Tensor, input_tensor: Tensor, group: Any, op: Any, async_op: bool = False
    ) -> None:
        self.hook(self.state, input_tensor, output_tensor)


@dataclass
class Communication:
    """The settings of one module."""

    all_gather: AllGather = field(default_factory=DefaultAllGather)
    reduce_scatter: ReduceScatter = field(default_factory=DefaultReduceScatter)
    all_reduce: Callable[..., Any] = (
        _collectives.all_reduce
    )  # of gradients that all processes have as a whole
    divide_factor: float | None = None  # by which sums of gradients are divided; None: the number of ranks
    sums_only: bool = False  # divide sums afterwards, instead of collectives that average
    all_reduces: bool = True  # whether groups that have the same parts add their gradients up
    hook: Callable[[Tensor], None] | None = None  # gets the gradients of this rank, in a row
    in_flight: int = 1  # modules whose gradients are added up at once while the backward pass goes on
    # By parameters, gradients of passes that groups with the same parts have not added up yet.
    partial: dict[Any, Tensor] = field(default_factory=dict)

    def use_hook(self, hook: Callable, state: Any) -> None:
        """Let `hook` average gradients."""
        self.reduce_scatter = HookedReduceScatter(hook, state)
        self.all_reduce = lambda row, op, group, async_op: hook(state, row)

    @property
    def op(self) -> Any:
        return ReduceOp.AVG if self.divide_factor is None and not self.sums_only else ReduceOp.SUM

    def finish(self, row: Tensor, ranks: int) -> None:
        """Give the gradients of this rank to the hook, and divide what was only summed up."""
        if self.hook is not None:
            self.hook(row)
        if self.op is ReduceOp.SUM:
            row.div_(self.divide_factor or ranks)
