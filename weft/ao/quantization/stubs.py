"""Places in a model where floats are quantized, and where they are floats again."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ...nn import Module


class _Stub(Module):
    """A place in a model that passes its input on."""

    def __init__(self, qconfig: Any = None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        return x


class QuantStub(_Stub):
    """Observes its input; `convert` makes it a Quantize."""


class DeQuantStub(_Stub):
    """Passes its input on; `convert` makes it a DeQuantize."""


class QuantWrapper(Module):
    """A model between a QuantStub and a DeQuantStub."""

    def __init__(self, module: Module):
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.quant, self.dequant = QuantStub(qconfig), DeQuantStub(qconfig)
        self.module = module
        self.train(module.training)

    def forward(self, X: Tensor) -> Tensor:
        return self.dequant(self.module(self.quant(X)))
