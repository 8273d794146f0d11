"""Sums, products and joined tensors as modules, so that their results are observed and quantized."""

from __future__ import annotations

from typing import Any

from .....core.registry import FUNCTIONS
from .....core.tensor import Tensor
from .....library.namespaces import ops
from .....nn import Identity, Module
from .utils import QuantizedResult, result_parameters


class FXFloatFunctional(Module):
    """Functions of floats as a module, for graphs whose nodes are observed."""

    def _noted(self, result: Tensor) -> Tensor:
        return result

    def forward(self, x: Any) -> Any:
        raise RuntimeError(
            "FloatFunctional is not intended to use the 'forward'. Please use the underlying operation"
        )

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y."""
        return self._noted(x + y)

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """x + y."""
        return x + y

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """x * y."""
        return self._noted(x * y)

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """x * y."""
        return x * y

    def cat(self, x: Any, dim: int = 0) -> Tensor:
        """The tensors joined along a dim."""
        return self._noted(FUNCTIONS["cat"](x, dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """relu(x + y)."""
        return self._noted((x + y).relu())

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """x @ y."""
        return self._noted(x @ y)


class FloatFunctional(FXFloatFunctional):
    """Functions of floats whose results an observer notes, besides those with numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process: Any = Identity()

    def _noted(self, result: Tensor) -> Tensor:
        return self.activation_post_process(result)


class QFunctional(QuantizedResult):
    """Functions of quantized tensors. `scale` and `zero_point` are those of the results."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.zero_point = 1.0, 0
        self.activation_post_process = Identity()

    def forward(self, x: Any) -> Any:
        raise RuntimeError(
            "Functional is not intended to use the 'forward'. Please use the underlying operation"
        )

    def _get_name(self) -> str:
        return "QFunctional"

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def _call(self, name: str, *args: Any) -> Tensor:
        return self.activation_post_process(getattr(ops.quantized, name)(*args, self.scale, self.zero_point))

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y."""
        return self._call("add", x, y)

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """x + y."""
        return ops.quantized.add_scalar(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """x * y."""
        return self._call("mul", x, y)

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """x * y."""
        return ops.quantized.mul_scalar(x, y)

    def cat(self, x: Any, dim: int = 0) -> Tensor:
        """The tensors joined along a dim."""
        return self.activation_post_process(ops.quantized.cat(x, dim, self.scale, self.zero_point))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """relu(x + y)."""
        return self._call("add_relu", x, y)

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """x @ y."""
        return self._call("matmul", x, y)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> QFunctional:
        """The quantized functions of functions that were observed."""
        made = cls()
        made._set_parameters(*result_parameters(mod))
        return made
