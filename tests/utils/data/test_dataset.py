import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import weft

MODULES = (torch, weft)
LETTERS = list("abcdefghij")


def outcome(expression, module):
    """What an expression gives with the names of a module, warnings included; of an error its type and text."""
    data = module.utils.data

    class Counting(data.IterableDataset):
        def __init__(self, count, length=None):
            self.count, self.length = count, length

        def __iter__(self):
            return iter(range(self.count))

        def __len__(self):
            if self.length is None:
                raise TypeError("no length")
            return self.length

    class Whole(data.Dataset):
        """Has items in whole batches."""

        def __init__(self, items, extra=0):
            self.items, self.extra = items, extra

        def __len__(self):
            return len(self.items)

        def __getitem__(self, index):
            return self.items[index]

        def __getitems__(self, indices):
            return [(self.items[index], "whole") for index in indices] + [None] * self.extra

    names = {**vars(data), "t": module, "letters": LETTERS, "Counting": Counting, "Whole": Whole, "np": np}
    names["random_split"] = data.random_split
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = repr(eval(expression, names))
        except Exception as error:
            result = type(error), str(error)
    return result, [(warning.category, str(warning.message)) for warning in caught]


@pytest.mark.parametrize(
    "expression",
    [
        "Dataset()[0]",
        "len(Dataset())",
        "(Whole(letters) + Whole('xyz'))[11]",
        "len(Whole(letters) + Whole('xyz'))",
        "list(Counting(2) + Counting(3))",
        "len(Counting(2, 5) + Counting(3, 6))",
        "TensorDataset(t.zeros(2), t.zeros(3))",
        "TensorDataset([1, 2])",
        "len(TensorDataset())",
        "len(TensorDataset(t.zeros(4, 2), t.zeros(4)))",
        "TensorDataset(t.arange(4), t.ones(4, 2))[2]",
        "TensorDataset(t.arange(4), t.ones(4, 2))[[0, 3]]",
        "TensorDataset(t.arange(4))[1:3]",
        "TensorDataset(t.arange(4))[4]",
        "TensorDataset(t.arange(4)).tensors",
        "StackDataset()",
        "StackDataset([1], [1, 2])",
        "StackDataset([1], b=[1, 2])",
        "StackDataset(a=[1], b=[1, 2])",
        "StackDataset(a=[1, 2], b=[3, 4])[1]",
        "StackDataset([1, 2], [3, 4])[1]",
        "len(StackDataset([1, 2], [3, 4]))",
        "StackDataset([1, 2], [3, 4]).__getitems__([0, 1])",
        "StackDataset(a=[1, 2], b=[3, 4]).__getitems__([1, 0])",
        "StackDataset(Whole([1, 2]), [3, 4]).__getitems__([1, 0])",
        "StackDataset(a=Whole([1, 2]), b=[3, 4]).__getitems__([1, 0])",
        "StackDataset(Whole([1, 2], extra=1), [3, 4]).__getitems__([1, 0])",
        "StackDataset(a=Whole([1, 2], extra=1)).__getitems__([1, 0])",
        "ConcatDataset([])",
        "ConcatDataset([Counting(2)])",
        "[ConcatDataset([[1], [], [2, 3]])[i] for i in range(-3, 3)]",
        "ConcatDataset([[1], [2, 3]])[3]",
        "ConcatDataset([[1], [2, 3]])[-4]",
        "ConcatDataset([[1], [2, 3]]).cumulative_sizes",
        "ConcatDataset([[1], [2, 3]]).cummulative_sizes",
        "ConcatDataset.cumsum([[1], [2, 3]])",
        "list(ChainDataset([Counting(2), [1]]))",
        "len(ChainDataset([Counting(2, 3), [1]]))",
        "list(ChainDataset([Counting(2), Counting(1)]))",
        "len(ChainDataset([Counting(2)]))",
        "Subset(letters, [1, 2])[[0, 1]]",
        "Subset(t.arange(5), [1, 2])[[0, 1]]",
        "Subset(letters, [1, 2])[5]",
        "len(Subset(letters, [1, 2]))",
        "Subset(letters, [1, 2]).__getitems__([1, 0])",
        "Subset(Whole(letters), [1, 2]).__getitems__([1, 0])",
        "Subset(letters, [1, 2]).__getitems__([1, 2])",
        "random_split(letters, [0.5, 0.6])",
        "random_split(letters, [0.5, -0.1, 0.6])",
        "random_split(letters, [1.5, -0.5])",
        "[len(part) for part in random_split(letters[:2], [0.3, 0.3, 0.4])]",
        "[len(part) for part in random_split(letters, [10, 0])]",
        "[part.indices for part in random_split(letters, [7, 3], t.Generator().manual_seed(1))]",
        "[part.indices for part in random_split(letters, [0.7, 0.3], generator=t.Generator().manual_seed(1))]",
        "(t.manual_seed(4), [part.indices for part in random_split(letters, [7, 3])], t.rand(2))[1:]",
    ],
)
def test_datasets_do_what_pytorch_does(expression):
    assert outcome(expression, weft) == outcome(expression, torch)


@given(
    st.integers(0, 60),
    st.one_of(
        st.lists(st.sampled_from([0.1, 0.2, 0.25, 0.3, 0.5, 1 / 3, 1.0, 0.0]), min_size=1, max_size=5),
        st.lists(st.integers(0, 20), min_size=1, max_size=5),
    ),
)
def test_random_split_of_any_lengths(count, lengths):
    def split(module):
        generator = module.Generator().manual_seed(3)
        try:
            parts = module.utils.data.random_split(range(count), lengths, generator)
        except Exception as error:
            return type(error), str(error)
        return [part.indices for part in parts]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert split(weft) == split(torch)


def test_an_iterable_dataset_must_iterate():
    with pytest.raises(TypeError, match="abstract"):
        weft.utils.data.IterableDataset()


def test_datasets_can_be_subscripted_with_types():
    assert weft.utils.data.Dataset[int] is not None
    assert weft.utils.data.DataLoader[int] is not None


def test_names_are_where_pytorch_has_them():
    data = weft.utils.data
    for name in ("dataset", "sampler", "distributed", "dataloader", "_utils"):
        module, original = getattr(data, name), getattr(torch.utils.data, name)
        for public in getattr(original, "__all__", []):
            assert hasattr(module, public), (name, public)
    assert sorted(data.__all__) == sorted(torch.utils.data.__all__)
