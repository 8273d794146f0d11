"""Elementwise ops: batches broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.batched import Level, physical, resumed, wrap
from ..core.grad_mode import mode
from ..core.iteration import broadcast_shapes
from ..core.promotion import common_dtype
from ..core.recording import tape
from ..core.tensor import Tensor
from ..families.map import COPY, FILL, Map, normalise, spec_or_type
from .alignment import align, aligned
from .rules import Recordable, any_batched, as_input, batching_rule, check_writable, in_autograd


@batching_rule(Map)
def _run(level: Level, op: Map, args: tuple, static: dict[str, Any]) -> Recordable:
    if any_batched(args, level):
        return Recordable(wrap(op(*_promoted(op, args, aligned(args, level))), level), args)
    return Recordable(op(*[physical(x, level) if isinstance(x, Tensor) else x for x in args]), args)


def _promoted(op: Map, args: Sequence[Any], values: list[Any]) -> list[Any]:
    """The batches, converted so that type promotion gives the dtype that it gives for the samples.

    A sample without dims decides less about the common dtype than its batch, which has one.
    """
    if all(isinstance(x, Tensor) and x.spec.shape for x in args) or len(args) < 2:
        return values
    args, values = normalise(op.name, args), normalise(op.name, values)
    wanted = common_dtype(list(map(spec_or_type, args[: op.deciding])))
    if common_dtype(list(map(spec_or_type, values[: op.deciding]))) is wanted:
        return values
    return [_as(x, wanted) if isinstance(x, Tensor) else x for x in values]


def _as(value: Tensor, dtype: Any) -> Tensor:
    return value if value.spec.dtype is dtype else value.to(dtype)


@batching_rule(Map, method="inplace")
def _inplace(level: Level, op: Map, args: tuple, static: dict[str, Any]) -> Any:
    target, *others = args
    check_writable(target, others, level)
    sizes = broadcast_shapes(op.name, *[x.spec.shape for x in args if isinstance(x, Tensor)])
    if sizes != target.spec.shape:
        raise RuntimeError(
            f"output with shape {list(target.spec.shape)} doesn't match the broadcast shape {list(sizes)}"
        )
    ndim = len(target.spec.shape)
    values = [align(x, ndim, level) if isinstance(x, Tensor) else x for x in others]
    _, *values = _promoted(op, args, [physical(target, level), *values])
    return written(op, target, args, (), level, lambda: op.inplace(physical(target, level), *values))


@batching_rule(Map, method="write")
def _write(level: Level, op: Map, args: tuple, static: dict[str, Any]) -> Any:
    target, *operands = args
    check_writable(target, operands, level)
    ndim = len(target.spec.shape)
    values = [align(x, ndim, level) if isinstance(x, Tensor) else x for x in operands]
    if op is not COPY and op is not FILL:
        values = _promoted(op, operands, values)
    return written(
        op.as_write, target, operands, (), level, lambda: op.write(physical(target, level), *values)
    )


@batching_rule(Map, method="into")
def _into(level: Level, op: Map, args: tuple, static: dict[str, Any]) -> Any:
    out, *operands = args
    result = op(*operands)
    check_writable(out, [result], level)
    if out.spec.shape != result.spec.shape:
        raise RuntimeError(
            f"vmap: out= of {op.name} has shape {list(out.spec.shape)}, the result has {list(result.spec.shape)}: a sample "
            "cannot be resized"
        )
    return COPY.write(out, result)


def written(
    step: Any, target: Tensor, inputs: Sequence[Any], static: tuple, level: Level, write: Any
) -> Tensor:
    """Call `write()`, which writes the batch of `target`, as a recorded step if samples take part in autograd."""
    if not (mode.enabled and in_autograd((target, *inputs), level)):
        write()
        return target
    inputs = [as_input(x, level) for x in inputs]
    with resumed(level):
        node = tape.start_inplace(step, target, inputs, static)
    write()
    if node is not None:
        with resumed(level):
            tape.finish_inplace(node, target, inputs)
    return target
