"""Defines activation functions of `torch.nn.functional`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core.arguments import wrong_type
from ...core.checking import check_tensor
from ...core.derivative import round_once
from ...core.dtype import LEGACY_NAMES, int64
from ...core.entry import entry
from ...core.limits import check_number, largest
from ...core.names import named
from ...core.public import public
from ...core.registry import FUNCTIONS, add_function
from ...core.tensor import Tensor
from ...engine import scalar as s
from ...families.calls import shortcut
from ...families.custom_vjp import custom_vjp
from ...families.map import NO_COMPLEX, ONLY_FLOATS, Map, not_a_tensor, refuse, same_dtype, to_float
from ..assembly.joining import cat
from .arithmetic import SUB
from .comparison import CLAMP, bounded
from .pointwise import OPS, RELU
from .pointwise import relu as relu_function

SQRT_HALF = math.sqrt(0.5)
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def _gelu(a):
    """Compute `a` times the cumulative normal distribution at `a`."""
    return a * s.normal_cdf(a)


def _gelu_tanh(a):
    inner = (a + a * a * a * 0.044715) * math.sqrt(2 / math.pi)
    return a * 0.5 * (s.tanh(inner) + 1.0)


def _silu(a):
    return a * s.sigmoid(a)


def _mish(a):
    return a * s.tanh(s.log1p(s.exp(a)))


def _softplus(a, beta, threshold):
    scaled = a * beta
    return s.where(threshold < scaled, a, s.log1p(s.exp(scaled)) / beta)


def _elu(a, alpha, scale, input_scale):
    return s.where(a <= 0, s.expm1(a * input_scale) * alpha * scale, a * scale)


def _logsigmoid(a):
    return s.minimum(a, 0.0) - s.log1p(s.exp(-s.absolute(a)))


def _hardsigmoid(a):
    return s.minimum(s.maximum(a + 3.0, 0.0), 6.0) / 6.0


def _softshrink(a, lambd):
    shrunk = s.where(lambd < a, a - lambd, s.where(a < -lambd, a + lambd, s.as_expr(0.0, a)))
    return s.where(s.isnan(a), a, shrunk)


def _hardshrink(a, lambd):
    return s.where((-lambd <= a) & (a <= lambd), s.as_expr(0.0, a), a)


def _leaky(a, slope):
    return s.where(s.as_expr(0, a) < a, a, a * slope)


# ---- Derivatives that do not fit a row ---------------------------------------------------------------------------------


def _gelu_rule(ct, out, a):
    area = 0.5 * ((a * SQRT_HALF).erf() + 1)
    density = (a * a * -0.5).exp() / math.sqrt(2 * math.pi)
    return ct * (area + a * density)


def _gelu_tanh_rule(ct, out, a):
    square = a * a
    tanh = ((a + a * square * 0.044715) * math.sqrt(2 / math.pi)).tanh()
    slope = (1 + square * (3 * 0.044715)) * math.sqrt(2 / math.pi)
    return ct * (0.5 * (1 + tanh) + 0.5 * a * (1 - tanh * tanh) * slope)


def _silu_rule(ct, out, a):
    gate = a.sigmoid()
    return ct * (gate * (1 + a * (1 - gate))).conj()


def _mish_rule(ct, out, a):
    tanh = a.exp().log1p().tanh()
    return ct * (tanh + a * a.sigmoid() * (1 - tanh * tanh))


def _elu_rule(ct, out, a, alpha, scale, input_scale):
    power = (a * input_scale).masked_fill(a >= 0, 0).exp()  # positive numbers are not used and would overflow
    return (ct * (alpha * scale * input_scale) * power).where(a <= 0, ct * scale)


def _elu_rule_in_place(ct, out, a, alpha, scale, input_scale):
    return (ct * (out + alpha * scale) * input_scale).where(out <= 0, ct * scale)


def _hardswish_rule(ct, out, a):
    return (ct * (a / 3 + 0.5)).where(a < 3, ct).masked_fill(a <= -3, 0)


def _softsign_rule(ct, out, a):
    size = a.abs() + 1
    of_size = -ct * (a / size / size).conj()
    return ct / size + (of_size.real if a.is_complex() else of_size) * a.sgn()


# fmt: off
GELU        = Map("gelu",        same_dtype, _gelu,                                     check=ONLY_FLOATS,       derivative=round_once(_gelu_rule))
GELU_TANH   = Map("gelu",        same_dtype, _gelu_tanh,                                check=ONLY_FLOATS,       derivative=round_once(_gelu_tanh_rule))
SILU        = Map("silu",        same_dtype, _silu,                                     check=refuse("bui"),     derivative=round_once(_silu_rule))
MISH        = Map("mish",        same_dtype, _mish,                                     check=ONLY_FLOATS,       derivative=round_once(_mish_rule))
SOFTPLUS    = Map("softplus",    same_dtype, _softplus,            deciding=1, wide=True, limited=True, check=ONLY_FLOATS,
                  derivative=round_once(lambda ct, out, a, beta, threshold: ct.where(a * beta > threshold, ct * (a * beta).sigmoid())))
ELU         = Map("elu",         same_dtype, _elu,                 deciding=1, wide=True, limited=True, check=ONLY_FLOATS,     derivative=round_once(_elu_rule))
CELU        = Map("celu",        same_dtype, _elu,                 deciding=1, wide=True, limited=True, check=ONLY_FLOATS,     derivative=round_once(_elu_rule))
LEAKY_RELU  = Map("leaky_relu",  same_dtype, _leaky,               deciding=1, wide=True, limited=True, check=ONLY_FLOATS,
                  derivative=lambda ct, out, a, slope: ct.where(a > 0, ct * slope))
LOGSIGMOID  = Map("logsigmoid",  same_dtype, _logsigmoid,                               check=ONLY_FLOATS, contiguous=True, node_name="LogSigmoidBackward0",
                  derivative=round_once(lambda ct, out, a: ct * (-a).sigmoid()))
HARDSIGMOID = Map("hardsigmoid", same_dtype, _hardsigmoid,                              check=ONLY_FLOATS,
                  derivative=round_once(lambda ct, out, a: (ct / 6).where((a > -3) & (a < 3), 0)))
HARDSWISH   = Map("hardswish",   same_dtype, lambda a: a * _hardsigmoid(a),             check=ONLY_FLOATS,       derivative=round_once(_hardswish_rule))
SOFTSIGN    = Map("softsign",    to_float, lambda a: a / (s.absolute(a) + 1.0),       check=refuse("b"),       derivative=_softsign_rule, node_name="DivBackward0")
HARDSHRINK  = Map("hardshrink",  same_dtype, _hardshrink,          deciding=1, limited=True, check=ONLY_FLOATS,
                  derivative=lambda ct, out, a, lambd: ct.masked_fill((a >= -lambd) & (a <= lambd), 0))
SOFTSHRINK  = Map("softshrink",  same_dtype, _softshrink,          deciding=1, wide=True, limited=True, check=ONLY_FLOATS,
                  derivative=lambda ct, out, a, lambd: ct.masked_fill((a >= -lambd) & (a <= lambd), 0))
THRESHOLD   = Map("threshold",   same_dtype, lambda a, threshold, value: s.where(a <= threshold, value, a), deciding=1, wide=True, limited=True, check=NO_COMPLEX,
                  derivative=lambda ct, out, a, threshold, value: ct.masked_fill(a <= threshold, 0))
PRELU       = Map("prelu",       same_dtype, _leaky,                                    check=ONLY_FLOATS,       node_name="PreluKernelBackward0",
                  derivative=(lambda ct, out, a, b: ct.where(a > 0, ct * b),
                              lambda ct, out, a, b: (ct * a).masked_fill(a > 0, 0)))
HARDTANH    = Map("hardtanh",    same_dtype, CLAMP.element,                             check=CLAMP.check,
                  derivative=lambda ct, out, a, low, high: ct.masked_fill((a <= low) | (a >= high), 0))
# In-place forms overwrite their input, so their rules use the result. It has the sign of the input unless the factor for
# negative numbers is negative.
_IN_PLACE = {
    ELU:        Map("elu",        same_dtype, _elu,   deciding=1, wide=True, limited=True, check=ONLY_FLOATS, derivative=round_once(_elu_rule_in_place)),
    CELU:       Map("celu",       same_dtype, _elu,   deciding=1, wide=True, limited=True, check=ONLY_FLOATS, derivative=round_once(_elu_rule_in_place)),
    LEAKY_RELU: Map("leaky_relu", same_dtype, _leaky, deciding=1, wide=True, limited=True, check=ONLY_FLOATS,
                    derivative=lambda ct, out, a, slope: ct.where(out > 0, ct * slope)),
}
# fmt: on
for _op in (GELU, SILU, MISH, SOFTPLUS, ELU, LEAKY_RELU, LOGSIGMOID, HARDSIGMOID, HARDSWISH, SOFTSIGN, PRELU):
    OPS[_op.name] = _op


def _finish(op: Map, operands: Sequence[Any], inplace: bool) -> Tensor:
    if type(operands[0]) is not Tensor and not isinstance(operands[0], Tensor):
        raise not_a_tensor(op.name, 0, operands[0])
    if not inplace:
        return op(*operands)
    if op in _IN_PLACE and operands[1] >= 0:
        op = _IN_PLACE[op]
    return op.inplace(*operands)


@public(name="nn.functional.gelu")
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """input times the cumulative standard normal distribution at input; `approximate="tanh"` computes it by a tanh."""
    if type(approximate) is not str:
        raise wrong_type(approximate, "gelu", "approximate", "str")
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"approximate argument must be either none or tanh: {approximate!r}")
    return (GELU if approximate == "none" else GELU_TANH)(input)


shortcut(gelu, GELU, 1)


@public(name="nn.functional.silu", checks=False)
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute input * sigmoid(input)."""
    return _finish(SILU, (input,), inplace)


shortcut(silu, SILU, 1)


@public(name="nn.functional.mish", checks=False)
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute input * tanh(softplus(input))."""
    return _finish(MISH, (input,), inplace)


shortcut(mish, MISH, 1)


@public(name="nn.functional.softplus", out=True)
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Compute log(1 + exp(beta input)) / beta; input itself where beta * input > threshold."""
    return SOFTPLUS(input, float(beta), float(threshold))


@public(name="nn.functional.elu")
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return `input` where positive, else alpha * (exp(input) - 1)."""
    return _finish(ELU, (input, float(alpha), 1.0, 1.0), inplace)


@public("function", "nn.functional.selu", checks=False)
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """A scaled `elu`, whose constants keep mean 0 and variance 1."""
    return _finish(ELU, (input, SELU_ALPHA, SELU_SCALE, 1.0), inplace)


@public("function", "nn.functional.celu")
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """input where positive, else alpha * (exp(input / alpha) - 1). Raises: RuntimeError for alpha = 0."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _finish(CELU, (input, float(alpha), 1.0, 1.0 / alpha), inplace)


@public(name="nn.functional.leaky_relu")
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return `input` where positive, else negative_slope * input."""
    return _finish(LEAKY_RELU, (input, float(negative_slope)), inplace)


@public(name="nn.functional.relu", checks=False)
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute max(input, 0) of each element."""
    return _finish(RELU, (input,), True) if inplace else relu_function(input)


@public(name="nn.functional.hardtanh")
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Clamp to [min_val, max_val]. Raises: RuntimeError for bools, and for unsigned types with negative limits."""
    dtype = input.spec.dtype
    if dtype.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if dtype.kind in "ui":
        for bound in (min_val, max_val):
            check_number(bound, int64)
    if dtype.kind == "u" and (int(min_val) < 0 or int(max_val) < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if dtype.kind not in "ui":
        return _finish(*bounded(HARDTANH, input, float(min_val), float(max_val)), inplace)
    for bound in (min_val, max_val):
        check_number(int(bound), dtype)
    return _finish(HARDTANH, (input, int(min_val), int(max_val)), inplace)


@public(name="nn.functional.relu6", checks=False)
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Clamp to [0, 6]."""
    return hardtanh(input, 0.0, 6.0, inplace)


@public(name="nn.functional.hardsigmoid", checks=False)
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute (input + 3) / 6, clamped to [0, 1]."""
    return _finish(HARDSIGMOID, (input,), inplace)


@public(name="nn.functional.hardswish", checks=False)
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute input * hardsigmoid(input)."""
    return _finish(HARDSWISH, (input,), inplace)


@public(name="nn.functional.logsigmoid", out=True)
def logsigmoid(input: Tensor) -> Tensor:
    """Compute log(sigmoid(input))."""
    return LOGSIGMOID(input)


@public(name="nn.functional.softsign")
def softsign(input: Tensor) -> Tensor:
    """input / (1 + |input|); the sum has the dtype of integers, and wraps around."""
    return input / (input.abs() + 1) if input.spec.dtype.is_integral else SOFTSIGN(input)


@public(name="nn.functional.tanhshrink")
def tanhshrink(input: Tensor) -> Tensor:
    """Compute input - tanh(input)."""
    return SUB(input, OPS["tanh"](input))


@public("function method", "nn.functional.hardshrink", out=True)
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return 0 where |input| <= lambd, else `input`."""
    return HARDSHRINK(input, float(lambd))


@public(name="nn.functional.softshrink", out=True)
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """input moved towards 0 by lambd; 0 where |input| <= lambd. Raises: RuntimeError if lambd is negative or does not fit the dtype."""
    dtype = input.spec.dtype
    if dtype.is_floating_point and not 0 <= lambd <= largest(dtype):
        raise RuntimeError(
            f"lambda must be in range [0, {largest(dtype):g}] for input dtype {LEGACY_NAMES[dtype]}, but found {lambd:g}"
        )
    return SOFTSHRINK(input, float(lambd))


@public("function", "nn.functional.threshold", out=True)
def threshold(input: Tensor, threshold: complex, value: complex, inplace: bool = False) -> Tensor:
    """input where it is above `threshold`, else `value`."""
    return _finish(THRESHOLD, (input, threshold, value), inplace)


@public("function method", "nn.functional.prelu", autocast="lower")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """input where positive, else weight * input; `weight` has one element or one per channel (dim 1)."""
    check_tensor(weight, "prelu", "weight", 2)
    if input.spec.dtype is not weight.spec.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {input.spec.dtype.name} and {weight.spec.dtype.name}"
        )
    ndim = input.spec.ndim
    if weight.spec.ndim > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.spec.ndim}"
        )
    if weight.spec.numel != 1:
        if ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.spec.shape[1] if ndim > 1 else 1
        if channels != weight.spec.numel:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.spec.numel} "
                f"and channel size = {channels}."
            )
    sizes = [1] * ndim
    if ndim > 1:
        sizes[1] = weight.spec.numel
    return PRELU(input, weight.reshape(sizes))


def _inplace_form(name: str, function: Any) -> None:
    """Define `torch.name_` and `torch.nn.functional.name_`."""

    @entry
    @named(f"{name}_", function=name)
    def method(input, *args, **kwargs):
        """Apply `{function}` in place."""
        return function(input, *args, inplace=True, **kwargs)

    add_function(f"nn.functional.{name}_", method)
    if name in ("celu", "selu", "threshold"):
        add_function(f"{name}_", method)


for _name, _function in {
    "elu": elu, "selu": selu, "celu": celu, "leaky_relu": leaky_relu, "hardtanh": hardtanh, "threshold": threshold,
    "relu": relu,
}.items():  # fmt: skip
    _inplace_form(_name, _function)

# Functions that torch.nn.functional shares with torch.
for _name in ("sigmoid", "tanh"):
    add_function(f"nn.functional.{_name}", FUNCTIONS[_name])


def _glu_rule(ct, out, input, dim):
    values, gates = input.chunk(2, dim)
    gates = gates.sigmoid()
    return cat((ct * gates, ct * values * (gates * (1 - gates))), dim)


@custom_vjp(_glu_rule)
def GLU(input: Tensor, dim: int) -> Tensor:  # noqa: N802 (an op)
    values, gates = input.chunk(2, dim)
    return values * gates.sigmoid()


@public(name="nn.functional.glu")
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return one half of the input along `dim`, each element scaled by the sigmoid of its partner in the other half.

    Raises: RuntimeError if the size of `dim` is odd, or for a 0-dim tensor.
    Source: Dauphin et al. 2017, "Language modeling with gated convolutional networks".
    """
    if not input.dim():
        raise RuntimeError("glu does not support 0-dimensional tensors")
    size = input.size(dim)
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {size}")
    return GLU(input, dim)
