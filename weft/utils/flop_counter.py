"""`torch.utils.flop_counter`: how many floating-point operations products, convolutions and attention take, by module.

The counts are PyTorch's: a multiplication and an addition are two operations, and biases, norms and elementwise functions are none.
Attention and recurrent layers are single steps of weft. They count as the products of which PyTorch composes them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.hooks import register_multi_grad_hook
from ..core.dispatch import PLAIN
from ..core.overrides import modes
from ..core.tensor import Tensor
from ..library.namespaces import OpOverloadPacket, ops
from ..library.python_dispatch import TorchDispatchMode
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]


# ---- Formulas: from shapes to a number; a multiplication and an addition are two ---------------------------------------


def mm_flop(
    a_shape: Sequence[int], b_shape: Sequence[int], *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """Count the operations of [m, k] @ [k, n]."""
    (m, k), (k2, n) = a_shape, b_shape
    if k != k2:
        raise AssertionError(f"matmul: inner dimensions must match (k == k2), got {k} and {k2}")
    return m * n * 2 * k


def addmm_flop(
    self_shape: Sequence[int],
    a_shape: Sequence[int],
    b_shape: Sequence[int],
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """Count the product only, without the addition."""
    return mm_flop(a_shape, b_shape)


def bmm_flop(a_shape: Sequence[int], b_shape: Sequence[int], out_shape: Any = None, **kwargs: Any) -> int:
    """Count the operations of [b, m, k] @ [b, k, n]."""
    return a_shape[0] * mm_flop(a_shape[1:], b_shape[1:])


def baddbmm_flop(
    self_shape: Sequence[int],
    a_shape: Sequence[int],
    b_shape: Sequence[int],
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """Count the product only, without the addition."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(
    x_shape: Sequence[int], w_shape: Sequence[int], out_shape: Sequence[int], transposed: bool = False
) -> int:
    """Count the operations of a convolution of [batch, channels, ...] with a weight [outputs, inputs per group, ...]."""
    positions = (x_shape if transposed else out_shape)[2:]
    return math.prod(positions) * math.prod(w_shape) * x_shape[0] * 2


def conv_backward_flop(
    grad_out_shape: Sequence[int],
    x_shape: Sequence[int],
    w_shape: Sequence[int],
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    _output_padding: Any,
    _groups: int,
    output_mask: Sequence[bool],
    out_shape: Any,
    **kwargs: Any,
) -> int:
    """Count the operations of the gradients of a convolution's input and weight, those that are asked for."""
    count = 0
    if output_mask[0]:
        count += conv_flop_count(grad_out_shape, w_shape, out_shape[0], not transposed)
    if output_mask[1]:
        given, result = (grad_out_shape, x_shape) if transposed else (x_shape, grad_out_shape)
        count += _conv_weight_flop_count(given, result, w_shape)
    return count


def _conv_weight_flop_count(
    x_shape: Sequence[int], grad_out_shape: Sequence[int], w_shape: Sequence[int]
) -> int:
    """Count the gradient of the weight. As in PyTorch, it does not depend on the number of groups."""
    return 2 * math.prod(w_shape[2:]) * math.prod(grad_out_shape) * x_shape[1]


def conv_flop(
    x_shape: Sequence[int],
    w_shape: Sequence[int],
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """Count the operations of `aten.convolution`."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


def sdpa_backward_flop_count(
    grad_out_shape: Sequence[int],
    query_shape: Sequence[int],
    key_shape: Sequence[int],
    value_shape: Sequence[int],
) -> int:
    """Count the operations of the five products in the backward of attention, which computes the scores again."""
    b, h, queries, features = query_shape
    keys, values = key_shape[-2], value_shape[-1]
    return 2 * b * h * queries * keys * (3 * features + 2 * values)


def sdpa_flop_count(query_shape: Sequence[int], key_shape: Sequence[int], value_shape: Sequence[int]) -> int:
    """Count the operations of both products of attention: [b, heads, queries, e], [b, heads, keys, e], [b, heads, keys, v]."""
    b, h, queries, features = query_shape
    keys, values = key_shape[-2], value_shape[-1]
    return bmm_flop((b * h, queries, features), (b * h, features, keys)) + bmm_flop(
        (b * h, queries, keys), (b * h, keys, values)
    )


# Packet of overloads -> formula(*args, out_val=result, **kwargs).
flop_registry: dict[Any, Callable] = {}


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable], Callable]:
    """Decorator: `formula(*shapes, out_shape=...)` counts calls of these operators; with get_raw it is given the tensors.

    targets: operators such as `torch.ops.aten.dot`, or public functions that have one.

    >>> import weft as torch
    >>> @register_flop_formula(torch.ops.aten.dot)
    ... def dot_flop(a_shape, b_shape, out_shape=None, **kwargs):
    ...     return 2 * a_shape[0]
    >>> with FlopCounterMode(display=False) as counter:
    ...     x = torch.dot(torch.ones(3), torch.ones(3))
    >>> counter.get_total_flops()
    6
    """

    def register(formula: Callable) -> Callable:
        for each in targets if isinstance(targets, (list, tuple)) else [targets]:
            flop_registry[_packet(each)] = formula if get_raw else shape_wrapper(formula)
        return formula

    return register


def _packet(target: Any) -> OpOverloadPacket:
    if isinstance(target, OpOverloadPacket):
        return target
    from ..library.registry.dispatching import paths

    name = paths().get(target) if callable(target) else None
    if name is None or not hasattr(ops.aten, name):
        raise ValueError(
            f"register_flop_formula(targets): expected operators such as torch.ops.aten.mm, got {type(target)}"
        )
    return getattr(ops.aten, name)


def _shape(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(map(_shape, x))
    return x.shape if isinstance(x, Tensor) else x


def shape_wrapper(formula: Callable) -> Callable:
    """Return the formula as a function of tensors."""

    def count(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        shapes = {name: _shape(value) for name, value in kwargs.items()}
        return formula(*map(_shape, args), out_shape=_shape(out_val), **shapes)

    return count


aten = ops.aten
_ATTENTION = aten._scaled_dot_product_flash_attention_for_cpu
_ATTENTION_BACKWARD = aten._scaled_dot_product_flash_attention_for_cpu_backward
for _target, _formula in (
    (aten.mm, mm_flop),
    (aten.addmm, addmm_flop),
    (aten.bmm, bmm_flop),
    (aten.baddbmm, baddbmm_flop),
    (aten.convolution, conv_flop),
    (aten.convolution_backward, conv_backward_flop),
    (_ATTENTION, lambda query, key, value, *args, **kwargs: sdpa_flop_count(query, key, value)),
    (_ATTENTION_BACKWARD, lambda ct, *shapes, **kwargs: sdpa_backward_flop_count(ct, *shapes[:3])),
):
    register_flop_formula(_target)(_formula)


# ---- Steps of weft that are no operators of PyTorch ------------------------------------------------------------------

# Of the forward pass, and of the backward pass unless that is made of steps that are counted themselves.
Counts = tuple[tuple[Any, int], tuple[Any, int] | None]


def _product(result: Tensor, a: Tensor, b: Tensor, *args: Any) -> Counts:
    count = 2 * math.prod(result.shape) * a.shape[-1] if min(a.dim(), b.dim()) > 1 else 0
    return (aten.mm if min(a.dim(), b.dim()) == 2 else aten.bmm, count), None


def _convolution(result: Tensor, input: Tensor, weight: Tensor, *args: Any) -> Counts:
    return (aten.convolution, conv_flop_count(input.shape, weight.shape, result.shape)), None


def _transposed(result: Tensor, input: Tensor, weight: Tensor, *args: Any) -> Counts:
    return (aten.convolution, conv_flop_count(input.shape, weight.shape, result.shape, True)), None


def _input_gradient(transposed: bool) -> Callable:
    def count(result: Tensor, ct: Tensor, weight: Tensor, *args: Any) -> Counts:
        flops = conv_flop_count(ct.shape, weight.shape, result.shape, transposed)
        return (aten.convolution_backward, flops), None

    return count


def _weight_gradient(result: Tensor, input: Tensor, ct: Tensor, *args: Any) -> Counts:
    return (aten.convolution_backward, _conv_weight_flop_count(input.shape, ct.shape, result.shape)), None


def _attention(result: Tensor, query: Tensor, key: Tensor, value: Tensor, *args: Any) -> Counts:
    shapes = [(math.prod(x.shape[:-3]), x.shape[-3], *x.shape[-2:]) for x in (query, key, value)]
    return (
        (_ATTENTION, sdpa_flop_count(*shapes)),
        (_ATTENTION_BACKWARD, sdpa_backward_flop_count(result.shape, *shapes)),
    )


def _tiled_attention(results: tuple, *args: Any) -> Counts:
    return _attention(results[0], *args)


def _recurrent(
    result: Any,
    kind: Any,
    sizes: Sequence[int],
    reverse: bool,
    saving: bool,
    input: Tensor,
    weight: Tensor,
    own_weight: Tensor,
    bias: Any,
    own_bias: Any,
    projection: Tensor | None,
    *initial: Tensor,
) -> Counts:
    """Count the products with the weights of a layer, for `sizes` samples at each step.

    The backward of the layer is itself the products with the weights of the state. It does not compute the gradient of the initial
    state unless that is asked for. Projections and the gradients of input and weights are products that are counted as such.
    """
    rows = sum(sizes)
    back = rows if any(each.requires_grad for each in initial) else rows - sizes[0]
    return (
        (aten.addmm, 2 * rows * (weight.numel() + own_weight.numel())),
        (aten.mm, 2 * back * own_weight.numel()),
    )


_STEPS: dict[str, Callable[..., Counts]] = {
    "mm": _product,
    "bmm": _product,
    "matmul": _product,
    "convolution": _convolution,
    "transposed": _transposed,
    "spread": _input_gradient(True),
    "convolve": _input_gradient(False),
    "correlate": _weight_gradient,
    "attend": _attention,
    "attend_by_tiles": _tiled_attention,
    **dict.fromkeys(("rnn_tanh", "rnn_relu", "gru", "lstm"), _recurrent),
}


def step_counts(op: Any, result: Any, args: Sequence[Any]) -> int | None:
    """Count the forward pass of an op of weft whose kernel no plan describes; None if there is no formula for it."""
    count = _STEPS.get(getattr(op, "name", ""))
    return None if count is None else count(result, *args)[0][1]


# ---- The mode --------------------------------------------------------------------------------------------------------


class _Counter(TorchDispatchMode):
    """The mode that counts, while a FlopCounterMode is on."""

    def __init__(self, counter: FlopCounterMode) -> None:
        super().__init__()
        self.counter = counter

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        result = func(*args, **kwargs or {})
        formula = self.counter.flop_registry.get(packet := func._overloadpacket)
        if formula is not None:
            self.counter._add(packet, formula(*args, out_val=result, **kwargs or {}))
        return result

    def _call_op(self, op: Any, args: tuple, static: dict[str, Any]) -> Any:
        outer = modes.dispatch[: modes.dispatch.index(self)]
        result = outer[-1]._call_op(op, args, static) if outer else PLAIN
        count = _STEPS.get(op.name)
        if count is None:
            return result
        if result is PLAIN:
            result = op.run(*args, **static)
        forward, backward = count(result, *args)
        self.counter._add(*forward)
        if backward is not None:
            results = [x for x in (result if isinstance(result, tuple) else (result,)) if x.requires_grad]
            around = self.counter.mod_tracker.parents

            def count_backward(ct: Tensor) -> None:
                if self in modes.dispatch:  # the pass may run after the context
                    self.counter._add(*backward, around)

            register_multi_grad_hook(results, count_backward, mode="any")
        return result


class FlopCounterMode:
    """Counts the operations of products, convolutions and attention within the context, by module, forward and backward.

    depth: how deep modules are nested in the table. display: print the table at the end. mods is not needed. custom_mapping
    (operator -> formula, as for `register_flop_formula`) adds formulas. Tensors on "meta" suffice, so a model of any size is
    counted in the time that its functions take without data.

    >>> import weft as torch
    >>> from weft.utils.flop_counter import FlopCounterMode
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> with FlopCounterMode(display=False) as counter:
    ...     model(torch.ones(3, 4)).sum().backward()
    >>> counter.get_total_flops(), {name: sum(counts.values()) for name, counts in counter.get_flop_counts().items()}
    (672, {'Global': 672, 'Sequential': 672, 'Sequential.0': 384, 'Sequential.2': 288})
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        own = {_packet(target): shape_wrapper(formula) for target, formula in (custom_mapping or {}).items()}
        self.flop_registry = {**flop_registry, **own}
        self.mod_tracker = ModuleTracker()
        self.mode: _Counter | None = None

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self.mode = _Counter(self)
        self.mode.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        assert self.mode is not None
        self.mode.__exit__(*exception)
        self.mode = None
        self.mod_tracker.__exit__(*exception)
        if self.display:
            print(self.get_table(self.depth))

    def _add(self, packet: Any, count: int, modules: set[str] | None = None) -> None:
        if count:
            for name in sorted(modules or self.mod_tracker.parents):
                self.flop_counts[name][packet] += count

    def get_total_flops(self) -> int:
        """Return all that was counted."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Return the counts by module and then by operator; "Global" is the sum of all."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Return a table of modules up to a depth, with their counts and shares."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        rows = [("Module", "FLOP", "% Total")]
        for name in sorted(self.flop_counts, key=lambda each: (each != "Global", each)):
            level = 0 if name == "Global" else name.count(".") + 1
            if level > depth:
                continue
            for label, count in [
                (name, sum(self.flop_counts[name].values())),
                *self.flop_counts[name].items(),
            ]:
                text = " " * level + (label if label == name else f" - {getattr(label, '__name__', label)}")
                rows.append((text, _with_suffix(count, total), f"{count / total:.2%}" if total else "0%"))
        return "\n".join(table_lines(rows))


def table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table, whose first row is its head. The first column is aligned on the left, the others on the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows
    ]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


_SUFFIXES = ("", "K", "M", "B", "T")


def _with_suffix(number: int, total: int) -> str:
    """Return the number with the suffix (K, M, ...) that suits the total."""
    place = min(len(_SUFFIXES) - 1, (len(str(total)) - 1) // 3)
    return f"{number / 1000**place:.3f}{_SUFFIXES[place]}" if place else str(number)
