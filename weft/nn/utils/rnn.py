"""Sequences of different lengths are padded to one length, or packed one time step after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import weft

from ...core.arguments import number
from ...core.checking import tensors
from ...core.names import named
from ...core.tensor import Tensor

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip


class PackedSequence_(NamedTuple):  # noqa: N801 (PyTorch's name)
    """Holds the fields of a PackedSequence."""

    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


class PackedSequence(PackedSequence_):
    """Sequences by time step: `data` has the first elements of all, then the second ones of those that have them.

    Shapes: data [sum of lengths, *]; batch_sizes [longest] int64 on the CPU, how many sequences reach each step;
    sorted_indices [batch], the place in the batch of each sequence, longest first; unsorted_indices its inverse.
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Any:
        if batch_sizes is None:  # all of it as one pair
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in "
                "nn.utils.rnn. https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return the sequences with another dtype or device: itself if nothing changes."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        # Convert only the device of the permutations, because they are integers.
        moved = [
            None if each is None else each.to(data.device)
            for each in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *moved)

    def cpu(self) -> PackedSequence:
        """Return the sequences on the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> PackedSequence:
        """Return the sequences on a GPU."""
        return self.to("cuda" if device is None else device)

    def pin_memory(self) -> PackedSequence:
        """Return the sequences in page-locked memory."""
        return type(self)(self.data.pin_memory(), *self[1:])

    @property
    def is_cuda(self) -> bool:
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Return whether the data are in page-locked memory."""
        return self.data.is_pinned()


def _conversion(name: str) -> Callable[[PackedSequence], PackedSequence]:
    @named(name)
    def method(self: PackedSequence) -> PackedSequence:
        """Return the sequences with their data converted by `{name}`."""
        return type(self)(getattr(self.data, name)(), *self[1:])

    return method


for _name in "double float half long int short char byte".split():
    setattr(PackedSequence, _name, _conversion(_name))


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the permutation that undoes another one."""
    if permutation is None:
        return None
    result = weft.empty_like(permutation)
    result[permutation] = weft.arange(permutation.numel(), device=permutation.device)
    return result


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack sequences that are padded to one length.

    Shapes: input [longest, batch, *], or [batch, longest, *] if `batch_first`; lengths [batch].
    Raises: RuntimeError if the lengths are not positive, do not fit the batch, or, with `enforce_sorted`, grow.

    >>> import weft as torch
    >>> padded = torch.tensor([[1, 2, 3], [4, 5, 0]])
    >>> torch.nn.utils.rnn.pack_padded_sequence(padded, [3, 2], batch_first=True).data
    tensor([1, 4, 2, 5, 3])
    """
    lengths = weft.as_tensor(lengths, dtype=weft.int64, device="cpu")
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = weft.sort(lengths, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    if batch_first:
        input = input.transpose(0, 1)
    sizes = _batch_sizes(lengths, input)
    batch = input.shape[1]
    places = weft.tensor([step * batch + i for step, size in enumerate(sizes) for i in range(size)])
    data = input.flatten(0, 1).index_select(0, places.to(input.device))
    return PackedSequence(data, weft.tensor(sizes), sorted_indices)


def _batch_sizes(lengths: Tensor, input: Tensor) -> list[int]:
    """Return how many sequences reach each step. Raises: RuntimeError for lengths that do not fit."""
    listed = lengths.tolist()
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if len(listed) != input.shape[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(listed)} (batch_size={input.shape[1]})"
        )
    if min(listed) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if listed != sorted(listed, reverse=True):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    if listed[0] > input.shape[0]:
        raise RuntimeError(
            f"Expected all lengths to be at most {input.shape[0]}, the padded length, but got {listed[0]}"
        )
    return [sum(length > step for length in listed) for step in range(listed[0])]


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return (padded, lengths) of packed sequences, in their order before packing.

    Shapes: padded [longest, batch, *], or [batch, longest, *] if `batch_first`; lengths [batch] int64.
    Raises: ValueError if `total_length`, to which they are padded, is less than the longest.
    """
    sizes = sequence.batch_sizes.tolist()
    steps = len(sizes)
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    data, batch = sequence.data, sizes[0]
    places = weft.tensor([step * batch + i for step, size in enumerate(sizes) for i in range(size)])
    padded = data.new_full((steps * batch, *data.shape[1:]), padding_value)
    padded = padded.index_copy(0, places.to(data.device), data).unflatten(0, (steps, batch))
    lengths = weft.tensor([sum(size > i for size in sizes) for i in range(batch)])
    if batch_first:
        padded = padded.transpose(0, 1)
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.cpu()]
    return padded, lengths


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Stack tensors of different lengths, and pad the shorter ones with `padding_value`.

    Shapes: each [length, *] -> [longest, batch, *], or [batch, longest, *] if `batch_first`.
    Raises: RuntimeError for anything but a collection of tensors, or an unknown `padding_side`.

    >>> import weft as torch
    >>> torch.nn.utils.rnn.pad_sequence([torch.ones(2), torch.ones(3)], batch_first=True)
    tensor([[1., 1., 0.],
            [1., 1., 1.]])
    """
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    try:
        listed = list(sequences)
    except TypeError:
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        ) from None
    if not listed:
        raise RuntimeError("received an empty list of sequences")
    tensors(listed, "pad_sequence", "sequences")
    number(padding_value, "pad_sequence", "padding_value", 3)
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if not all(each.dim() for each in listed):
        raise RuntimeError(
            "pad_sequence: expected sequences of at least one dimension, but got one without dimensions"
        )
    longest = max(each.shape[0] for each in listed)
    batch_dim = 0 if batch_first else 1
    return weft.stack(
        [_filled_up(each, longest, padding_value, padding_side) for each in listed], dim=batch_dim
    )


def _filled_up(sequence: Tensor, length: int, value: float, side: str) -> Tensor:
    missing = length - sequence.shape[0]
    if not missing:
        return sequence
    padding = sequence.new_full((missing, *sequence.shape[1:]), value)
    return weft.cat([padding, sequence] if side == "left" else [sequence, padding])


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Return the sequences of a padded tensor, each cut to its length.

    Shapes: padded_sequences [longest, batch, *], or [batch, longest, *] if `batch_first`; lengths [batch].
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [sequence[:length] for sequence, length in zip(padded_sequences, lengths.tolist())]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack tensors of different lengths, which must not grow if `enforce_sorted`.

    >>> import weft as torch
    >>> torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5])]).batch_sizes
    tensor([2, 2, 1])
    """
    lengths = weft.tensor([sequence.shape[0] for sequence in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the sequences that were packed, each of its own length."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
