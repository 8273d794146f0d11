"""The derivatives of aten operators as aten operators, for calls that `__torch_dispatch__` is told of.

weft's own rules stand beside its ops and are made of them, so their steps are others than PyTorch's. A mode or a subclass
beneath autograd sees operators, and libraries rely on PyTorch's sequence of them. FORMULAS holds, for each
operator, a function for each differentiable argument. PyTorch evaluates them in the order of the arguments' names. The function gets a
`Context`: the gradient `c.g` of the result, the arguments by their names in the schema, and `c.result`. What a function reads
is saved for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...core.dtype import DType
from ...core.layout import contiguous_format, strided
from ...core.tensor import Tensor
from ..namespaces import ops

aten = ops.aten


class Context:
    """What a formula may read: `g` or, for several results, `gs`; saved arguments by name; `result`, `result1`, ..."""

    def __init__(self, g: Any, values: dict[str, Any], specs: dict[str, Any]):
        self.g = self.gs = g
        self._specs = specs
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{name} was not saved for this formula")

    def sizes_of(self, name: str) -> list[int]:
        """The sizes of a tensor argument, which is not saved."""
        return list(self._specs[name].shape)

    def strides_of(self, name: str) -> tuple[int, ...]:
        """The strides of a tensor argument."""
        return self._specs[name].stride

    def dtype_of(self, name: str) -> DType:
        """The dtype of a tensor argument."""
        return self._specs[name].dtype

    def options_of(self, name: str) -> dict[str, Any]:
        """The options of a factory for a tensor like an argument."""
        spec = self._specs[name]
        return {"dtype": spec.dtype, "layout": strided, "device": spec.device}


Formula = Callable[[Context], Any]
FORMULAS: dict[str, dict[str, Formula]] = {}


def formula(*names: str, **inputs: Formula) -> None:
    """State the formulas of the operators of these names; one without an overload stands for all of its overloads."""
    for name in names:
        FORMULAS[name] = dict(sorted(inputs.items()))


def formulas_of(name: str, overload: str) -> dict[str, Formula] | None:
    """The formulas of an operator, those of `add` for `add_` as well; None if there are none."""
    name = name.rstrip("_") if not name.endswith("__") else name
    return FORMULAS.get(f"{name}.{overload or 'default'}", FORMULAS.get(name))


def summed_to(g: Tensor, sizes: Sequence[int]) -> Tensor:
    """`g`, summed over the dims that were broadcast from `sizes`."""
    if list(g.shape) == list(sizes):
        return g
    leading = g.ndim - len(sizes)
    dims = [*range(leading)]
    dims += [d for d in range(leading, g.ndim) if sizes[d - leading] == 1 and g.shape[d] != 1]
    if dims:
        g = aten.sum.dim_IntList(g, dims, True)
    return aten.view(g, list(sizes)) if leading else g


# ---- Elementwise ---------------------------------------------------------------------------------------------------------


def _times(g: Tensor, number: Any) -> Tensor:
    return g if type(number) in (int, float) and number == 1 else aten.mul.Scalar(g, number)


def _times_negative(factor: Tensor, g: Tensor) -> Tensor:
    return aten.mul(aten.neg(g), factor)


def _times_power(power: Tensor, g: Tensor) -> Tensor:
    return aten.mul(aten.mul.Scalar(g, -0.5), power)


def _same(c: Context) -> Any:
    return c.g


formula("add", self=_same, other=lambda c: _times(c.g, c.alpha))
formula("sub", self=_same, other=lambda c: _times(aten.neg(c.g), c.alpha))
formula("rsub.Scalar", self=lambda c: _times(aten.neg(c.g), c.alpha))
formula("rsub.Tensor", self=lambda c: _times(aten.neg(c.g), c.alpha), other=_same)
formula("mul", self=lambda c: aten.mul(c.g, c.other), other=lambda c: aten.mul(c.g, c.self))
formula(
    "div.Tensor",
    self=lambda c: aten.div(c.g, c.other),
    other=lambda c: _times_negative(aten.div(aten.div(c.self, c.other), c.other), c.g),
)
formula("div.Scalar", self=lambda c: aten.div(c.g, c.other))
formula("neg", self=lambda c: aten.neg(c.g))
formula("exp", self=lambda c: aten.mul(c.g, c.result))
formula("log", self=lambda c: aten.div(c.g, c.self))
formula("log1p", self=lambda c: aten.div(c.g, aten.add(c.self, 1)))
formula("expm1", self=lambda c: aten.mul(c.g, aten.add(c.result, 1)))
formula("sqrt", self=lambda c: aten.div(c.g, aten.mul.Scalar(c.result, 2)))
formula("rsqrt", self=lambda c: _times_power(aten.pow(c.result, 3), c.g))
formula("sin", self=lambda c: aten.mul(c.g, aten.cos(c.self)))
formula("cos", self=lambda c: aten.mul(c.g, aten.neg(aten.sin(c.self))))
formula("abs", self=lambda c: aten.mul(c.g, aten.sgn(c.self)))
formula("reciprocal", self=lambda c: _times_negative(aten.mul(c.result, c.result), c.g))
formula("tanh", self=lambda c: aten.tanh_backward(c.g, c.result))
formula("sigmoid", self=lambda c: aten.sigmoid_backward(c.g, c.result))
formula("relu", self=lambda c: aten.threshold_backward(c.g, c.result, 0))
formula(
    "threshold_backward",
    grad_output=lambda c: aten.threshold_backward(c.g, c.self, c.threshold),
    self=lambda c: aten.zeros_like(c.g),
)
formula(
    "tanh_backward",
    grad_output=lambda c: aten.tanh_backward(c.g, c.output),
    output=lambda c: aten.mul(c.g, aten.mul(aten.mul.Scalar(c.output, -2), c.grad_output)),
)
formula(
    "sigmoid_backward",
    grad_output=lambda c: aten.sigmoid_backward(c.g, c.output),
    output=lambda c: aten.mul(
        aten.mul(c.g, c.grad_output), aten.add.Scalar(aten.mul.Scalar(c.output, -2), 1)
    ),
)
formula("gelu", self=lambda c: aten.gelu_backward(c.g, c.self, approximate=c.approximate))
formula("silu", self=lambda c: aten.silu_backward(c.g, c.self))
formula("mish", self=lambda c: aten.mish_backward(c.g, c.self))
formula("hardswish", self=lambda c: aten.hardswish_backward(c.g, c.self))
formula("hardsigmoid", self=lambda c: aten.hardsigmoid_backward(c.g, c.self))
formula("hardtanh", self=lambda c: aten.hardtanh_backward(c.g, c.self, c.min_val, c.max_val))
formula("leaky_relu", self=lambda c: aten.leaky_relu_backward(c.g, c.self, c.negative_slope, False))
formula("softplus", self=lambda c: aten.softplus_backward(c.g, c.self, c.beta, c.threshold))
formula("elu", self=lambda c: aten.elu_backward(c.g, c.alpha, c.scale, c.input_scale, False, c.self))
formula("clone", "alias", "detach_copy", "lift", self=_same)
formula("_to_copy", self=lambda c: aten._to_copy(c.g, **c.options_of("self")))
formula("copy", "copy_", src=_same)


def _zero_like(c: Context, number: Any = 0) -> Tensor:
    spec = c.g.spec
    return aten.scalar_tensor(number, dtype=spec.dtype, layout=strided, device=spec.device)


formula(
    "where.self",
    self=lambda c: aten.where(c.condition, c.g, _zero_like(c)),
    other=lambda c: aten.where(c.condition, _zero_like(c), c.g),
)


def _within(c: Context) -> Any:
    zero, low, high = _zero_like(c, 0.0), c.min, c.max
    inside = None if low is None else aten.ge.Scalar(c.self, low)
    if high is not None:
        below = aten.le.Scalar(c.self, high)
        inside = below if inside is None else aten.logical_and_(inside, below)
    return aten.where(inside, c.g, zero)


formula("clamp.default", self=_within)
formula("clamp_min.default", self=lambda c: aten.where(aten.ge.Scalar(c.self, c.min), c.g, _zero_like(c)))
formula("clamp_max.default", self=lambda c: aten.where(aten.le.Scalar(c.self, c.max), c.g, _zero_like(c)))
formula("fill.Scalar", self=lambda c: aten.zeros_like(c.g))
formula("fill.Tensor", self=lambda c: aten.zeros_like(c.g), value=lambda c: aten.sum(c.g))
formula("zero", self=lambda c: aten.zeros_like(c.g))
formula("masked_fill.Scalar", self=lambda c: aten.masked_fill(c.g, c.mask, 0))


def _power(c: Context) -> Any:
    if c.exponent == 0:
        return aten.zeros_like(c.self)
    exponent = c.exponent if isinstance(c.exponent, complex) else float(c.exponent)
    return aten.mul(c.g, aten.mul.Scalar(aten.pow(c.self, exponent - 1), exponent))


formula("pow.Tensor_Scalar", self=_power)


def _larger(c: Context, compare: Any) -> Any:
    """The gradient of one of two operands, of which the larger or the smaller was chosen; ties share it."""
    half = aten.div.Scalar(c.g, 2)
    shared = aten.where(aten.eq(c.self, c.other), half, c.g)
    return aten.masked_fill_.Scalar(shared, compare(c.self, c.other), 0)


formula(
    "maximum",
    self=lambda c: (c.self, c.other, _larger(c, aten.lt))[2],
    other=lambda c: (c.self, c.other, _larger(c, aten.gt))[2],
)
formula(
    "minimum",
    self=lambda c: (c.self, c.other, _larger(c, aten.gt))[2],
    other=lambda c: (c.self, c.other, _larger(c, aten.lt))[2],
)

# ---- Reductions ----------------------------------------------------------------------------------------------------------


def _spread(g: Tensor, sizes: list[int], dims: Any, keepdim: bool) -> Tensor:
    """`g`, the gradient of a reduction over `dims`, repeated for all elements."""
    if not keepdim and sizes:
        for dim in sorted(d % len(sizes) for d in ([dims] if type(dims) is int else dims or ())):
            g = aten.unsqueeze(g, dim)
    return aten.expand(g, sizes)


def _averaged(g: Tensor, sizes: list[int], dims: Any) -> Tensor:
    dims = range(len(sizes)) if not dims else [dims] if type(dims) is int else dims
    return aten.div.Scalar(g, math.prod(sizes[d] for d in dims))


formula("sum.default", self=lambda c: aten.expand(c.g, c.sizes_of("self")))
formula("sum.dim_IntList", self=lambda c: _spread(c.g, c.sizes_of("self"), c.dim, c.keepdim))
formula(
    "mean.default", self=lambda c: _averaged(aten.expand(c.g, c.sizes_of("self")), c.sizes_of("self"), None)
)
formula(
    "mean.dim",
    self=lambda c: _averaged(
        _spread(c.g, c.sizes_of("self"), c.dim, c.keepdim), c.sizes_of("self"), c.dim
    ),
)  # fmt: skip


def _spread_moment(c: Context) -> Any:
    """The gradient of the variance: (2 / (n - correction)) * g * (self - mean)."""
    sizes, dims = c.sizes_of("self"), c.dim
    correction = 1 if c.correction is None else c.correction
    g, number = c.g, 2.0 / (math.prod(sizes[d] for d in dims or range(len(sizes))) - correction)
    if dims and not c.keepdim:
        for dim in sorted(d % len(sizes) for d in dims):
            g = aten.unsqueeze(g, dim)
    mean = aten.mean.dim(c.self, list(dims), True) if dims else aten.mean(c.self)
    centered = aten.sub(c.self, mean)
    return aten.mul(aten.mul.Scalar(g, number), centered)


def _spread_deviation(c: Context) -> Any:
    g = aten.div(c.g, aten.mul.Scalar(c.result, 2))
    c.g = aten.masked_fill_(g, aten.eq.Scalar(c.result, 0), 0)
    return _spread_moment(c)


formula("var.correction", self=lambda c: (c.self, _spread_moment(c))[1])
formula("std.correction", self=lambda c: (c.self, c.result, _spread_deviation(c))[2])


def _to_ties(c: Context) -> Any:
    """The gradient of extrema, split among the elements that are equal to them."""
    sizes, result, g = c.sizes_of("self"), c.result, c.g
    dims = [d % len(sizes) for d in c.dim] if sizes and len(c.dim) else list(range(len(sizes)))
    if not c.keepdim:
        shape = [1 if d in dims else size for d, size in enumerate(sizes)]
        result = aten.view(result, shape)
    mask = aten.eq(result, c.self)
    if not c.keepdim:
        g = aten.view(g, shape)
    return aten.mul(aten.div(g, aten.sum.dim_IntList(mask, list(c.dim), True)), mask)


def _to_index(c: Context) -> Any:
    """The gradient of the elements that an extremum over one dim chose."""
    sizes, g, index = c.sizes_of("self"), c.gs[0], c.result1
    dim = c.dim % max(len(sizes), 1)
    if not c.keepdim and sizes:
        g, index = aten.unsqueeze(g, dim), aten.unsqueeze(index, dim)
    return aten.scatter(aten.new_zeros(g, sizes), dim, index, g)


def _to_exponentials(c: Context) -> Any:
    g, result = c.g, c.result
    if not c.keepdim:
        for dim in sorted(d % len(c.sizes_of("self")) for d in c.dim):
            g = aten.unsqueeze(g, dim)
        for dim in sorted(d % len(c.sizes_of("self")) for d in c.dim):
            result = aten.unsqueeze(result, dim)
    return aten.mul(g, aten.exp(aten.sub(c.self, result)))


formula("amax", "amin", self=lambda c: (c.self, c.result, _to_ties(c))[2])
formula("max.dim", "min.dim", "median.dim", "mode", self=lambda c: (c.result1, _to_index(c))[1])
formula("cumsum", self=lambda c: aten.flip(aten.cumsum(aten.flip(c.g, [c.dim]), c.dim), [c.dim]))
formula("logsumexp", self=lambda c: (c.self, c.result, _to_exponentials(c))[2])
formula("_softmax", self=lambda c: aten._softmax_backward_data(c.g, c.result, c.dim, c.dtype_of("self")))
formula(
    "_log_softmax", self=lambda c: aten._log_softmax_backward_data(c.g, c.result, c.dim, c.dtype_of("self"))
)

# ---- Products ------------------------------------------------------------------------------------------------------------


def _is_transposed(c: Context, name: str) -> bool:
    (rows, columns), (down, right) = c.sizes_of(name), c.strides_of(name)
    return down == 1 and right == rows and (rows, columns) != (1, 1)


def _first_factor(c: Context, first: str, other: Tensor) -> Any:
    """The gradient of the first factor of a product with `other`, in the order of memory of that factor."""
    if _is_transposed(c, first):
        return aten.t(aten.mm(other, aten.t(c.g)))
    return aten.mm(c.g, aten.t(other))


def _second_factor(c: Context, second: str, other: Tensor) -> Any:
    """The gradient of the second factor of a product with `other`, in the order of memory of that factor."""
    if _is_transposed(c, second):
        return aten.t(aten.mm(aten.t(c.g), other))
    return aten.mm(aten.t(other), c.g)


formula(
    "mm",
    self=lambda c: _first_factor(c, "self", c.mat2),
    mat2=lambda c: _second_factor(c, "mat2", c.self),
)
formula(
    "addmm",
    mat1=lambda c: _times(_first_factor(c, "mat1", c.mat2), c.alpha),
    mat2=lambda c: _times(_second_factor(c, "mat2", c.mat1), c.alpha),
    self=lambda c: _times(c.g, c.beta),
)
formula(
    "bmm",
    self=lambda c: aten.bmm(c.g, aten.transpose(c.mat2, 1, 2)),
    mat2=lambda c: aten.bmm(aten.transpose(c.self, 1, 2), c.g),
)
formula(
    "baddbmm",
    batch1=lambda c: _times(aten.bmm(c.g, aten.transpose(c.batch2, 1, 2)), c.alpha),
    batch2=lambda c: _times(aten.bmm(aten.transpose(c.batch1, 1, 2), c.g), c.alpha),
    self=lambda c: _times(c.g, c.beta),
)
formula("dot", self=lambda c: aten.mul(c.g, c.tensor), tensor=lambda c: aten.mul(c.g, c.self))

# ---- Views and copies that move elements -----------------------------------------------------------------------------------


def reshaped(x: Tensor, sizes: Sequence[int]) -> Tensor:
    """`x.reshape(sizes)`, as a view if there is one."""
    sizes = [int(size) for size in sizes]
    if -1 in sizes:
        rest = -math.prod(sizes)
        sizes[sizes.index(-1)] = x.numel() // rest if rest else 0
    if can_view(x, sizes):
        return aten.view(x, sizes)
    return aten._unsafe_view(aten.clone(x, memory_format=contiguous_format), sizes)


def can_view(x: Tensor, sizes: Sequence[int]) -> bool:
    """Whether these sizes fit the memory of `x` without a copy."""
    from ...core.view_rules import view

    try:
        view(x.spec, tuple(sizes))
    except RuntimeError:
        return False
    return True


def _inverse(dims: Sequence[int]) -> list[int]:
    result = [0] * len(dims)
    for place, dim in enumerate(dims):
        result[dim % len(dims)] = place
    return result


def _squeezed_back(c: Context, dims: Sequence[int]) -> Any:
    sizes, g = c.sizes_of("self"), c.g
    for dim in sorted(d % len(sizes) for d in dims if sizes):
        if sizes[dim] == 1:
            g = aten.unsqueeze(g, dim)
    return g


def _pieces(c: Context) -> list[Any]:
    """The gradients of the tensors that were put one after the other."""
    dim, start, pieces = c.dim, 0, []
    for spec in c.tensors_specs:
        pieces.append(aten.slice(c.g, dim % c.g.ndim, start, start + spec.shape[dim]))
        start += spec.shape[dim]
    return pieces


def _summed_repeats(c: Context) -> Any:
    """The gradient of a tensor that was repeated: the sum over its repetitions."""
    sizes, repeats, g = c.sizes_of("self"), list(c.repeats), c.g
    if 0 in repeats:
        return aten.zeros(sizes, **c.options_of("self"))
    leading = len(repeats) - len(sizes)
    for _ in range(leading):
        g = aten.sum.dim_IntList(g, [0])
    parts: list[int] = []
    dims = []
    for count, size in zip(repeats[leading:], sizes, strict=True):
        if count != 1:
            dims.append(len(parts))
            parts.append(count)
        parts.append(size)
    return aten.sum.dim_IntList(reshaped(g, parts), dims) if dims else g


formula("t", self=lambda c: aten.t(c.g))
formula("repeat", self=_summed_repeats)
formula("transpose.int", self=lambda c: aten.transpose(c.g, c.dim0, c.dim1))
formula("permute", self=lambda c: aten.permute(c.g, _inverse(c.dims)))
formula("view", "_unsafe_view", "_reshape_alias", self=lambda c: reshaped(c.g, c.sizes_of("self")))
formula("expand", self=lambda c: summed_to(c.g, c.sizes_of("self")))
formula("unsqueeze", self=lambda c: aten.squeeze(c.g, c.dim))
formula("squeeze.default", self=lambda c: _squeezed_back(c, range(len(c.sizes_of("self")))))
formula("squeeze.dim", self=lambda c: _squeezed_back(c, [c.dim]))
formula("squeeze.dims", self=lambda c: _squeezed_back(c, c.dim))
formula("slice_backward", grad_output=lambda c: aten.slice(c.g, c.dim, c.start, c.end, c.step))
formula("select_backward", grad_output=lambda c: aten.select(c.g, c.dim, c.index))
formula("select.int", self=lambda c: aten.select_backward(c.g, c.sizes_of("self"), c.dim, c.index))
formula(
    "slice.Tensor",
    self=lambda c: aten.slice_backward(
        c.g,
        c.sizes_of("self"),
        c.dim,
        *slice(c.start, c.end).indices(c.sizes_of("self")[c.dim])[:2],
        c.step,
    ),
)


def _joined(c: Context) -> Any:
    """The gradient of a tensor that was cut into pieces; some pieces may have none."""
    parts = [
        aten.zeros(list(shape), **c.options_of("self")) if g is None else g
        for g, shape in zip(c.gs, c.result_shapes, strict=True)
    ]
    return aten.cat(parts, c.dim)


def _stacked(c: Context) -> Any:
    parts = [
        aten.zeros(list(shape), **c.options_of("self")) if g is None else g
        for g, shape in zip(c.gs, c.result_shapes, strict=True)
    ]
    return aten.stack(parts, c.dim)


formula("cat", tensors=_pieces)
formula(
    "stack",
    tensors=lambda c: [aten.select(c.g, c.dim % c.g.ndim, k) for k in range(len(c.tensors_specs))],
)
formula("split", "split_with_sizes", self=_joined)
formula("unbind", self=_stacked)


def _put_back(c: Context) -> Any:
    zeros = aten.new_zeros(c.g, c.sizes_of("self"), **c.options_of("self"))
    return aten.index_put(zeros, c.indices, c.g, True)


formula(
    "index_put",
    self=lambda c: c.g if c.accumulate else aten.index_put(c.g, c.indices, aten.zeros_like(c.values), False),
    values=lambda c: aten.index(c.g, c.indices),
)
formula("index.Tensor", self=lambda c: (c.indices, _put_back(c))[1])
formula(
    "gather",
    self=lambda c: aten.scatter_add(aten.new_zeros(c.g, c.sizes_of("self")), c.dim, c.index, c.g),
)
formula("flip", self=lambda c: aten.flip(c.g, c.dims))
formula("tril", self=lambda c: aten.tril(c.g, c.diagonal))
formula("triu", self=lambda c: aten.triu(c.g, c.diagonal))
formula("constant_pad_nd", self=lambda c: aten.constant_pad_nd(c.g, [-each for each in c.pad]))
formula(
    "embedding",
    weight=lambda c: aten.embedding_dense_backward(
        c.g, c.indices, c.sizes_of("weight")[0], c.padding_idx, c.scale_grad_by_freq
    ),
)

# ---- Layers and losses -----------------------------------------------------------------------------------------------------


formula("mse_loss", self=lambda c: aten.mse_loss_backward(c.g, c.self, c.target, c.reduction))
formula(
    "nll_loss_forward",
    self=lambda c: aten.nll_loss_backward(
        c.gs[0], c.self, c.target, c.weight, c.reduction, c.ignore_index, c.result1
    ),
)


formula(
    "smooth_l1_loss", self=lambda c: aten.smooth_l1_loss_backward(c.g, c.self, c.target, c.reduction, c.beta)
)
formula("huber_loss", self=lambda c: aten.huber_loss_backward(c.g, c.self, c.target, c.reduction, c.delta))
formula(
    "max_pool2d_with_indices",
    self=lambda c: aten.max_pool2d_with_indices_backward(
        c.gs[0], c.self, c.kernel_size, c.stride, c.padding, c.dilation, c.ceil_mode, c.result1
    ),
)
formula(
    "avg_pool2d",
    self=lambda c: aten.avg_pool2d_backward(
        c.g, c.self, c.kernel_size, c.stride, c.padding, c.ceil_mode, c.count_include_pad, c.divisor_override
    ),
)


def _normalized(c: Context) -> Sequence[Any]:
    wanted = [name in c.wanted for name in ("input", "weight", "bias")]
    return aten.native_layer_norm_backward(
        c.gs[0], c.input, c.normalized_shape, c.result1, c.result2, c.weight, c.bias, wanted
    )


def _convolved(c: Context) -> Sequence[Any]:
    wanted = [name in c.wanted for name in ("input", "weight", "bias")]
    biases = c.sizes_of("bias") if "bias" in c._specs else None
    return aten.convolution_backward(
        c.g, c.input, c.weight, biases, c.stride, c.padding, c.dilation, c.transposed, c.output_padding,
        c.groups, wanted,
    )  # fmt: skip


def _batch_normalized(c: Context) -> Sequence[Any]:
    wanted = [name in c.wanted for name in ("input", "weight", "bias")]
    return aten.native_batch_norm_backward(
        c.gs[0],
        c.input,
        c.weight,
        c.running_mean,
        c.running_var,
        c.result1,
        c.result2,
        c.training,
        c.eps,
        wanted,
    )


def _group_normalized(c: Context) -> Sequence[Any]:
    wanted = [name in c.wanted for name in ("input", "weight", "bias")]
    g = c.gs[0]
    if not g.is_contiguous():
        g = aten.clone(g, memory_format=contiguous_format)
    return aten.native_group_norm_backward(
        g, c.input, c.result1, c.result2, c.weight, c.N, c.C, c.HxW, c.group, wanted
    )


def _attended(c: Context) -> Sequence[Any]:
    return aten._scaled_dot_product_flash_attention_for_cpu_backward(
        c.gs[0], c.query, c.key, c.value, c.result, c.result1, c.dropout_p, c.is_causal, attn_mask=c.attn_mask,
        scale=c.scale,
    )  # fmt: skip


formula("_adaptive_avg_pool2d", self=lambda c: aten._adaptive_avg_pool2d_backward(c.g, c.self))
formula("log_sigmoid_forward", self=lambda c: aten.log_sigmoid_backward(c.gs[0], c.self, c.result1))
formula(
    "im2col",
    self=lambda c: aten.col2im(
        c.g, c.sizes_of("self")[-2:], c.kernel_size, c.dilation, c.padding, c.stride
    ),
)  # fmt: skip


def _resized(name: str, *options: str) -> None:
    """The formula of a resizing operator, whose backward operator takes its options."""
    backward = getattr(aten, f"{name}_backward")

    def resized(c: Context) -> Any:
        return backward(c.g, c.output_size, c.sizes_of("self"), *(getattr(c, each) for each in options))

    resized.reads = set()  # type: ignore[attr-defined]
    formula(name, self=resized)


_resized("upsample_nearest1d", "scales")
_resized("upsample_nearest2d", "scales_h", "scales_w")
_resized("upsample_nearest3d", "scales_d", "scales_h", "scales_w")
_resized("upsample_linear1d", "align_corners", "scales")
_resized("upsample_bilinear2d", "align_corners", "scales_h", "scales_w")
_resized("upsample_bicubic2d", "align_corners", "scales_h", "scales_w")
_resized("upsample_trilinear3d", "align_corners", "scales_d", "scales_h", "scales_w")

# Operators with one formula for the gradients of several arguments.
JOINT: dict[str, tuple[tuple[str, ...], Formula]] = {
    "native_batch_norm": (("input", "weight", "bias"), _batch_normalized),
    "native_group_norm": (("input", "weight", "bias"), _group_normalized),
    "_scaled_dot_product_flash_attention_for_cpu": (("query", "key", "value"), _attended),
    "_prelu_kernel": (("self", "weight"), lambda c: aten._prelu_kernel_backward(c.g, c.self, c.weight)),
    "native_layer_norm": (("input", "weight", "bias"), _normalized),
    "convolution": (("input", "weight", "bias"), _convolved),
}
