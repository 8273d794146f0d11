"""What layers with a batch normalization share in quantization-aware training."""

from __future__ import annotations

from typing import Any, ClassVar

from ......core.tensor import Tensor
from ......nn import Module, Parameter, init
from ......nn.utils.fusion import fuse_conv_bn_weights
from ....qat.modules.fake_quantized_weight import FakeQuantizedWeight


class WithBatchNorm(FakeQuantizedWeight):
    """A base beside a layer of floats. The rounded weight is the one into which the batch normalization is folded.

    Source: Krishnamoorthi 2018, "Quantizing deep convolutional networks for efficient inference", section 3.2.2.
    """

    _BATCH_NORM: ClassVar[type[Module]]
    bn: Any

    def _set_batch_norm(
        self, features: int, eps: float, momentum: float, freeze_bn: bool, qconfig: Any
    ) -> None:
        """Take the arguments of the constructor that are not the layer's."""
        self.bn = self._BATCH_NORM(features, eps, momentum, True, True)
        self._set_qconfig(qconfig)
        self.reset_bn_parameters()
        if freeze_bn:
            self.freeze_bn_stats()
        else:
            self.update_bn_stats()

    def reset_running_stats(self) -> None:
        """Forget the running mean and variance."""
        self.bn.reset_running_stats()

    def reset_bn_parameters(self) -> None:
        """Draw a new weight of the batch normalization, and forget its running mean and variance."""
        self.bn.reset_running_stats()
        init.uniform_(self.bn.weight)
        init.zeros_(self.bn.bias)

    def update_bn_stats(self) -> Any:
        """Normalize with the mean and variance of each batch, and average them."""
        self.freeze_bn = False
        self.bn.training = True
        return self

    def freeze_bn_stats(self) -> Any:
        """Normalize with the running mean and variance from now on."""
        self.freeze_bn = True
        self.bn.training = False
        return self

    def train(self, mode: bool = True) -> Any:
        """Change the mode. A frozen batch normalization stays in eval mode."""
        self.training = mode
        if not self.freeze_bn:
            for child in self.children():
                child.train(mode)
        return self

    def _layer(self, input: Tensor, weight: Tensor) -> Tensor:
        """The layer without bias."""
        raise NotImplementedError

    def _forward(self, input: Tensor) -> Tensor:
        bn, ones = self.bn, (1,) * (self.weight.dim() - 2)
        factor = bn.weight / (bn.running_var + bn.eps).sqrt()
        rounded = self.weight_fake_quant(self.weight * factor.reshape(-1, 1, *ones))
        found = self._layer(input, rounded) / factor.reshape(1, -1, *ones)
        if self.bias is not None:
            found = found + self.bias.reshape(1, -1, *ones)
        return bn(found)

    def forward(self, input: Tensor) -> Tensor:
        return self._forward(input)

    def _share(self, layer: Any, bn: Any) -> None:
        """Take the parameters and the running statistics of layers of floats."""
        self.weight, self.bias = layer.weight, layer.bias
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            setattr(self.bn, name, getattr(bn, name))

    def folded(self) -> tuple[Parameter, Parameter]:
        """The weight and the bias of the one layer of floats that computes as the layer and the batch normalization."""
        bn = self.bn
        statistics = bn.running_mean, bn.running_var, bn.eps
        return fuse_conv_bn_weights(self.weight, self.bias, *statistics, bn.weight, bn.bias)
