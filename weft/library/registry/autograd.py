"""Derivatives of operators that programs define: what `register_autograd` is given, as a step of weft's graph."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...autograd.function import Function
from ...core.grad_mode import is_grad_enabled, no_grad
from ...core.tensor import Tensor
from ..keys import _AutoDispatchBelowAutograd
from .operators import Operator, tensors_in


class Info:
    """The functions for backward: `backward(ctx, *grads)` and `setup_context(ctx, inputs, output)`, None if there is none."""

    def __init__(self, backward: Callable | None = None, setup_context: Callable | None = None):
        self.backward, self.setup_context = backward, setup_context


def kernel(operator: Operator, info: Info) -> Callable:
    """The kernel for Autograd: it calls the operator's kernel below, and records that as one step."""
    step = _step(operator, info)

    def autograd(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        values = operator.schema.bind(args, kwargs)
        recorded = is_grad_enabled() and any(each.requires_grad for each in tensors_in(values))
        if not recorded:
            with _AutoDispatchBelowAutograd(), no_grad():
                return operator.call(values)
        leaves, counts = _flattened(values)
        call = _Call(values, counts)
        found = step.apply(call, *leaves)
        return call.restored(found)

    return autograd


class _Call:
    """One call on its way through `Function.apply`, which takes single tensors: lists are given as their elements."""

    def __init__(self, values: Sequence[Any], counts: Sequence[int | None]):
        self.values, self.counts = values, counts
        self.out_counts: list[int | None] | None = None
        self.single = True

    def nested(self, leaves: Sequence[Any]) -> list[Any]:
        """Leaves as they were given: a list for each list."""
        return _unflattened(leaves, self.counts)

    def flat_result(self, result: Any) -> Any:
        """The tensors of a result, a single one or a tuple."""
        self.single = not isinstance(result, (tuple, list))
        if self.single:
            return result
        self.listed = isinstance(result, list)
        leaves, self.out_counts = _flattened([result] if self.listed else result)
        return tuple(leaves)

    def restored(self, found: Any) -> Any:
        """The result as the kernel returned it."""
        if self.single:
            return found
        assert self.out_counts is not None
        nested = _unflattened(found, self.out_counts)
        return nested[0] if self.listed else tuple(nested)

    def gradients(self, cts: Sequence[Any]) -> Sequence[Any]:
        """Gradients as the results are nested."""
        if self.single or self.out_counts is None:
            return cts
        return _unflattened(cts, self.out_counts)


def _flattened(values: Sequence[Any]) -> tuple[list[Any], list[int | None]]:
    leaves: list[Any] = []
    counts: list[int | None] = []
    for each in values:
        is_list = isinstance(each, (list, tuple)) and any(isinstance(item, Tensor) for item in each)
        counts.append(len(each) if is_list else None)
        leaves += each if is_list else [each]
    return leaves, counts


def _unflattened(leaves: Sequence[Any], counts: Sequence[int | None]) -> list[Any]:
    found: list[Any] = []
    place = 0
    for count in counts:
        if count is None:
            found.append(leaves[place])
            place += 1
        else:
            found.append(list(leaves[place : place + count]))
            place += count
    return found


def _step(operator: Operator, info: Info) -> Any:
    """The class of autograd Functions whose `apply(call, *leaves)` is one recorded call of the operator."""
    schema = operator.schema
    named = [each.name for each in schema.arguments if each.kwarg_only]
    n_positional = len(schema.arguments) - len(named)

    def forward(ctx: Any, call: _Call, *leaves: Any) -> Any:
        with _AutoDispatchBelowAutograd(), no_grad():
            result = operator.call(call.nested(leaves))
        ctx.call = call
        flat = call.flat_result(result)
        if info.setup_context is not None:
            inputs = call.nested(leaves)
            keyword_only = dict(zip(named, inputs[n_positional:], strict=True))
            extra = {"keyword_only_inputs": keyword_only} if named else {}
            with _flags_of_arguments(ctx, n_positional):
                info.setup_context(
                    ctx=ctx, inputs=tuple(inputs[:n_positional]), output=call.restored(flat), **extra
                )
        return flat

    def backward(ctx: Any, *cts: Any) -> Any:
        if info.backward is None:
            from ..namespaces import overload_of

            raise RuntimeError(
                f"Trying to backward through {overload_of(operator)} but no autograd formula was registered. Please use "
                "register_autograd to add one."
            )
        with _flags_of_arguments(ctx, n_positional):
            found = info.backward(ctx, *ctx.call.gradients(cts))
        found = list(found) if isinstance(found, tuple) else [found]
        if len(found) != n_positional:
            raise RuntimeError(
                f"The backward of {schema.qualified} returned {len(found)} gradients, but the operator has {n_positional} "
                "positional arguments: return one for each, None where there is none"
            )
        return (None, *_flat_gradients(found, ctx.call.counts[:n_positional]), *([None] * len(named)))

    name = f"GeneratedBackwardFor_{schema.name.replace('::', '_')}_{schema.overload_name or 'default'}"
    return type(name, (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


@contextlib.contextmanager
def _flags_of_arguments(ctx: Any, n_positional: int) -> Iterator[None]:
    """Let `ctx.needs_input_grad` have one flag (or list) for each positional argument, as functions of programs expect."""
    flags = ctx.needs_input_grad
    ctx.needs_input_grad = tuple(ctx.call.nested(flags[1:])[:n_positional])
    try:
        yield
    finally:
        ctx.needs_input_grad = flags


def _flat_gradients(found: Sequence[Any], counts: Sequence[int | None]) -> list[Any]:
    flat: list[Any] = []
    for gradient, count in zip(found, counts, strict=True):
        if count is None:
            flat.append(gradient)
        elif gradient is None:
            flat += [None] * count
        elif isinstance(gradient, (list, tuple)) and len(gradient) == count:
            flat += gradient
        else:
            raise RuntimeError(
                f"Expected the gradient of a list of {count} tensors to be a list of {count} gradients or None, got {gradient!r}"
            )
    return flat
