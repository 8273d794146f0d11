"""Losses and embeddings as `torch` itself has them: their reductions and modes are numbers, not words.

`torch.nn.functional` checks arguments and calls these in PyTorch. Programs that were traced or exported call them, too.
PyTorch documents reduction=1 (mean) as the default of the losses, but its functions do not reduce by default. Nor do these.

>>> import weft as torch
>>> torch.hinge_embedding_loss(torch.tensor([0.5, 2.0]), torch.tensor([1, -1]), reduction=2)
tensor(0.5000)
"""

from __future__ import annotations

import warnings

from ...core.grad_mode import no_grad
from ...core.public import public
from ...core.registry import FUNCTIONS, add_function
from ...core.tensor import Tensor
from ..assembly.joining import cat
from ..assembly.pixel_shuffle import channel_shuffle
from ..assembly.repeating import repeat_interleave
from ..creation.creation import empty
from .losses.arguments import REDUCTIONS
from .losses.margins import ranking_loss

_MODES = ("sum", "mean", "max")


def _reduction(number: int) -> str:
    """The word for a reduction: 0 is none, 1 mean, 2 sum. PyTorch's C++ takes every other number for a sum."""
    return REDUCTIONS[number] if number in (0, 1) else "sum"


def _loss(name: str):
    return FUNCTIONS[f"nn.functional.{name}"]


@public(name="kl_div")
def kl_div(input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False) -> Tensor:
    """`nn.functional.kl_div`; the mean is that over all elements."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "reduction: 'mean' divides")
        return _loss("kl_div")(input, target, reduction=_reduction(reduction), log_target=log_target)


@public(name="binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = 0,
) -> Tensor:
    """Compute `nn.functional.binary_cross_entropy_with_logits`."""
    return _loss("binary_cross_entropy_with_logits")(
        input, target, weight, reduction=_reduction(reduction), pos_weight=pos_weight
    )


@public(name="cosine_embedding_loss")
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """Compute `nn.functional.cosine_embedding_loss`."""
    return _loss("cosine_embedding_loss")(input1, input2, target, margin, reduction=_reduction(reduction))


@public(name="hinge_embedding_loss")
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0) -> Tensor:
    """Compute `nn.functional.hinge_embedding_loss`."""
    return _loss("hinge_embedding_loss")(input, target, margin, reduction=_reduction(reduction))


@public(name="margin_ranking_loss", autocast="raise")
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """`nn.functional.margin_ranking_loss`, and the tensors broadcast."""
    return ranking_loss(input1, input2, target, margin, _reduction(reduction))


@public(name="poisson_nll_loss")
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    """Compute `nn.functional.poisson_nll_loss`."""
    return _loss("poisson_nll_loss")(input, target, log_input, full, eps=eps, reduction=_reduction(reduction))


@public(name="triplet_margin_loss")
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-06,
    swap: bool = False,
    reduction: int = 0,
) -> Tensor:
    """Compute `nn.functional.triplet_margin_loss`."""
    return _loss("triplet_margin_loss")(
        anchor, positive, negative, margin, p, eps, swap, reduction=_reduction(reduction)
    )


@public(name="embedding")
def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` at `indices`, as `nn.functional.embedding(indices, weight)`; padding_idx=-1 is none."""
    padding = None if padding_idx < 0 else padding_idx
    return _loss("embedding")(indices, weight, padding, None, 2.0, scale_grad_by_freq, sparse)


@public(name="embedding_renorm_")
def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale the rows of `input` at `indices` whose norm is larger than `max_norm` down to it, in place."""
    with no_grad():
        _loss("embedding")(indices, input, None, max_norm, norm_type)
    return input


@public("function", "_embedding_bag", "_embedding_bag_forward_only", name="embedding_bag")
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, ...]:
    """`nn.functional.embedding_bag` of modes 0 (sum), 1 (mean) and 2 (max), and three tensors that PyTorch's derivative uses.

    The three are the bag of each index, the size of each bag, and the positions of the maxima. As in PyTorch, the first is
    empty for sums of contiguous rows, the second is zeros for all sums, and the third equals the second except for mode 2.
    """
    for name, each, allowed in (
        ("input", indices, (1, 2)),
        ("weight", weight, (2,)),
        ("offsets", offsets, (1,)),
    ):
        if each.dim() not in allowed:
            shown = " or ".join(f"{dims}D" for dims in allowed)
            raise RuntimeError(f"{name} has to be a {shown} Tensor, but got Tensor of dimension {each.dim()}")
    padding = padding_idx if padding_idx is not None and padding_idx != -1 else None
    result = _loss("embedding_bag")(
        indices, weight, offsets, None, 2.0, scale_grad_by_freq, _MODES[mode], sparse, per_sample_weights,
        include_last_offset, padding,
    )  # fmt: skip
    end = offsets.new_tensor([len(indices)])
    ends = offsets[1:] if include_last_offset else cat((offsets[1:], end))
    starts = offsets[:-1] if include_last_offset else offsets
    sizes = (ends - starts).to(indices.dtype)
    bags = repeat_interleave(sizes)
    if _MODES[mode] == "sum":
        is_fast = padding is None and weight.stride(1) == 1 and weight.dtype.itemsize <= 4
        none = sizes.new_zeros(sizes.shape)
        return (
            result,
            empty(0, dtype=indices.dtype, device=indices.device) if is_fast else bags,
            none,
            none.clone(),
        )
    counted = indices == indices if padding is None else indices != padding
    counts = sizes.new_zeros(sizes.shape).index_add(0, bags, counted[: len(bags)].to(sizes.dtype))
    if _MODES[mode] == "mean":
        return result, bags, counts, counts.clone()
    return result, bags, counts, _maxima(weight, indices, counted, bags, sizes)


def _maxima(weight: Tensor, indices: Tensor, counted: Tensor, bags: Tensor, sizes: Tensor) -> Tensor:
    """Return the index of the largest row of each bag, for each column; 0 for an empty bag."""
    found = indices.new_zeros((len(sizes), weight.size(1)))
    start = 0
    for bag, size in enumerate(sizes.tolist()):
        own = indices[start : start + size][counted[start : start + size]]
        if len(own):
            found[bag] = own[weight.detach()[own].argmax(0)]
        start += size
    return found


for _place in ("", "nn.functional."):
    add_function(f"{_place}native_channel_shuffle", channel_shuffle)


@public(name="norm_except_dim")
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norm over all dims but one, which keep a size of 1; with dim=-1 that of all elements.

    >>> import weft as torch
    >>> torch.norm_except_dim(torch.tensor([[3.0, 4.0], [0.0, 2.0]]))
    tensor([[5.],
            [2.]])
    """
    if dim == -1:
        return v.norm(pow)
    wrapped = dim + v.dim() if dim < 0 else dim
    others = [each for each in range(v.dim()) if each != wrapped]
    return v.norm(pow, others, True) if others else v.norm(pow, None)


@public("function", name="_weight_norm")
def weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """`v` scaled so that its norm over all dims but `dim` is `g`."""
    return v * (g / norm_except_dim(v, 2, dim))


@public("function", name="_weight_norm_interface")
def weight_norm_interface(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    """Compute `_weight_norm` and the norm of `v`."""
    norm = norm_except_dim(v, 2, dim)
    return v * (g / norm), norm
