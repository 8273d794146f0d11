"""Datasets: things with items, by index or one after the other, and ways to combine them."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from ...core.generator import Generator, default_generator
from ...core.tensor import Tensor
from ...core.warn import user_level
from ...ops.creation.random import randperm

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class Dataset(Generic[_T_co]):
    """What has an item for every index. Subclasses write `__getitem__`, and `__len__` for the samplers.

    One that also has `__getitems__(indices)` is asked for a whole batch at once. `a + b` is both, one after the other.

    >>> from weft.utils.data import Dataset
    >>> class Squares(Dataset):
    ...     def __len__(self):
    ...         return 4
    ...     def __getitem__(self, index):
    ...         return index**2
    >>> (Squares() + Squares())[7]
    9
    """

    def __getitem__(self, index: Any) -> _T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[_T_co]) -> ConcatDataset[_T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[_T_co], Iterable[_T_co]):
    """What has items one after the other. Subclasses write `__iter__`.

    With several workers each of them iterates over the whole: `get_worker_info()` tells `__iter__` which part is its.
    """

    def __add__(self, other: Dataset[_T_co]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The rows of tensors with the same first size.

    Raises: AssertionError if the first sizes differ.

    >>> import weft as torch
    >>> pairs = torch.utils.data.TensorDataset(torch.arange(3), torch.tensor([10, 11, 12]))
    >>> pairs[1]
    (tensor(1), tensor(11))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensor.size(0) != tensors[0].size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset[Any]):
    """Items of several datasets side by side: tuples, or with keywords dicts.

    Raises: ValueError if the lengths differ, for none at all, and for a mixture of both forms.

    >>> from weft.utils.data import StackDataset
    >>> StackDataset(image=[1, 2], text=["a", "b"])[1]
    {'image': 2, 'text': 'b'}
    """

    datasets: tuple | dict

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, "
                "but both types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        lengths = [len(dataset) for dataset in args or kwargs.values()]
        if any(length != lengths[0] for length in lengths):
            raise ValueError("Size mismatch between datasets")
        self._length = lengths[0]
        self.datasets = args or kwargs

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: list) -> list:
        """Return the items of a batch.

        Raises: ValueError if a dataset gives another number of them.
        """
        if isinstance(self.datasets, dict):
            columns = [_items(dataset, indices) for dataset in self.datasets.values()]
            return [dict(zip(self.datasets, row)) for row in zip(*columns)]
        return list(zip(*(_items(dataset, indices) for dataset in self.datasets)))

    def __len__(self) -> int:
        return self._length


def _items(dataset: Any, indices: list) -> list:
    if not callable(getattr(dataset, "__getitems__", None)):
        return [dataset[index] for index in indices]
    items = dataset.__getitems__(indices)
    if len(items) != len(indices):
        raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}")
    return items


class ConcatDataset(Dataset[_T_co]):
    """Several datasets one after the other; `a + b` is one.

    Raises: AssertionError for no dataset, and for an IterableDataset.

    >>> from weft.utils.data import ConcatDataset
    >>> both = ConcatDataset(["ab", "cde"])
    >>> both.cumulative_sizes, both[-1]
    ([2, 5], 'e')
    """

    datasets: list
    cumulative_sizes: list[int]

    @staticmethod
    def cumsum(sequence: Iterable) -> list[int]:
        """Return where each dataset ends."""
        return list(itertools.accumulate(map(len, sequence)))

    def __init__(self, datasets: Iterable[Dataset[_T_co]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> _T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        # Past the end the last dataset says so.
        which = min(bisect.bisect_right(self.cumulative_sizes, idx), len(self.datasets) - 1)
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][idx - before]

    @property
    def cummulative_sizes(self) -> list[int]:
        warnings.warn(
            "`cummulative_sizes` attribute is renamed to `cumulative_sizes`",
            FutureWarning,
            stacklevel=user_level(),
        )
        return self.cumulative_sizes


class ChainDataset(IterableDataset[Any]):
    """Several IterableDatasets one after the other; `a + b` is one.

    Raises: AssertionError, when iterated or measured, for another kind of dataset.
    """

    def __init__(self, datasets: Iterable) -> None:
        super().__init__()
        self.datasets = datasets

    def __iter__(self) -> Iterator:
        for dataset in self._checked():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._checked())

    def _checked(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset


class Subset(Dataset[_T_co]):
    """The items of a dataset at some of its indices.

    >>> from weft.utils.data import Subset
    >>> list(Subset("abcde", [4, 0]))
    ['e', 'a']
    """

    dataset: Any
    indices: Sequence[int]

    def __init__(self, dataset: Dataset[_T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx: Any) -> _T_co:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list) -> list:
        """Return the items of a batch."""
        chosen = [self.indices[index] for index in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(chosen)
        return [self.dataset[index] for index in chosen]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[_T], lengths: Sequence[int | float], generator: Generator | None = default_generator
) -> list[Subset[_T]]:
    """Split a dataset at random into parts of these lengths, or of these fractions if they add up to 1.

    What fractions leave over goes to the first parts, one item each.

    Raises: ValueError if the lengths do not add up to that of the dataset.

    >>> import weft as torch
    >>> parts = torch.utils.data.random_split(range(10), [0.25, 0.75], torch.Generator().manual_seed(42))
    >>> [sorted(part) for part in parts]
    [[1, 2, 6], [0, 3, 4, 5, 7, 8, 9]]
    """
    total = sum(lengths)
    if math.isclose(total, 1) and total <= 1:
        lengths = _lengths_of(lengths, len(dataset))  # type: ignore[arg-type]
    if sum(lengths) != len(dataset):  # type: ignore[arg-type]
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = randperm(sum(lengths), generator=generator).tolist()  # type: ignore[arg-type]
    ends = itertools.accumulate(lengths)
    return [Subset(dataset, order[end - length : end]) for length, end in zip(lengths, ends)]


def _lengths_of(fractions: Sequence[float], count: int) -> list[int]:
    for position, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"Fraction at index {position} is not between 0 and 1")
    lengths = [math.floor(count * fraction) for fraction in fractions]
    for extra in range(count - sum(lengths)):
        lengths[extra % len(lengths)] += 1
    for position, length in enumerate(lengths):
        if length == 0:
            warnings.warn(
                f"Length of split at index {position} is 0. This might result in an empty dataset.",
                stacklevel=user_level(),
            )
    return lengths
