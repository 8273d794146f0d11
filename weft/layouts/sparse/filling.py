"""Sparse tensors without entries, and sparse tensors whose entries are filled or copied."""

from __future__ import annotations

from typing import Any

from ...core.layout import Layout, sparse_coo, strided
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ...families.custom_vjp import custom_vjp
from ..parts import parts_of
from .access import dense_dim, with_parts
from .compressed import TITLES, batch_dim_of, blocksize_of, compressed
from .compression import Compressed
from .coo import coo, sparse_dim_of
from .creation import empty_sparse
from .rules import SPARSE, write
from .unary import on_values, summed

rule = SPARSE.rule
zeros, zeros_like = FUNCTIONS["zeros"], FUNCTIONS["zeros_like"]

# ---- Without entries ---------------------------------------------------------------------------------------------------


def without_entries(x: Tensor, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of the layout, shape and dims of x that has no entries."""
    options: dict[str, Any] = {"dtype": dtype or x.dtype, "device": device or x.device}
    *structure, values = parts_of(x)
    if x.layout is sparse_coo:
        indices = structure[0].new_empty((sparse_dim_of(x), 0), device=options["device"])
        return coo(indices, values.new_empty((0, *values.shape[1:]), **options), x.shape, True)
    outer, inner = structure
    batch_dim = batch_dim_of(x)
    batch, entry = x.shape[:batch_dim], values.shape[batch_dim + 1 :]
    parts = Compressed(
        zeros(outer.shape, dtype=outer.dtype, device=options["device"]),
        inner.new_empty((*batch, 0), device=options["device"]),
        values.new_empty((*batch, 0, *entry), **options),
    )
    return compressed(parts, x.shape, x.layout)


def _without_any(*size: Any, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
    """What `torch.zeros(size, out=x)` lets a COO tensor hold."""
    sizes = size[0] if len(size) == 1 and isinstance(size[0], tuple | list) else size
    return empty_sparse(sizes, sparse_coo, dtype, device)


rule("zeros", "empty")(_without_any)


def _uninitialized(x: Tensor, dtype: Any, device: Any) -> Tensor:
    """Return a compressed tensor with the indices of x and any values."""
    *structure, values = parts_of(x)
    structure = [part.to(device, copy=True) for part in structure]
    return with_parts(x, structure, FUNCTIONS["empty_like"](values, dtype=dtype, device=device))


def _define_like(name: str) -> None:
    def like(
        input: Tensor,
        *,
        dtype: Any = None,
        layout: Layout | None = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        device = device or input.device
        if memory_format is not None and layout is not strided:
            raise RuntimeError("memory format option is only supported by strided tensors")
        if layout is None or layout is input.layout:
            keeps = name == "empty" and input.layout is not sparse_coo
            made = (_uninitialized if keeps else without_entries)(input, dtype, device)
        elif name == "empty" and input.layout in TITLES:
            raise RuntimeError(
                f"empty_like with different sparse layout is not supported (self is {TITLES[input.layout]} but you requested "
                f"{TITLES.get(layout, layout)}): write zeros_like"
            )
        elif layout is not strided:
            blocksize = None if input.layout is sparse_coo else blocksize_of(input)
            made = empty_sparse(
                input.shape, layout, dtype or input.dtype, device, dense_dim(input), blocksize
            )
        else:
            made = FUNCTIONS[name[:5]](input.shape, dtype=dtype or input.dtype, layout=layout, device=device)
        return made.requires_grad_() if requires_grad else made

    rule(f"{name}_like")(like)


for _name in ("empty", "zeros"):
    _define_like(_name)


def _define_new(name: str) -> None:
    def new(
        self: Tensor,
        *size: Any,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        layout: Layout | None = None,
        pin_memory: bool = False,
    ) -> Tensor:
        options = {
            "dtype": dtype or self.dtype,
            "device": device or self.device,
            "layout": layout or self.layout,
        }
        return FUNCTIONS[name](*size, **options, requires_grad=requires_grad)

    rule(f"new_{name}")(new)


for _name in ("empty", "zeros"):
    _define_new(_name)


@custom_vjp(lambda ct, out, input: zeros_like(ct))
def _without_entries(input: Tensor) -> Tensor:
    return without_entries(input)


@rule("zero_")
def zero_(input: Tensor) -> Tensor:
    write(_without_entries(input), input)
    return input


# ---- With entries --------------------------------------------------------------------------------------------------------


@custom_vjp(lambda ct, out, input, value: zeros_like(ct), inputs=1)
def _filled(input: Tensor, value: Any) -> Tensor:
    return on_values(summed(input), FUNCTIONS["full_like"], value)


@rule("fill_", "fill")
def fill_(input: Tensor, value: Any) -> Tensor:
    """Give each entry this value. Elements without an entry stay zero."""
    write(_filled(input, value), input)
    return input


def _define_filled_like(name: str) -> None:
    function = FUNCTIONS[name]

    def like(
        input: Tensor,
        *args: Any,
        dtype: Any = None,
        layout: Layout | None = None,
        device: Any = None,
        requires_grad: bool = False,
        memory_format: Any = None,
        **options: Any,
    ) -> Tensor:
        device = device or input.device
        if layout is None or layout is input.layout:
            made = on_values(summed(input.detach()), function, *args, dtype=dtype, device=device, **options)
        else:
            template = FUNCTIONS["empty"](input.shape, dtype=dtype or input.dtype, device=device)
            made = function(template, *args, layout=layout, **options)
        return made.requires_grad_() if requires_grad else made

    like.__doc__ = "Each entry has such a value. Elements without an entry stay zero."
    rule(name)(like)


for _name in "full_like ones_like rand_like randn_like".split():
    _define_filled_like(_name)
