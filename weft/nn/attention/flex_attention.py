"""`torch.nn.attention.flex_attention`: attention whose scores and mask are functions of the user."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, TypedDict

from ...compat.missing import module_getattr
from ...core.dtype import bool_
from ...core.tensor import Tensor
from ...ops.assembly.joining import cat
from ...ops.creation.creation import zeros
from ...ops.creation.ranges import arange
from ._block_masks import SeenKeys, adjusted, dense_of, filled_blocks, ordered, transposed

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask",
    "create_mask", "flex_attention", "noop_mask", "or_masks",
]  # fmt: skip

_DEFAULT_SPARSE_BLOCK_SIZE = 128
_LARGE_SPARSE_BLOCK_SIZE = 1 << 30  # a block of this size holds any mask
_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = False  # PyTorch's switch; nothing is compiled here

_score_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
_mask_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


class FlexKernelOptions(TypedDict, total=False):
    """PyTorch's options for its kernels. They are accepted and change nothing."""

    num_warps: int
    num_stages: int
    BLOCK_M: int
    BLOCK_N: int
    BLOCK_M1: int
    BLOCK_N1: int
    BLOCK_M2: int
    BLOCK_N2: int
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    BLOCKS_ARE_CONTIGUOUS: bool
    WRITE_DQ: bool
    FORCE_USE_FLEX_ATTENTION: bool
    USE_TMA: bool
    BACKEND: str


class AuxRequest(NamedTuple):
    """What `flex_attention` returns beside its result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The further results of `flex_attention`; None for results that the call did not ask for."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


# ---- Masks as functions ----------------------------------------------------------------------------------------------


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """Return the mask under which each query sees all keys."""
    return batch.new_ones(size=(), dtype=bool_)


def _identity(score: Tensor, batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    return score


def _sliced_mask_mod_error(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> NoReturn:
    """The mask_mod of a part of a BlockMask, whose indices would no longer be those of the whole."""
    raise RuntimeError(
        "Cannot use mask_mod from a sliced BlockMask: give the part its own function, part.mask_mod = ..."
    )


def or_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """Return the mask that lets a pair through if any of these masks does.

    >>> import weft as torch
    >>> from weft.nn.attention.flex_attention import create_mask, or_masks
    >>> same = lambda b, h, q, k: q == k
    >>> first = lambda b, h, q, k: k == 0
    >>> create_mask(or_masks(same, first), 1, 1, 3, 3, device="cpu")[0, 0].int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [1, 0, 1]], dtype=torch.int32)
    """
    _check_callable(mask_mods)

    def or_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_zeros((), dtype=bool_)
        for each in mask_mods:
            result = result | each(b, h, q_idx, kv_idx)
        return result

    return or_mask


def and_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """Return the mask that lets a pair through if all of these masks do."""
    _check_callable(mask_mods)

    def and_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_ones((), dtype=bool_)
        for each in mask_mods:
            result = result & each(b, h, q_idx, kv_idx)
        return result

    return and_mask


def _check_callable(mask_mods: tuple) -> None:
    if not all(map(callable, mask_mods)):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")


def _takes_scores(function: Callable) -> bool:
    """Return whether a function takes (score, b, h, q, k) rather than (b, h, q, k).

    Raises: AssertionError if it takes neither.
    """
    import inspect

    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = sum(
        each.kind in kinds and each.default is inspect.Parameter.empty
        for each in inspect.signature(function).parameters.values()
    )
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    return count == 5


def _indices(sizes: tuple[int, int, int, int], device: Any) -> list[Tensor]:
    return [arange(size, device=device) for size in sizes]


def create_mask(
    mod_fn: _score_mod_signature | _mask_mod_signature,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
) -> Tensor:
    """The mask [B, H, Q_LEN, KV_LEN] of bools that a mask_mod describes, or where a score_mod leaves more than -inf.

    >>> import weft as torch
    >>> torch.nn.attention.flex_attention.create_mask(lambda b, h, q, k: q >= k, 1, 1, 2, 3)
    tensor([[[[ True, False, False],
              [ True,  True, False]]]])
    """
    from ._lanes import over_indices

    sizes = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    if _takes_scores(mod_fn):
        scores = zeros(*sizes, device=device)
        return ~over_indices(mod_fn, _indices(sizes, device), scores).expand(sizes).isneginf()
    return over_indices(mod_fn, _indices(sizes, device)).expand(sizes).contiguous()


# ---- Block masks -----------------------------------------------------------------------------------------------------

_LISTS = (
    "kv_num_blocks kv_indices full_kv_num_blocks full_kv_indices q_num_blocks q_indices full_q_num_blocks full_q_indices"
).split()
_ORDERS = ("dq_write_order", "dq_write_order_full")


class BlockMask:
    """A mask with the blocks in which it lets anything through.

    `kv_indices[b, h, row]` lists the blocks of keys that the queries of a row of blocks see in part, `full_kv_indices` those
    that they see whole; the first `kv_num_blocks` and `full_kv_num_blocks` entries count. `q_indices` are the same for the
    columns. `mask_mod` says which keys a query sees within a block. `create_block_mask` and `from_kv_blocks` make them.

    >>> import weft as torch
    >>> from weft.nn.attention.flex_attention import create_block_mask
    >>> mask = create_block_mask(lambda b, h, q, k: q >= k, 1, 1, 256, 256, device="cpu", BLOCK_SIZE=64)
    >>> mask.sparsity(), mask.full_kv_num_blocks
    (37.5, tensor([[[0, 1, 2, 3]]], dtype=torch.int32))
    """

    seq_lengths: tuple[int, int]
    kv_num_blocks: Tensor
    kv_indices: Tensor
    full_kv_num_blocks: Tensor | None
    full_kv_indices: Tensor | None
    q_num_blocks: Tensor | None
    q_indices: Tensor | None
    full_q_num_blocks: Tensor | None
    full_q_indices: Tensor | None
    BLOCK_SIZE: tuple[int, int]
    mask_mod: _mask_mod_signature
    dq_write_order: Tensor | None
    dq_write_order_full: Tensor | None
    dq_kv_order: Tensor | None
    dq_kv_order_spt: bool | None
    # The function that the lists were made from: where it is still `mask_mod`, blocks that are not listed are skipped.
    _lists_of: _mask_mod_signature | None = None

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
        mask_mod: _mask_mod_signature = noop_mask,
        *,
        dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | None = None,
        dq_kv_order_spt: bool | None = None,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        for one, other, names in (
            (full_kv_num_blocks, full_kv_indices, "full_kv_num_blocks and full_kv_indices"),
            (full_q_num_blocks, full_q_indices, "full_q_num_blocks and full_q_indices"),
        ):
            if (one is None) != (other is None):
                raise AssertionError(f"{names} must be both provided or omitted")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.BLOCK_SIZE, self.mask_mod = BLOCK_SIZE, mask_mod
        self.dq_write_order, self.dq_write_order_full = dq_write_order, dq_write_order_full
        self.dq_kv_order, self.dq_kv_order_spt = dq_kv_order, dq_kv_order_spt

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: _mask_mod_signature | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
        *,
        dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | bool | None = None,
    ) -> BlockMask:
        """Return the mask with these blocks, whose columns are found from its rows.

        Raises: RuntimeError if `kv_indices` has less than two dims; AssertionError if one of the full_kv_ arguments
        comes without the other.
        """
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        columns: tuple[Tensor | None, Tensor | None] = (None, None)
        full_columns = columns
        if compute_q_blocks:
            columns = transposed(kv_num_blocks, kv_indices)
            if full_kv_num_blocks is not None and full_kv_indices is not None:
                full_columns = transposed(full_kv_num_blocks, full_kv_indices)
        size = _pair(BLOCK_SIZE)
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        is_order = isinstance(dq_kv_order, Tensor)
        return cls(
            seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *columns, *full_columns,
            BLOCK_SIZE=size,
            mask_mod=noop_mask if mask_mod is None else mask_mod,
            dq_write_order=dq_write_order,
            dq_write_order_full=dq_write_order_full,
            dq_kv_order=dq_kv_order if is_order else None,  # type: ignore[arg-type]
            dq_kv_order_spt=None if is_order else dq_kv_order,  # type: ignore[arg-type]
        )  # fmt: skip

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """Return the attributes in the order of the constructor's arguments; flatten: pairs as two each."""
        lengths, size = (
            (self.seq_lengths, self.BLOCK_SIZE) if flatten else ((self.seq_lengths,), (self.BLOCK_SIZE,))
        )
        lists = [getattr(self, name) for name in _LISTS]
        orders = (self.dq_write_order, self.dq_write_order_full, self.dq_kv_order, self.dq_kv_order_spt)
        return (*lengths, *lists, *orders, *size, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return [batches, heads, queries, keys]."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """Return how many elements the mask has, seen or not."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """How many percent of the elements lie outside of the listed blocks. Blocks may reach beyond the lengths."""
        blocks = int(self.kv_num_blocks.sum())
        if self.full_kv_num_blocks is not None:
            blocks += int(self.full_kv_num_blocks.sum())
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """Return a matrix of the blocks: 1 where a block is listed. Shape [batches, heads, rows, columns]."""
        columns = self.kv_indices.shape[-1]
        dense = dense_of(self.kv_num_blocks, self.kv_indices, columns)
        if self.full_kv_num_blocks is None or self.full_kv_indices is None:
            return dense
        return dense | dense_of(self.full_kv_num_blocks, self.full_kv_indices, columns)

    def __getitem__(self, index: Any) -> BlockMask:
        """The part for some batches, heads or rows of blocks. Its mask_mod raises: the part needs one of its own."""
        items = index if isinstance(index, tuple) else (index,)
        items = tuple(slice(k, k + 1 or None) if isinstance(k, int) else k for k in items)[:3]

        def part(x: Tensor | None) -> Any:
            return None if x is None else x[items]

        order = self._slice_dq_kv_order(self.dq_kv_order, items)
        return type(self).from_kv_blocks(
            part(self.kv_num_blocks),
            part(self.kv_indices),
            part(self.full_kv_num_blocks),
            part(self.full_kv_indices),
            self.BLOCK_SIZE,
            _sliced_mask_mod_error,
            self.seq_lengths,
            self.q_indices is not None,
            dq_write_order=part(self.dq_write_order),
            dq_write_order_full=part(self.dq_write_order_full),
            dq_kv_order=self.dq_kv_order_spt if order is None else order,
        )

    @staticmethod
    def _slice_dq_kv_order(dq_kv_order: Tensor | None, index: tuple) -> Tensor | None:
        return None if dq_kv_order is None else dq_kv_order[index[:2]]

    def _dq_kv_order(self) -> Tensor | bool | None:
        return self.dq_kv_order_spt if self.dq_kv_order is None else self.dq_kv_order

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """Return the mask for the first `new_q_len` queries and `new_kv_len` keys."""
        rows, columns = -(-new_q_len // self.BLOCK_SIZE[0]), -(-new_kv_len // self.BLOCK_SIZE[1])
        partial = adjusted(self.kv_num_blocks, self.kv_indices, rows, columns)
        full: tuple[Tensor | None, Tensor | None] = (None, None)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            full = adjusted(self.full_kv_num_blocks, self.full_kv_indices, rows, columns)
        return type(self).from_kv_blocks(
            *partial,
            *full,
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod,
            seq_lengths=(new_q_len, new_kv_len),
        )

    def to(self, device: Any) -> BlockMask:
        """Return a BlockMask whose tensors are on `device`."""
        moved: Any = [x.to(device) if isinstance(x, Tensor) else x for x in self.as_tuple(flatten=False)]
        orders = ("dq_write_order", "dq_write_order_full", "dq_kv_order", "dq_kv_order_spt")
        return type(self)(*moved[:9], *moved[13:], **dict(zip(orders, moved[9:13], strict=True)))

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """Return a picture of the blocks of each batch and head: full, in part, or empty.

        grid_size: up to how many rows and columns are drawn; -1 for all. limit: how many pictures at most.
        """
        dense = self.to_dense()
        batches = dense.shape[:-2]
        lines: list[str] = []
        for number, place in enumerate(_places(batches)):
            if number == limit:
                lines.append("...")
                lines.append("To print out more, set BlockMask.to_string(limit=N)")
                lines.append("You can also index (BlockMask[batch, head]) to choose a specific batch or head")
                break
            lines += [str(place), *_picture(dense[place], grid_size), ""]
        return "\n".join(lines).rstrip("\n") + ("" if lines[-1:] != [""] else "\n")

    def __str__(self) -> str:
        head = f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n"
        return head + self.to_string().strip() + "\n)"

    def __repr__(self) -> str:
        def shape(x: Any) -> Any:
            return x.shape if isinstance(x, Tensor) else x

        lines = [f"{name}={shape(getattr(self, name))}" for name in _LISTS]
        lines += [
            f"{name}={shape(getattr(self, name))}" for name in _ORDERS if getattr(self, name) is not None
        ]
        lines += [f"BLOCK_SIZE={self.BLOCK_SIZE}", f"shape={self.shape}", f"sparsity={self.sparsity():.2f}%"]
        lines.append(f"mask_mod={getattr(self.mask_mod, '__name__', repr(self.mask_mod))}")
        return "BlockMask(\n" + ",\n".join("    " + line for line in lines) + "\n)"


def _places(sizes: tuple[int, ...]) -> Any:
    import itertools

    return itertools.product(*map(range, sizes))


def _picture(dense: Tensor, grid_size: int | tuple[int, int]) -> list[str]:
    """Lines of two characters for each cell, which stands for one block or several."""
    rows, columns = dense.shape
    across = (rows, columns) if grid_size == -1 else _pair(grid_size)
    height, width = (
        -(-size // max(min(most, size), 1)) for size, most in zip((rows, columns), across, strict=True)
    )
    seen, total = filled_blocks(dense != 0, max(height, 1), max(width, 1))
    drawn = [["  " if n == 0 else "██" if n == total else "░░" for n in row] for row in seen.tolist()]
    return ["".join(row) for row in drawn]


def _pair(size: int | tuple[int, int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else size


def create_block_mask(
    mask_mod: _mask_mod_signature,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """The BlockMask of `mask_mod(b, h, q_idx, kv_idx)`, which is evaluated for all queries and keys, some rows at a time.

    B, H: None for a mask that is the same for all batches, or heads. separate_full_blocks: list blocks that are seen whole
    for themselves.

    Raises: AssertionError if mask_mod takes scores or returns no bools; NotImplementedError for compute_dq_write_order.
    """
    if _takes_scores(mask_mod):
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    if compute_dq_write_order:
        raise NotImplementedError(
            "create_block_mask(compute_dq_write_order=True): the orders of writing are for a CUDA kernel of PyTorch's"
        )
    rows, columns = _pair(BLOCK_SIZE)
    sizes = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    counts = _block_counts(mask_mod, sizes, device, rows, columns)
    is_full = counts == rows * columns
    is_partial = counts > 0
    full: tuple[Tensor | None, Tensor | None] = (None, None)
    if separate_full_blocks:
        is_partial, full = is_partial & ~is_full, ordered(is_full)
    made = BlockMask.from_kv_blocks(
        *ordered(is_partial),
        *full,
        BLOCK_SIZE=(rows, columns),
        mask_mod=mask_mod,
        seq_lengths=(Q_LEN, KV_LEN),
    )
    made._lists_of = mask_mod
    return made


# So many elements of a mask are evaluated at once: 4 MiB of bools.
_ELEMENTS_AT_ONCE = 1 << 22


def _block_counts(mask_mod: Callable, sizes: tuple, device: Any, rows: int, columns: int) -> Tensor:
    """Return how many elements of each block the mask lets through: [B, H, rows of blocks, columns of blocks]."""
    from ._lanes import over_indices

    batch, heads, queries, keys = sizes
    at_once = max(1, _ELEMENTS_AT_ONCE // max(batch * heads * keys * rows, 1)) * rows
    indices = _indices(sizes, device)
    parts = []
    for start in range(0, queries, at_once):
        own = indices[2][start : start + at_once]
        mask = over_indices(mask_mod, [indices[0], indices[1], own, indices[3]])
        if mask.dtype is not bool_:
            raise AssertionError(f"mask.dtype must be torch.bool, got {mask.dtype}")
        mask = mask.expand(*mask.shape[:2], own.shape[0], keys)
        parts.append(filled_blocks(mask, rows, columns)[0].expand(batch, heads, -1, -1))
    return cat(parts, 2) if parts else zeros(batch, heads, 0, -(-keys // columns))


# ---- Attention -------------------------------------------------------------------------------------------------------


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: _score_mod_signature | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """softmax(score_mod(query @ key^T * scale)) @ value, where each query sees the keys that the mask lets through.

    `score_mod(score, b, h, q_idx, kv_idx)` is written for one score and its indices; it may use operations on
    tensors, and index tensors from outside. `block_mask.mask_mod` decides which keys a query sees; without any, it gets zeros.

    Shapes: query [B, Hq, L, E], key [B, Hkv, S, E], value [B, Hkv, S, Ev] -> [B, Hq, L, Ev], and with return_lse or
    return_aux the logarithms of the sums of exponentials [B, Hq, L]. enable_gqa: several heads of queries share one of keys.

    >>> import weft as torch
    >>> from weft.nn.attention.flex_attention import create_block_mask, flex_attention
    >>> q, k, v = torch.randn(3, 1, 2, 8, 4)
    >>> causal = create_block_mask(lambda b, h, q, k: q >= k, None, None, 8, 8, device="cpu")
    >>> distance = lambda score, b, h, q, k: score - (q - k) * 0.1
    >>> flex_attention(q, k, v, score_mod=distance, block_mask=causal).shape
    torch.Size([1, 2, 8, 4])
    """
    from ._flexible import attend

    _check(query, key, value, block_mask, enable_gqa)
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use "
            "return_aux=AuxRequest(lse=True) instead."
        )
    if kernel_options is not None and "OUTPUT_LOGSUMEXP" in kernel_options:
        raise AssertionError("OUTPUT_LOGSUMEXP must not be in kernel_options")
    if scale is None:
        scale = 1 / math.sqrt(query.size(-1)) if query.size(-1) else math.inf
    heads = query.size(1) // key.size(1) if key.size(1) else 1
    mask_mod = None if block_mask is None else block_mask.mask_mod
    mask_mod = None if mask_mod is noop_mask else mask_mod
    result, lse, highest = attend(
        query, key, value, score_mod, mask_mod, scale, heads, _seen_keys(block_mask, query.size(-2))
    )
    if return_aux is not None:
        return result, AuxOutput(lse if return_aux.lse else None, highest if return_aux.max_scores else None)
    return (result, lse) if return_lse else result


def _seen_keys(block_mask: BlockMask | None, length: int) -> SeenKeys | None:
    """Return the keys that the lists of a large mask name, if the lists were made from the mask_mod."""
    if (
        block_mask is None
        or block_mask._lists_of is not block_mask.mask_mod
        or block_mask.kv_indices.dim() != 4
    ):
        return None
    rows, columns = block_mask.BLOCK_SIZE
    return SeenKeys(block_mask.to_dense(), rows, columns) if rows <= length else None


def _check(query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None, enable_gqa: bool) -> None:
    """Raises PyTorch's errors for shapes and devices that do not fit."""
    if not query.device == key.device == value.device:
        raise ValueError(
            "Expected query, key, and value to have the same device type, but got query.device: "
            f"{query.device}, key.device: {key.device}, and value.device: {value.device} instead."
        )
    if min(query.dim(), key.dim(), value.dim()) < 2:
        raise ValueError(
            f"Expected query, key, and value to all be at least 2 dimensional, but got query.dim: {query.dim()}, "
            f"key.dim: {key.dim()} and value.dim: {value.dim()} instead."
        )
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.size(-1) != key.size(-1):
        raise ValueError(
            f"Expect query and key/value to have the same embedding dimension but got E={query.size(-1)} and "
            f"E={key.size(-1)}."
        )
    if query.size(0) != key.size(0) and (block_mask is None or key.size(0) != 1):
        raise ValueError(
            "Expect query and key/value to have the same batch size, or non-none block_mask, but got "
            f"block_mask={None if block_mask is None else 'a BlockMask'}, Bq={query.size(0)}, and Bkv={key.size(0)}."
        )
    own, shared = query.size(1), key.size(1)
    if not enable_gqa and own != shared:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={own} and Hkv={shared}. Try setting "
            "enable_gqa=True for GQA."
        )
    if enable_gqa and (shared == 0 or own % shared):
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={own} and Hkv={shared}."
        )
    if block_mask is not None:
        _check_lengths(block_mask, query.size(-2), key.size(-2))


def _check_lengths(block_mask: BlockMask, queries: int, keys: int) -> None:
    rows, columns = block_mask.seq_lengths
    if (rows, columns) == (queries, keys) or block_mask.BLOCK_SIZE[0] == _LARGE_SPARSE_BLOCK_SIZE:
        return
    message = f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={queries} and kv_len={keys}."
    if rows < queries or columns < keys:
        raise ValueError(
            f"{message} As the block mask was created for a smaller length than you're using it for, you likely need to "
            "create a new block mask."
        )
    raise ValueError(
        f"{message} As the block mask was created for a larger length than you're using it for, you can either create a new "
        f"block mask of the right lengths, or cut this one: block_mask._adjust({queries}, {keys})"
    )


__getattr__ = module_getattr(__name__)
