"""Writes of one value to all elements: fill and zero, with the check that the dtype can hold the value."""

from __future__ import annotations

from typing import Any

from ...core.batched import BatchedStorage, is_recorded_around, is_sample
from ...core.derivative import Derivative
from ...core.device import CPU
from ...core.dispatch import watchers
from ...core.dtype import REDUCED_FLOATS, bool_
from ...core.grad_mode import mode
from ...core.limits import LIMITS, check_number
from ...core.op import Op
from ...core.outputs import check_inplace
from ...core.public import public
from ...core.recording import needs_recording, record_inplace, tape
from ...core.tensor import Tensor
from ...families.calls import is_operand
from ...families.map import COPY, FILL, NUMBERS, apart, scalar_arguments
from .copying import copy_values


@public("function method")
def fill_(input: Tensor, value: Any) -> Tensor:
    """Write `value`, a number or a 0-dim tensor, everywhere.

    >>> import weft as torch
    >>> torch.zeros(2).fill_(3)
    tensor([3., 3.])
    """
    if isinstance(value, Tensor):
        if value.spec.shape:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {len(value.spec.shape)} dimensions."
            )
        if input.spec.repeats or needs_recording((input, value)):
            check_inplace(input, "fill")
        value = apart(value, input)
        if needs_recording((input, value)) and not (is_recorded_around(input) or is_recorded_around(value)):
            return record_inplace(FILL_TENSOR, input, (value,), (), copy_values, input, value)
        copy_values(input, value)
        return input
    if not is_operand(value):
        raise TypeError(f"fill_(): argument 'value' (position 1) must be Number, not {type(value).__name__}")
    if _is_quick(input):
        fill_number(input, value)
        tape.record_overwrite(FILL.as_write, input)
        return input
    if input._autograd is not None or input.spec.device is not CPU:
        check_number(value, input.spec.dtype)
        return FILL.write(input, value) if input.spec.device.backend.has_memory else input
    return fill_number(input, value)


FILL_TENSOR = Op("fill_.tensor", COPY.derivative, "FillBackward3")
ZERO = Op("zero_", Derivative())


def _is_quick(target: Tensor) -> bool:
    """Whether a write of a number is recorded after it has run."""
    if target._autograd is None or not mode.enabled or target.spec.device is not CPU:
        return False
    return not target.spec.repeats and tape.can_overwrite(target)


def fill_number(target: Tensor, value: Any) -> Tensor:
    """Write a number everywhere, on the CPU and unrecorded: the quick way."""
    spec = target.spec
    dtype = spec.dtype
    kind = type(value)
    if kind not in NUMBERS:
        value = value.item()
        kind = type(value)
    low, high = LIMITS[dtype]
    if kind is complex:
        check_number(value, dtype)
        if not dtype.is_complex:
            return fill_number(target, bool(value) if dtype is bool_ else value.real)
    elif not low <= value <= high or value < 0 and kind is float:
        if spec.numel != 1 or dtype not in REDUCED_FLOATS:  # as in PyTorch, a single one becomes infinite
            check_number(value, dtype)
    if spec.numel:
        if watchers or type(target) is not Tensor and is_sample(target):
            return FILL.write(target, value)
        plan = FILL.write_plans[spec, kind]
        storage = target._storage
        storage.version += 1  # first, because it may raise
        plan.entry(storage.ptr + target._byte_offset, *scalar_arguments(value, dtype), plan.meta, plan.count)
    return target


@public("function")
def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor like `input` that holds `value`, a number or a 0-dim tensor, everywhere."""
    return fill_(input.clone(), value)


@public("function method")
def zero_(input: Tensor) -> Tensor:
    """Write 0 everywhere."""
    if type(input._storage) is BatchedStorage:
        return fill_(input, 0)  # each level of vmap records the write on its own
    if input._autograd is None and input.spec.device is CPU:
        return fill_number(input, 0)
    if _is_quick(input):
        fill_number(input, 0)
        tape.record_overwrite(ZERO, input)
        return input
    if needs_recording((input,)):
        return record_inplace(ZERO, input, (), (), fill_, input, 0)
    return fill_(input, 0)
