"""Activation layers, which call functions of `weft.nn.functional`."""

from __future__ import annotations

import warnings
from typing import Any

from ...autograd.parameter import Parameter
from ...core.dtype import DType
from ...core.names import name_public
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ...core.warn import user_level
from ...ops.creation.creation import empty
from .. import functional as F
from .. import init
from ..module import Module
from .attention import MultiheadAttention
from .utils import shown

# fmt: off
__all__ = [
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
    "LogSoftmax", "Mish", "MultiheadAttention", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid",
    "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]
# fmt: on

_sigmoid, _tanh = FUNCTIONS["sigmoid"], FUNCTIONS["tanh"]

# ---- Without arguments ---------------------------------------------------------------------------------------------


class Sigmoid(Module):
    """Computes 1 / (1 + exp(-x)).

    Shapes: any -> the same.

    >>> import weft as torch
    >>> torch.nn.Sigmoid()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([0.2689, 0.5000, 0.8808])
    """

    def forward(self, input: Tensor) -> Tensor:
        return _sigmoid(input)


class Tanh(Module):
    """Computes the hyperbolic tangent.

    Shapes: any -> the same.

    >>> import weft as torch
    >>> torch.nn.Tanh()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.7616,  0.0000,  0.9640])
    """

    def forward(self, input: Tensor) -> Tensor:
        return _tanh(input)


class LogSigmoid(Module):
    """Computes log(1 / (1 + exp(-x))).

    Shapes: any -> the same.

    >>> import weft as torch
    >>> torch.nn.LogSigmoid()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-1.3133, -0.6931, -0.1269])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softsign(Module):
    """Computes x / (1 + |x|).

    Shapes: any -> the same.

    >>> import weft as torch
    >>> torch.nn.Softsign()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.5000,  0.0000,  0.6667])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """Computes x - tanh(x).

    Shapes: any -> the same.

    >>> import weft as torch
    >>> torch.nn.Tanhshrink()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.2384,  0.0000,  1.0360])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


# ---- With the choice to work in place ------------------------------------------------------------------------------


class _Inplace(Module):
    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""

    def _with_inplace(self, facts: str) -> str:
        return f"{facts}, inplace=True" if self.inplace else facts


class ReLU(_Inplace):
    """Computes max(x, 0).

    >>> import weft as torch
    >>> torch.nn.ReLU()(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


class SELU(_Inplace):
    """Is the scaled exponential linear unit. Source: Klambauer et al. 2017, "Self-normalizing networks".

    Shapes: any -> the same.

    >>> import weft as torch
    >>> torch.nn.SELU()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-1.1113,  0.0000,  2.1014])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class SiLU(_Inplace):
    """Computes x * sigmoid(x), which is also known as swish.

    Shapes: any -> the same.

    >>> import weft as torch
    >>> torch.nn.SiLU()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.2689,  0.0000,  1.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(_Inplace):
    """Computes x * tanh(softplus(x)). Source: Misra 2019.

    Shapes: any -> the same.

    >>> import weft as torch
    >>> torch.nn.Mish()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.3034,  0.0000,  1.9440])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class Hardsigmoid(_Inplace):
    """Computes the piecewise linear sigmoid, which is 0 below -3 and 1 above 3.

    Shapes: any -> the same.

    >>> import weft as torch
    >>> torch.nn.Hardsigmoid()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([0.3333, 0.5000, 0.8333])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardswish(_Inplace):
    """Computes x * hardsigmoid(x). Source: Howard et al. 2019, "Searching for MobileNetV3".

    Shapes: any -> the same.

    >>> import weft as torch
    >>> torch.nn.Hardswish()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.3333,  0.0000,  1.6667])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Threshold(_Inplace):
    """Keeps x where x > threshold, and writes `value` elsewhere.

    Shapes: any -> the same.

    >>> import weft as torch
    >>> torch.nn.Threshold(0.5, 20.0)(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([20., 20.,  2.])
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return self._with_inplace(shown(self, "threshold", "value"))


class RReLU(_Inplace):
    """Multiplies negative x by a random number in [lower, upper], or by the mean of these bounds in evaluation.

    Source: Xu et al. 2015, "Empirical evaluation of rectified activations in convolutional network".
    Shapes: any -> the same.

    >>> import weft as torch
    >>> torch.nn.RReLU().eval()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.2292,  0.0000,  2.0000])
    """

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return self._with_inplace(shown(self, "lower", "upper"))


class Hardtanh(_Inplace):
    """Limits x to [min_val, max_val].

    Shapes: any -> the same. Raises: AssertionError unless min_val < max_val.

    >>> import weft as torch
    >>> torch.nn.Hardtanh(-0.5, 1.0)(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.5000,  0.0000,  1.0000])
    """

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__(inplace)
        self.min_val = _renamed("min", min_val, min_value)
        self.max_val = _renamed("max", max_val, max_value)
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return self._with_inplace(shown(self, "min_val", "max_val"))


def _renamed(which: str, value: float, older: float | None) -> float:
    if older is None:
        return value
    warnings.warn(
        f"keyword argument `{which}_value` is deprecated and renamed to `{which}_val`",
        FutureWarning,
        stacklevel=user_level(),
    )
    return older


class ReLU6(Hardtanh):
    """Computes min(max(x, 0), 6).

    Shapes: any -> the same.

    >>> import weft as torch
    >>> torch.nn.ReLU6()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([0., 0., 2.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    extra_repr = _Inplace.extra_repr


class _OfAlpha(_Inplace):
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def extra_repr(self) -> str:
        return self._with_inplace(f"alpha={self.alpha}")


class ELU(_OfAlpha):
    """Keeps positive x, and computes alpha * (exp(x) - 1) of others. Source: Clevert, Unterthiner, Hochreiter 2015.

    Shapes: any -> the same.

    >>> import weft as torch
    >>> torch.nn.ELU()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.6321,  0.0000,  2.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(_OfAlpha):
    """Keeps positive x, and computes alpha * (exp(x / alpha) - 1) of others. Source: Barron 2017.

    Shapes: any -> the same.

    >>> import weft as torch
    >>> torch.nn.CELU()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.6321,  0.0000,  2.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class LeakyReLU(_Inplace):
    """Keeps positive x, and multiplies others by negative_slope.

    Shapes: any -> the same.

    >>> import weft as torch
    >>> torch.nn.LeakyReLU()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.0100,  0.0000,  2.0000])
    """

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return self._with_inplace(f"negative_slope={self.negative_slope}")


# ---- With other arguments ------------------------------------------------------------------------------------------


class GLU(Module):
    """Multiplies the first half along `dim` by the sigmoid of the second half.

    Shapes: [..., 2 * n, ...] -> [..., n, ...].

    >>> import weft as torch
    >>> torch.nn.GLU()(torch.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class GELU(Module):
    """Multiplies x by the normal distribution function; approximate="tanh" is faster. Source: Hendrycks, Gimpel 2016.

    Shapes: any -> the same.

    >>> import weft as torch
    >>> torch.nn.GELU()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.1587,  0.0000,  1.9545])
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class _Shrink(Module):
    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(_Shrink):
    """Sets x within [-lambd, lambd] to 0.

    Shapes: any -> the same.

    >>> import weft as torch
    >>> torch.nn.Hardshrink()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-1.,  0.,  2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class Softshrink(_Shrink):
    """Moves x by `lambd` towards 0, but not past 0.

    Shapes: any -> the same.

    >>> import weft as torch
    >>> torch.nn.Softshrink()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class Softplus(Module):
    """Computes log(1 + exp(beta * x)) / beta, and keeps x where beta * x > threshold.

    Shapes: any -> the same.

    >>> import weft as torch
    >>> torch.nn.Softplus()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([0.3133, 0.6931, 2.1269])
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return shown(self, "beta", "threshold")


class PReLU(Module):
    """Keeps positive x, and multiplies others by a learned weight; there is one weight, or one for each channel.

    >>> import weft as torch
    >>> torch.nn.PReLU(init=0.5)(torch.tensor([-1.0, 0.0, 2.0])).detach()
    tensor([-0.5000,  0.0000,  2.0000])
    """

    weight: Tensor

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: DType | None = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


# ---- Along a dim ---------------------------------------------------------------------------------------------------


class _AlongDim(Module):
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """Computes exp(x) scaled to sum 1 along `dim`.

    >>> import weft as torch
    >>> torch.nn.Softmax(dim=1)(torch.zeros(1, 4))
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, 5)


class Softmin(_AlongDim):
    """Computes exp(-x) scaled to sum 1 along `dim`.

    Shapes: any -> the same.

    >>> import weft as torch
    >>> torch.nn.Softmin(dim=0)(torch.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, 5)


class LogSoftmax(_AlongDim):
    """Computes the logarithm of `Softmax` without overflow.

    Shapes: any -> the same.

    >>> import weft as torch
    >>> torch.nn.LogSoftmax(dim=0)(torch.tensor([0.0, 0.0]))
    tensor([-0.6931, -0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, 5)


class Softmax2d(Module):
    """Applies softmax to the channels of each pixel. Shapes: [N, C, H, W] or [C, H, W].

    >>> import weft as torch
    >>> torch.nn.Softmax2d()(torch.zeros(4, 1, 2))[0]
    tensor([[0.2500, 0.2500]])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, 5)


name_public(__name__, "nn.modules.attention")
