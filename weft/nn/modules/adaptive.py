"""Softmax over very many classes, most of which are rare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.dtype import DType
from ...core.tensor import Tensor
from ...ops.creation.creation import empty
from .. import functional as F
from ..containers import ModuleList, Sequential
from ..module import Module
from .linear import Linear

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    output: Tensor  # the log probability of each target
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Computes log softmax with a score for each frequent class, and with clusters of fewer features for rare classes.

    Classes must be sorted by frequency, the most frequent first; a cluster begins at each of `cutoffs`.
    Shapes: input [N, in_features] or [in_features], target [N] or [] -> output of the target's shape, loss [].
    Source: Grave et al. 2016, "Efficient softmax approximation for GPUs".

    >>> import weft as torch
    >>> layer = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 100, cutoffs=[10, 50])
    >>> layer.log_prob(torch.rand(3, 8)).shape
    torch.Size([3, 100])
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        _check_cutoffs(cutoffs, n_classes)
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        factory = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **factory)
        self.tail = ModuleList()
        for i, (start, end) in enumerate(zip(self.cutoffs, self.cutoffs[1:]), 1):
            features = int(in_features // div_value**i)
            self.tail.append(
                Sequential(
                    Linear(in_features, features, bias=False, **factory),
                    Linear(features, end - start, bias=False, **factory),
                )
            )

    def reset_parameters(self) -> None:
        self.head.reset_parameters()
        for inward, outward in self.tail:
            inward.reset_parameters()
            outward.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        _check_sizes(input_, target_)
        single = target_.dim() == 0
        input, target = (input_.unsqueeze(0), target_.unsqueeze(0)) if single else (input_, target_)
        outside = (target < 0) | (target >= self.n_classes)
        if outside.any():
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        # The column of the head for each target: the column of the class, or that of its cluster.
        column = target.clone()
        inside: list[tuple[Tensor, Tensor]] = []
        for i, (start, end) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            rows = ((target >= start) & (target < end)).nonzero().squeeze(1)
            if rows.numel():
                scores = F.log_softmax(self.tail[i](input.index_select(0, rows)), 1)
                own = target.index_select(0, rows) - start
                inside.append((rows, scores.gather(1, own.unsqueeze(1)).squeeze(1)))
                column = column.index_fill(0, rows, self.shortlist_size + i)
        output = F.log_softmax(self.head(input), 1).gather(1, column.unsqueeze(1)).squeeze(1)
        for rows, scores in inside:
            output = output.index_add(0, rows, scores)
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log probabilities of all classes. Shapes: [N, in_features] -> [N, n_classes]."""
        return self._all_log_probs(input, self.head(input))

    def _all_log_probs(self, input: Tensor, head: Tensor) -> Tensor:
        head = F.log_softmax(head, 1)
        found = empty((head.size(0), self.n_classes), dtype=head.dtype, device=head.device)
        found[:, : self.shortlist_size] = head[:, : self.shortlist_size]
        for i, (start, end) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            cluster = head[:, self.shortlist_size + i].unsqueeze(1)
            found[:, start:end] = F.log_softmax(self.tail[i](input), 1) + cluster
        return found

    def predict(self, input: Tensor) -> Tensor:
        """Return the most probable class of each sample. Shapes: [N, in_features] -> [N]."""
        head = self.head(input)
        best = head.argmax(1)
        rare = best >= self.shortlist_size
        if not rare.any():
            return best
        if rare.all():
            return self._all_log_probs(input, head).argmax(1)
        best[rare] = self._all_log_probs(input[rare], head[rare]).argmax(1)
        return best


def _check_cutoffs(cutoffs: list[int], n_classes: int) -> None:
    if not cutoffs:
        raise ValueError("cutoffs should be a sequence of length larger than 0")
    rising = all(low < high for low, high in zip(cutoffs, cutoffs[1:]))
    if not (rising and cutoffs[0] > 0 and cutoffs[-1] <= n_classes - 1) or any(
        int(cutoff) != cutoff for cutoff in cutoffs
    ):
        raise ValueError(
            "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value "
            f"is between 1 and n_classes-1, and not {cutoffs}"
        )


def _check_sizes(input: Tensor, target: Tensor) -> None:
    shapes = f"input {list(input.shape)}, target {list(target.shape)}"
    if target.dim() == 1:
        if input.size(0) != target.size(0):
            raise RuntimeError(
                f"Input and target should have the same size in the batch dimension.\n{shapes}"
            )
        if input.dim() != 2:
            raise RuntimeError(
                f"1D target tensor expects 2D input tensors, but found inputs with size {shapes}"
            )
    elif target.dim() == 0:
        if input.dim() != 1:
            raise RuntimeError(
                f"0D target tensor expects 1D input tensors, but found inputs with size {shapes}"
            )
    else:
        raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported\n{shapes}")
