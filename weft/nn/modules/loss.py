"""Loss layers compute a number that states how far outputs are from targets.

`reduction` is "mean", "sum" or "none", which keeps the loss of each element. `size_average` and `reduce` are older ways
to say it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from ...core.dtype import DType
from ...core.tensor import Tensor
from ...core.warn import user_level
from ...ops.nn.losses.arguments import reduction_of
from .. import functional as F
from ..module import Module
from .distance import PairwiseDistance
from .linear import Linear
from .linear_cross_entropy_options import LinearCrossEntropyOptions

# fmt: off
__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
    "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "LinearCrossEntropyLoss", "MSELoss", "MarginRankingLoss",
    "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "NLLLoss2d", "PoissonNLLLoss",
    "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]
# fmt: on


class _Loss(Module):
    reduction: str

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.reduction = reduction_of(reduction, size_average, reduce)


class _WeightedLoss(_Loss):
    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


# ---- Differences ---------------------------------------------------------------------------------------------------


class L1Loss(_Loss):
    """Computes the mean of |input - target|.

    Shapes: [*], [*] -> [], or [*] without reduction.

    >>> import weft as torch
    >>> torch.nn.L1Loss()(torch.tensor([0.5, 1.0]), torch.tensor([1.0, 3.0]))
    tensor(1.2500)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """Computes the mean of (input - target) ** 2.

    >>> import weft as torch
    >>> torch.nn.MSELoss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Is quadratic in differences below `beta` and linear in larger ones. Source: Girshick 2015, "Fast R-CNN".

    Shapes: [*], [*] -> [], or [*] without reduction.

    >>> import weft as torch
    >>> torch.nn.SmoothL1Loss()(torch.tensor([0.5, 1.0]), torch.tensor([1.0, 3.0]))
    tensor(0.8125)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Computes half the square of differences below `delta`, and is linear in larger ones.

    Shapes: [*], [*] -> [], or [*] without reduction.

    >>> import weft as torch
    >>> torch.nn.HuberLoss()(torch.tensor([0.5, 1.0]), torch.tensor([1.0, 3.0]))
    tensor(0.8125)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


# ---- Likelihoods ---------------------------------------------------------------------------------------------------


class NLLLoss(_WeightedLoss):
    """Computes the mean of -input at the class of each target, weighted by class. Shapes: [N, C, ...], [N, ...].

    Raises: IndexError for targets that are not a class, unless they are `ignore_index`.

    >>> import weft as torch
    >>> log_probs = torch.tensor([[0.25, 0.75], [0.5, 0.5]]).log()
    >>> torch.nn.NLLLoss()(log_probs, torch.tensor([1, 0]))
    tensor(0.4904)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(
            input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction
        )


class NLLLoss2d(NLLLoss):
    """Keeps an older name of `NLLLoss`."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        warnings.warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in replacement and see "
            "https://pytorch.org/docs/main/nn.html#torch.nn.NLLLoss for more details.",
            FutureWarning,
            stacklevel=user_level(),
        )
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class CrossEntropyLoss(_WeightedLoss):
    """Computes the cross entropy of softmax(input) and targets: classes [N, ...] or probabilities [N, C, ...].

    Shapes: input [N, C, ...] or [C]. label_smoothing: the part of each target that is spread over all classes.

    >>> import weft as torch
    >>> torch.nn.CrossEntropyLoss()(torch.zeros(2, 4), torch.tensor([1, 3]))
    tensor(1.3863)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class LinearCrossEntropyLoss(_WeightedLoss):
    """Applies a Linear layer and computes the cross entropy of its output.

    Shapes: input [N, in_features] or [in_features], target [N, *out_features] of classes, or
    [N, num_classes, *out_features] of probabilities.
    Raises: RuntimeError if `weight` has another shape than [num_classes], or `label_smoothing` is outside [0, 1].

    >>> import weft as torch
    >>> torch.nn.LinearCrossEntropyLoss(in_features=8, num_classes=5)(torch.rand(3, 8), torch.tensor([0, 4, 2])).shape
    torch.Size([])
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: DType | None = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and weight.shape != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if label_smoothing < 0 or label_smoothing > 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options
        self.linear = Linear(
            in_features, num_classes * math.prod(out_features), bias=bias, device=device, dtype=dtype
        )

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        weight: Tensor = self.linear.weight
        bias: Tensor | None = self.linear.bias
        if self.out_features:
            shape = (self.num_classes, *self.out_features)
            weight = weight.reshape(*shape, weight.size(-1))
            bias = None if bias is None else bias.reshape(shape)
        return F.linear_cross_entropy(
            input,
            weight,
            target,
            linear_bias=bias,
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


class PoissonNLLLoss(_Loss):
    """Computes the negative log likelihood of counts under Poisson distributions of rate exp(input), or input.

    Shapes: [*], [*] -> [], or [*] without reduction.

    >>> import weft as torch
    >>> torch.nn.PoissonNLLLoss()(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]))
    tensor(0.8591)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class GaussianNLLLoss(_Loss):
    """Computes the negative log likelihood of targets under normal distributions of mean `input` and variance `var`.

    Shapes: [*], [*], [*] -> [], or [*] without reduction. Raises: ValueError for a negative variance.

    >>> import weft as torch
    >>> torch.nn.GaussianNLLLoss()(torch.tensor([0.5, 1.0]), torch.tensor([1.0, 3.0]), torch.ones(2))
    tensor(1.0625)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class KLDivLoss(_Loss):
    """Computes the Kullback-Leibler divergence of targets from input, which holds log probabilities.

    Shapes: [*], [*] -> [], or [*] without reduction.

    >>> import weft as torch
    >>> torch.nn.KLDivLoss(reduction='batchmean')(torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.25, 0.75]]))
    tensor(0.1308)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class BCELoss(_WeightedLoss):
    """Computes the cross entropy of probabilities and targets between 0 and 1.

    Shapes: [*], [*] -> [], or [*] without reduction. Raises: RuntimeError for probabilities outside [0, 1].

    >>> import weft as torch
    >>> torch.nn.BCELoss()(torch.tensor([0.25, 0.5]), torch.tensor([0.0, 1.0]))
    tensor(0.4904)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Computes `BCELoss` of sigmoid(input) without overflow; `pos_weight` is the weight of the positive class.

    Shapes: [*], [*] -> [], or [*] without reduction.

    >>> import weft as torch
    >>> torch.nn.BCEWithLogitsLoss()(torch.tensor([0.0, 2.0]), torch.tensor([0.0, 1.0]))
    tensor(0.4100)
    """

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class CTCLoss(_Loss):
    """Computes the negative log likelihood of label sequences of unknown alignment. Shapes: log_probs [T, N, C].

    Source: Graves et al. 2006, "Connectionist temporal classification".
    Shapes: targets [N, S] or [sum of target_lengths], lengths [N] -> [], or [N] without reduction.

    >>> import weft as torch
    >>> log_probs = torch.full((3, 1, 2), 0.5).log()
    >>> torch.nn.CTCLoss()(log_probs, torch.tensor([[1, 1]]), torch.tensor([3]), torch.tensor([2]))
    tensor(1.0397)
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )


# ---- Margins -------------------------------------------------------------------------------------------------------


class _MarginLoss(_Loss):
    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class HingeEmbeddingLoss(_MarginLoss):
    """Computes input where the target is 1, and max(0, margin - input) where it is -1.

    Shapes: [*], [*] -> [], or [*] without reduction.

    >>> import weft as torch
    >>> torch.nn.HingeEmbeddingLoss()(torch.tensor([0.5, 0.25]), torch.tensor([1.0, -1.0]))
    tensor(0.6250)
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """Computes log(1 + exp(-target * input)) for targets 1 and -1.

    Shapes: [*], [*] -> [], or [*] without reduction.

    >>> import weft as torch
    >>> torch.nn.SoftMarginLoss()(torch.tensor([0.0, 2.0]), torch.tensor([1.0, -1.0]))
    tensor(1.4100)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """Measures by how much the scores of a sample's classes fail to exceed the others by 1; -1 ends the classes.

    Shapes: [N, C] or [C], twice -> [], or [N] without reduction.

    >>> import weft as torch
    >>> torch.nn.MultiLabelMarginLoss()(torch.tensor([0.1, 0.2, 0.4, 0.8]), torch.tensor([3, 0, -1, 1]))
    tensor(0.8500)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Computes the mean over classes of the cross entropy of sigmoid(input).

    Shapes: [N, C], [N, C] -> [], or [N] without reduction.

    >>> import weft as torch
    >>> torch.nn.MultiLabelSoftMarginLoss()(torch.tensor([[0.0, 2.0]]), torch.tensor([[0.0, 1.0]]))
    tensor(0.4100)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """Measures by how much the score of each target fails to exceed the others by `margin`, to the power of `p`.

    Shapes: [N, C], [N] or [C], [] -> [], or [N] without reduction. Raises: ValueError for a `p` that is not 1 or 2.

    >>> import weft as torch
    >>> torch.nn.MultiMarginLoss()(torch.tensor([[0.1, 0.2, 0.4, 0.8]]), torch.tensor([3]))
    tensor(0.3250)
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError(f"only p == 1 and p == 2 supported, not {p}")
        if weight is not None and weight.dim() != 1:
            raise ValueError(
                f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead"
            )
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


class CosineEmbeddingLoss(_MarginLoss):
    """Computes 1 - cos(input1, input2) where the target is 1, and max(0, cos - margin) where it is -1.

    Shapes: [N, D], [N, D], [N] -> [], or [N] without reduction.

    >>> import weft as torch
    >>> torch.nn.CosineEmbeddingLoss()(torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0, 4.0]]), torch.tensor([1.0]))
    tensor(0.4000)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_MarginLoss):
    """Computes max(0, margin - target * (input1 - input2)), where the target is 1 if input1 should be larger.

    Shapes: [N], [N], [N] -> [], or [N] without reduction.

    >>> import weft as torch
    >>> first, second, target = torch.tensor([0.5, 1.0]), torch.tensor([1.0, 3.0]), torch.tensor([1.0, -1.0])
    >>> torch.nn.MarginRankingLoss(margin=1.0)(first, second, target)
    tensor(0.7500)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """Computes max(0, margin + |anchor - positive| - |anchor - negative|) with p-norms. Source: Balntas et al. 2016.

    Shapes: [N, D] or [D], thrice -> [], or [N] without reduction. Raises: ValueError unless margin > 0.

    >>> import weft as torch
    >>> anchor, positive, negative = torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 2.0]])
    >>> torch.nn.TripletMarginLoss()(anchor, positive, negative)
    tensor(4.0000)
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        _check_margin(self, margin)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """Is `TripletMarginLoss` with a distance that the caller gives.

    Shapes: [N, D] or [D], thrice -> [], or [N] without reduction. Raises: ValueError unless margin > 0.

    >>> import weft as torch
    >>> anchor, positive, negative = torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 2.0]])
    >>> def distance(a, b):
    ...     return (a - b).abs().amax(-1)
    >>> torch.nn.TripletMarginWithDistanceLoss(distance_function=distance)(anchor, positive, negative)
    tensor(3.)
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        _check_margin(self, margin)
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


def _check_margin(loss: _Loss, margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"{type(loss).__name__}: expected margin to be greater than 0, got {margin} instead")
