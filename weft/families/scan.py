"""Running results along a dim: a reduction that returns its state after each element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..core.iteration import loop_dims
from ..core.recording import needs_recording, record
from ..core.size import shape
from ..core.spec import Spec, contiguous_spec
from ..core.tensor import Tensor, make, wrap_dim
from ..engine.kernel import Launch
from .monoid_op import MonoidOp


class _Plan(NamedTuple):
    results: tuple[Spec, ...]
    allocators: list[Callable]
    launch: Launch | None  # None: there is nothing to compute


class Scan(MonoidOp):
    """Running results; the row is written like that of a `Reduce`, and results have the shape of the input.

    States are combined strictly in order, so that `types(...).operands` decides how the results are rounded.
    """

    def _plan(self, spec: Spec, dim: int) -> _Plan:
        """Raises: IndexError if `dim` is out of range."""
        dim = wrap_dim(dim, len(spec.shape))
        types = self.types(spec.dtype, None)
        results = tuple(contiguous_spec(spec.shape, dtype, spec.device) for dtype in types.results)
        allocators = [each.device.backend.allocator(each.nbytes) for each in results]
        if not spec.numel or not spec.device.backend.has_memory:
            return _Plan(results, allocators, None)
        operands = (*results, spec)
        outer_dims = [k for k in range(len(spec.shape)) if k != dim]
        sizes, strides = loop_dims(
            shape(spec.shape[k] for k in outer_dims),
            tuple(tuple(each.byte_stride[k] for k in outer_dims) for each in operands),
        )
        scanned = [each.byte_stride[dim] if spec.shape else 0 for each in operands]
        launch = spec.device.backend.prepare_scan(
            self._monoid((spec,), types, 0),
            (spec.dtype,),
            (*sizes, spec.shape[dim] if spec.shape else 1),
            [(*row, step) for row, step in zip(strides, scanned, strict=True)],
        )
        return _Plan(results, allocators, launch)

    def run(self, input: Tensor, dim: int) -> Any:
        """The result, or a tuple of them, of scanning `input` along `dim`."""
        plan = self.plans[input.spec, dim]
        if len(plan.results) == 1:
            storage = plan.allocators[0]()
            result: Any = make(storage, 0, plan.results[0])
            if plan.launch is not None:
                entry, meta, count, _ = plan.launch
                entry(storage.ptr, input._storage.ptr + input._byte_offset, meta, count)
        else:
            result = tuple(
                [make(new(), 0, each) for new, each in zip(plan.allocators, plan.results, strict=True)]
            )
            if plan.launch is not None:
                addresses = [t._storage.ptr + t._byte_offset for t in (*result, input)]
                plan.launch.entry(*addresses, plan.launch.meta, plan.launch.count)
        if input._autograd is not None and needs_recording((input,)):
            return record(self, result, (input,), (dim,))
        return result
