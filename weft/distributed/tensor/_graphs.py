"""Graphs of several kernels: `linear` as a product, softmax on whole rows, padding beside cut dims, all others kernel by kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...batching.kernel_graphs import OnSamples
from ...core.recording import unrecorded
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor, make
from ...families.kernel_graph import KernelGraph
from ...families.product import Product
from ...ops.assembly import padding
from ...ops.nn import linear
from ...ops.reductions import softmax
from ._rules import (
    all_distributed,
    bare,
    everywhere,
    local_as,
    mesh_of,
    placement_rule,
    recorded,
    rule_for,
    tensors_in,
    whole,
)
from ._storage import NoPlacementRule, ShardedStorage, is_distributed, wrap
from ._ways import Way, by_ways, cheapest, ways_beside
from .placement_types import Partial, Placement, Replicate, Shard


class _OnParts(OnSamples):
    """In place of a GraphBuilder: carries out each kernel as an op, on DTensors."""

    @staticmethod
    def new(spec: Spec) -> Tensor:
        """A tensor that lies nowhere yet: the first write gives it the placements of what is written."""
        storage: Any = ShardedStorage.__new__(ShardedStorage)
        storage.__init__(None, spec, None, ())
        return make(storage, 0, spec)

    @staticmethod
    def matmul(op: Product, a: Tensor, b: Tensor) -> Tensor:
        return op(a, b)

    @staticmethod
    def launch(launch: Any, *operands: Tensor) -> None:
        raise NoPlacementRule("a kernel of its own")

    def empty(self, dtype: Any) -> Tensor:
        first = next(each for each in self.inputs if each is not None)
        return whole(first, mesh_of((first,))).new_empty(0, dtype=dtype)


@placement_rule(KernelGraph)
def _kernel_graph(op: KernelGraph, args: tuple, named: dict[str, Any]) -> Any:
    inputs = args[0]
    static = args[1] if len(args) > 1 else named.get("static", ())
    numbers = args[2] if len(args) > 2 else named.get("numbers", ())
    mesh = mesh_of(inputs)
    distributed = [each for each in tensors_in(inputs) if is_distributed(each)]
    if all(each._storage.placements == everywhere(mesh) for each in distributed):  # type: ignore[attr-defined]
        return recorded(op, _on_whole(op, inputs, static, numbers, mesh), inputs, (*static, *numbers))
    try:
        if op.derivative is None:
            return _by_kernels(op, inputs, static, numbers)
        with unrecorded():
            found = _by_kernels(op, [bare(each) for each in inputs], static, numbers)
    except NoPlacementRule:
        found = _on_whole(op, inputs, static, numbers, mesh)
    return recorded(op, found, inputs, (*static, *numbers))


def _by_kernels(op: KernelGraph, inputs: Sequence[Any], static: tuple, numbers: tuple) -> Any:
    found = op.build(_OnParts(inputs, numbers), *static)
    return found[0] if len(found) == 1 else tuple(found)


def _on_whole(op: KernelGraph, inputs: Sequence[Any], static: tuple, numbers: tuple, mesh: Any) -> Any:
    with unrecorded():
        found = op(tuple([whole(each, mesh) for each in inputs]), static, numbers)
    return all_distributed(found, mesh)


# ---- Softmax and padding -----------------------------------------------------------------------------------------------


@rule_for(softmax._SOFTMAX, softmax._LOG_SOFTMAX, softmax._SOFTMAX_BACKWARD, softmax._LOG_SOFTMAX_BACKWARD)
def _softmax(op: KernelGraph, args: tuple, named: dict[str, Any]) -> Any:
    inputs, (dim,) = args
    mesh, spec = mesh_of(inputs), inputs[0].spec
    row = dim % max(len(spec.shape), 1)
    lead = next(each for each in inputs if is_distributed(each))
    if any(isinstance(each, Shard) and each.dim == row for each in lead._storage.placements):
        return _kernel_graph(op, args, named)
    ways = [Way((cut,) * len(inputs), cut) for (cut,), _ in ways_beside((row,), spec, len(spec.shape))]
    found = by_ways(ways, inputs, mesh, lambda *own: op(own, (dim,)))
    return recorded(op, found, inputs, (dim,))


@rule_for(*padding._CONSTANT.values())
def _pad(op: KernelGraph, args: tuple, named: dict[str, Any]) -> Any:
    (input,), (widths,), numbers = args
    ndim = len(input.spec.shape)
    padded = [ndim - 1 - place // 2 for place, width in enumerate(widths) if width]
    ways = ways_beside(padded, input.spec, ndim)
    found = by_ways(ways, (input,), mesh_of((input,)), lambda own: op((own,), (widths,), numbers))
    return recorded(op, found, (input,), (widths, *numbers))


# ---- Linear -----------------------------------------------------------------------------------------------------------


def _ways(input: Spec, bias: bool) -> Iterator[Way]:
    """The ways for (bias,) input, weight."""
    whole_of, last = Replicate(), len(input.shape) - 1

    def way(of_bias: Placement, of_input: Placement, of_weight: Placement, result: Placement) -> Way:
        own = (of_input, of_weight)
        return Way((of_bias, *own) if bias else own, result)

    yield way(whole_of, whole_of, whole_of, whole_of)
    for dim in range(last):
        yield way(whole_of, Shard(dim), whole_of, Shard(dim))
    yield way(Shard(0), whole_of, Shard(0), Shard(last))
    yield way(Partial(), Shard(last), Shard(1), Partial())
    yield way(Partial(), Partial(), whole_of, Partial())


@rule_for(linear._LINEAR, linear._LINEAR_WITH_BIAS)
def _linear(op: KernelGraph, args: tuple, named: dict[str, Any]) -> Any:
    inputs = args[0]
    *bias, input, weight = inputs
    mesh = mesh_of(inputs)
    if bias and len(bias[0].spec.shape) != 1:
        return _kernel_graph(op, args, named)
    nbytes = input.spec.nbytes // max(weight.spec.shape[1], 1) * weight.spec.shape[0]  # of the result
    wanted, places = cheapest(_ways(input.spec, bool(bias)), inputs, nbytes, mesh)
    with unrecorded():
        found = op(tuple([local_as(each, mesh, own) for each, own in zip(inputs, wanted, strict=True)]))
    sizes = (*input.spec.shape[:-1], weight.spec.shape[0])
    result = contiguous_spec(sizes, found.spec.dtype, input.spec.device)
    return recorded(op, wrap(found, result, mesh, places), inputs)
