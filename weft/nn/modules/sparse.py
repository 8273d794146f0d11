"""Embedding layers look up rows of a table, one by one or in bags."""

from __future__ import annotations

from typing import Any

from ...autograd.parameter import Parameter
from ...core.dtype import DType
from ...core.grad_mode import no_grad
from ...core.tensor import Tensor
from ...ops.creation.creation import empty
from .. import functional as F
from .. import init
from ..module import Module

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """Serves as the base of embeddings, with a table of `num_embeddings` rows and the options of a lookup."""

    weight: Tensor
    _padding_name = "Padding_idx"  # as PyTorch's errors write it

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        max_norm: float | None,
        norm_type: float,
        scale_grad_by_freq: bool,
        sparse: bool,
        weight: Tensor | None,
        freeze: bool,
        device: Any,
        dtype: DType | None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = self._row(padding_idx)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if weight is None:
            table = empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
            self.weight = Parameter(table, requires_grad=not freeze)
            self.reset_parameters()
        else:
            if list(weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError(
                    "Shape of weight does not match num_embeddings and embedding_dim: "
                    f"{list(weight.shape)} instead of {[num_embeddings, embedding_dim]}"
                )
            self.weight = Parameter(weight, requires_grad=not freeze)

    def _row(self, padding_idx: int | None) -> int | None:
        rows = self.num_embeddings
        if padding_idx is None:
            return None
        if not -rows <= padding_idx < rows:
            raise AssertionError(
                f"{self._padding_name} must be within num_embeddings ({padding_idx} is no row of {rows})"
            )
        return padding_idx % rows

    def reset_parameters(self) -> None:
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def _padding(self) -> str:
        return f"padding_idx={self.padding_idx}" if self.padding_idx is not None else ""

    def _options(self) -> list[str]:
        return [
            f"max_norm={self.max_norm}" if self.max_norm is not None else "",
            f"norm_type={self.norm_type}" if self.norm_type != 2 else "",
            f"scale_grad_by_freq={self.scale_grad_by_freq}" if self.scale_grad_by_freq else "",
        ]


def _check_table(embeddings: Tensor) -> None:
    if embeddings.dim() != 2:
        raise AssertionError(
            f"Embeddings parameter is expected to be 2-dimensional, and has shape {list(embeddings.shape)}"
        )


class Embedding(_Table):
    """Looks up rows of a table.

    Shapes: integers [*] -> [*, embedding_dim]. The row `padding_idx` starts as zeros and gets no gradient.
    max_norm: rows that are looked up are scaled down to this norm first, in place.

    >>> import weft as torch
    >>> table = torch.nn.Embedding.from_pretrained(torch.tensor([[1.0, 2.3], [4.0, 5.1]]))
    >>> table(torch.tensor([1]))
    tensor([[4.0000, 5.1000]])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(
            num_embeddings,
            embedding_dim,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight,
            _freeze,
            device,
            dtype,
        )

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        sparse = "sparse=True" if self.sparse else ""
        sizes = f"{self.num_embeddings}, {self.embedding_dim}"
        return ", ".join(filter(None, [sizes, self._padding(), *self._options(), sparse]))

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """Return an Embedding with this table, which is not trained if `freeze`."""
        _check_table(embeddings)
        return cls(
            embeddings.size(0),
            embeddings.size(1),
            _weight=embeddings,
            _freeze=freeze,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
        )


class EmbeddingBag(_Table):
    """Computes the sum, mean or maximum (`mode`) of the rows of each bag.

    Shapes: [B, n] -> [B, embedding_dim], a bag in each row; or [n] with offsets [B], where each bag begins.

    >>> import weft as torch
    >>> table = torch.tensor([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]])
    >>> bags = torch.nn.EmbeddingBag.from_pretrained(table, mode="sum")
    >>> bags(torch.tensor([0, 1, 2, 2]), torch.tensor([0, 2]))
    tensor([[ 3., 30.],
            [ 8., 80.]])
    """

    _padding_name = "padding_idx"

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(
            num_embeddings,
            embedding_dim,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight,
            False,
            device,
            dtype,
        )
        self.mode = mode
        self.include_last_offset = include_last_offset

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        sizes = f"{self.num_embeddings}, {self.embedding_dim}"
        return ", ".join(filter(None, [sizes, *self._options(), f"mode={self.mode!r}", self._padding()]))

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """Return an EmbeddingBag with this table, which is not trained if `freeze`."""
        _check_table(embeddings)
        bag = cls(
            embeddings.size(0),
            embeddings.size(1),
            _weight=embeddings,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        bag.weight.requires_grad = not freeze
        return bag
