"""The table of batching rules. `watch` applies the rule of an op to each call of the op while a level is open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..autograd.dual import tangents
from ..core.batched import (
    BatchedStorage,
    BatchedTensor,
    Level,
    VmapError,
    batched_at,
    lift,
    open_levels,
    physical,
    suspended,
    takes_part,
)
from ..core.dispatch import PLAIN
from ..core.generator import Generator
from ..core.grad_mode import mode
from ..core.op_rules import OpRules, Rule
from ..core.recording import needs_recording, tape
from ..core.tensor import Tensor
from ..families.map import COPY
from ..ops.assembly.copying import copy_to

# A rule: (level, op, args, static) -> Recordable, or a result that is complete

_table = OpRules()
batching_rule, rule_for = _table.of_families, _table.of_ops
_known = _table.known

# Their results are new tensors, into which samples may be written.
COPIES = (COPY, copy_to)


class Recordable(NamedTuple):
    """The result of a rule: it is recorded if the samples take part in autograd within the level."""

    result: Any
    inputs: Sequence[Any]
    static: tuple = ()
    step: Any = None  # the op that is recorded, if it is not the one that was called


def watch(op: Any, method: str, args: tuple, static: dict[str, Any]) -> Any:
    """The answer of the op's rule if an argument is a sample, else PLAIN."""
    outer = open_levels.stack
    if not outer:  # a rule of the outermost level works on batches: there are no samples
        return PLAIN
    level = highest(args, highest(static.values(), None) if static else None)
    if level is None:
        if method != "run":
            return PLAIN
        if op not in COPIES:
            if needs_recording(args) and not any(map(_belongs_here, args)):
                return _outside(op, args, static)
            return PLAIN
        with suspended(outer[-1]):
            result = op(*args)
        return lift(result, outer[-1], fresh=True)
    if level is outer[-1]:
        below = outer[:-1]
    else:
        below = outer[: outer.index(level)] if level in outer else outer
    open_levels.stack = below
    try:
        found = (_known.get((type(op), method)) or _rule_of(op, method))(level, op, args, static)
        if type(found) is not Recordable:
            return found
        if mode.enabled and in_autograd(found.inputs, level):
            open_levels.stack = (*below, level)
            return record(found.step or op, found.result, found.inputs, found.static, level)
        return found.result
    finally:
        open_levels.stack = outer


def _belongs_here(value: Any) -> bool:
    """Whether an argument that is not a sample depends on the level: if its tangents do, or if it is random."""
    return isinstance(value, Generator) or bool(tangents(value))


def _outside(op: Any, args: tuple, static: dict[str, Any]) -> Any:
    """Run an op that no sample takes part in as if no level were open.

    Otherwise the memory that it allocates would belong to the level, and the step would be recorded within the level, where
    the backward pass around it does not see it.
    """
    with suspended(open_levels.stack[0]):
        return op.run(*args, **static)


def highest(args: Any, level: Level | None) -> Level | None:
    """Return the innermost level of the samples among arguments."""
    for each in args:
        kind = type(each)
        if kind is Tensor or kind is int:
            continue
        if kind is BatchedTensor or isinstance(each, Tensor):
            storage = each._storage
            if type(storage) is BatchedStorage and (level is None or storage.level.number > level.number):
                level = storage.level
        elif kind is tuple or kind is list:
            level = highest(each, level)
    return level


def _rule_of(op: Any, method: str) -> Rule:
    if (found := _table.find(op, method)) is None:
        raise NotImplementedError(f"vmap: {type(op).__name__}.{method}")
    return found


def record(op: Any, result: Any, inputs: Sequence[Any], static: tuple, level: Level) -> Any:
    """Compute `result`, as the result of a recorded step within the level.

    The operation on the batch has already been recorded around the level.
    """
    if isinstance(result, Tensor):
        result = as_sample(result, level)
    else:
        result = type(result)([as_sample(each, level) for each in result])
    return tape.record(op, result, [as_input(x, level) for x in inputs], static)


def in_autograd(inputs: Sequence[Any], level: Level) -> bool:
    """Whether one of the samples of this level takes part in autograd."""
    for x in inputs:
        if isinstance(x, Tensor) and x._autograd is not None and not is_outer(x, level):
            return True
    return False


def as_input(x: Any, level: Level) -> Any:
    """An input of a step within the level: the history of tensors from outside is not its concern."""
    return lift(x, level) if isinstance(x, Tensor) and x._autograd is not None and is_outer(x, level) else x


def as_sample(x: Tensor, level: Level) -> Tensor:
    return lift(x, level) if is_outer(x, level) else x


def is_outer(x: Tensor, level: Level) -> bool:
    """Whether a tensor is from outside of the level."""
    storage = x._storage
    return type(storage) is not BatchedStorage or storage.level is not level


def any_batched(inputs: Sequence[Any], level: Level) -> bool:
    return any(isinstance(x, Tensor) and batched_at(x, level) for x in inputs)


def outer_autograd(inputs: Sequence[Any], level: Level) -> bool:
    """Return whether autograd around the level records operations on these tensors."""
    return mode.enabled and any(isinstance(x, Tensor) and takes_part(physical(x, level)) for x in inputs)


class InplaceError(VmapError):
    """Samples are to be written into a tensor that is the same for all of them."""


def check_writable(target: Tensor, others: Sequence[Any], level: Level) -> None:
    """Let `target` hold different samples if one of the others does.

    Raises: RuntimeError if it is from outside of the level.
    """
    if batched_at(target, level) or not any_batched(others, level):
        return
    storage = target._storage
    if type(storage) is BatchedStorage and storage.level is level and storage.fresh:
        storage.become_batch()
        return
    raise InplaceError(
        "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args "
        "that has more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped "
        "over. Use an operation that is not in place, or write into a tensor that the mapped function makes."
    )
