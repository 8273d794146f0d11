"""Attention in steps that are observed and quantized one by one."""

from __future__ import annotations

from typing import Any

from ..... import nn
from .....core.dtype import bool_, uint8
from .....core.grad_mode import no_grad
from .....core.registry import FUNCTIONS
from .....core.tensor import Tensor
from .....nn import functional as F
from .....ops.assembly.joining import cat

__all__ = ["MultiheadAttention"]
_PROJECTIONS = ("linear_Q", "linear_K", "linear_V")


class MultiheadAttention(nn.MultiheadAttention):
    """Attention with several heads, whose projections are linear layers. Products and softmax are computed in floats."""

    _FLOAT_MODULE: Any = nn.MultiheadAttention

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        from ....quantization.stubs import DeQuantStub, QuantStub  # these two import this module
        from ...quantized.modules.functional_modules import FloatFunctional

        options = dropout, bias, add_bias_kv, add_zero_attn, kdim, vdim, batch_first
        super().__init__(embed_dim, num_heads, *options, device=device, dtype=dtype)
        self.out_proj: Any = nn.Linear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        for name, size in zip(_PROJECTIONS, (embed_dim, self.kdim, self.vdim), strict=True):
            setattr(self, name, nn.Linear(size, embed_dim, bias=bias, device=device, dtype=dtype))
        self.q_scaling_product = FloatFunctional()
        self.quant_attn_output, self.quant_attn_output_weights = QuantStub(), QuantStub()
        self.dequant_q, self.dequant_k, self.dequant_v = DeQuantStub(), DeQuantStub(), DeQuantStub()

    def _get_name(self) -> str:
        return "QuantizableMultiheadAttention"

    # ---- The steps ---------------------------------------------------------------------------------------------------

    def forward(  # type: ignore[override]  # PyTorch's signature
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None, need_weights: bool = True,
        attn_mask: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        if attn_mask is not None and is_causal:
            raise AssertionError("Only allow causal mask or attn_mask")
        if is_causal:
            raise AssertionError("causal mask not supported by AO MHA module")
        if self.batch_first:
            query, key, value = (each.transpose(0, 1) for each in (query, key, value))
        n_queries, batch, _ = query.shape
        q, k, v = (
            getattr(self, name)(each) for name, each in zip(_PROJECTIONS, (query, key, value), strict=True)
        )
        q = self.q_scaling_product.mul_scalar(q, float(self.head_dim) ** -0.5)
        if self.bias_k is not None and self.bias_v is not None:
            k, v = (
                cat([each, bias.repeat(1, batch, 1)]) for each, bias in ((k, self.bias_k), (v, self.bias_v))
            )
        q, k, v = (
            each.contiguous().view(-1, batch * self.num_heads, self.head_dim).transpose(0, 1)
            for each in (q, k, v)
        )
        if self.add_zero_attn:
            k, v = (cat([each, _zeros_like_row(each)], 1) for each in (k, v))
        q, k, v = self.dequant_q(q), self.dequant_k(k), self.dequant_v(v)
        logits = q @ k.transpose(1, 2) + self._mask(attn_mask, key_padding_mask, batch, n_queries, k.shape[1])
        weights = F.dropout(logits.softmax(-1), self.dropout, self.training)
        output = (weights @ v).transpose(0, 1).reshape(n_queries, batch, self.embed_dim)
        output = output.transpose(0, 1).contiguous() if self.batch_first else output
        output = self.out_proj(self.quant_attn_output(output))
        weights = self.quant_attn_output_weights(weights)
        if not need_weights:
            return output, None
        weights = weights.view(batch, self.num_heads, n_queries, -1)
        return output, weights.mean(1) if average_attn_weights else weights

    def _mask(
        self, mask: Tensor | None, padding: Tensor | None, batch: int, n_queries: int, n_keys: int
    ) -> Any:
        """What is added to the logits [N * heads, queries, keys]: -inf where a key is not seen."""
        found: Any = 0.0
        if mask is not None:
            if mask.dim() == 2:
                mask = mask.unsqueeze(0)
            heads = batch * self.num_heads
            if mask.dim() != 3 or mask.shape[0] not in (1, heads) or mask.shape[1] != n_queries:
                raise RuntimeError(
                    f"the shape of attn_mask is {list(mask.shape)}: expected [{n_queries}, keys] or [{heads}, {n_queries}, keys]"
                )
            found = found + _widened(_as_numbers(mask), n_keys)
        if padding is not None:
            rows = _widened(_as_numbers(padding), n_keys)
            rows = rows.view(batch, 1, 1, n_keys).expand(batch, self.num_heads, 1, n_keys)
            found = found + rows.reshape(-1, 1, n_keys)
        return found

    # ---- From floats and back ----------------------------------------------------------------------------------------

    def _projection_weights(self: Any) -> list[Tensor]:
        """The weights of the query, the key and the value, as the layer of floats has them."""
        if self._qkv_same_embed_dim:
            return list(self.in_proj_weight.chunk(3))
        return [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]

    @classmethod
    def from_float(cls, other: Any) -> Any:
        """The observed layer of a layer of floats that has a QConfig."""
        from ....quantization.quantize import prepare, prepare_qat  # that module imports this one

        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"Expected module type {cls._FLOAT_MODULE}, got {type(other)}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        has_bias = other.in_proj_bias is not None
        options = (
            has_bias,
            other.bias_k is not None,
            other.add_zero_attn,
            other.kdim,
            other.vdim,
            other.batch_first,
        )
        made = cls(other.embed_dim, other.num_heads, other.dropout, *options)
        made.load_state_dict(other.state_dict(), strict=False)
        biases = other.in_proj_bias.chunk(3) if has_bias else [None] * 3
        for name, weight, bias in zip(_PROJECTIONS, cls._projection_weights(other), biases, strict=True):
            layer = getattr(made, name)
            layer.weight = nn.Parameter(weight.detach().clone())
            layer.bias = None if bias is None else nn.Parameter(bias.detach().clone())
        made.qconfig = other.qconfig
        made.train(other.training)
        return prepare_qat(made, inplace=True) if other.training else prepare(made, inplace=True)

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """Not of this class: `torch.ao.nn.quantized.MultiheadAttention.from_observed` makes the quantized layer."""
        raise NotImplementedError(
            "It looks like you are trying to prepare an MHA module. Please, see the examples on quantizable MHAs."
        )

    def dequantize(self) -> nn.MultiheadAttention:
        """The layer of floats with the numbers of a quantized layer's weights."""
        has_bias = self.linear_Q._weight_bias()[1] is not None
        options = (
            has_bias,
            self.bias_k is not None,
            self.add_zero_attn,
            self.kdim,
            self.vdim,
            self.batch_first,
        )
        made: Any = self._FLOAT_MODULE._FLOAT_MODULE(self.embed_dim, self.num_heads, self.dropout, *options)
        with no_grad():
            biases = made.in_proj_bias.chunk(3) if has_bias else [None] * 3
            targets = [*zip(_PROJECTIONS, MultiheadAttention._projection_weights(made), biases, strict=True)]
            for name, weight, bias in [*targets, ("out_proj", made.out_proj.weight, made.out_proj.bias)]:
                own_weight, own_bias = getattr(self, name)._weight_bias()
                weight.copy_(own_weight.dequantize())
                if own_bias is not None:
                    bias.copy_(own_bias)
            for name in ("bias_k", "bias_v"):
                if getattr(self, name) is not None:
                    getattr(made, name).copy_(getattr(self, name).dequantize())
        return made


def _zeros_like_row(x: Tensor) -> Tensor:
    """Zeros [N, 1, features], quantized as `x` is."""
    if not x.is_quantized:
        return x.new_zeros(x.shape[0], 1, x.shape[2])
    row = x.dequantize().new_zeros(x.shape[0], 1, x.shape[2])
    return FUNCTIONS["quantize_per_tensor"](row, x.q_scale(), x.q_zero_point(), x.dtype)


def _as_numbers(mask: Tensor) -> Tensor:
    """A mask of booleans or of uint8 as numbers: -inf where it is true. Masks of floats are numbers already."""
    if mask.dtype is uint8:
        mask = mask.to(bool_)
    if mask.dtype is not bool_:
        return mask
    return FUNCTIONS["zeros"](mask.shape).masked_fill(mask, float("-inf"))


def _widened(mask: Tensor, n_keys: int) -> Tensor:
    """The mask with zeros for the keys that the layer has added."""
    return F.pad(mask, (0, n_keys - mask.shape[-1]))
