import array
import collections
import types
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
import torch

import weft

Point = collections.namedtuple("Point", "x y")


class Frozen(Mapping):
    """A mapping that cannot be built from a dict."""

    def __init__(self, first, second):
        self.values_ = {"first": first, "second": second}

    def __getitem__(self, key):
        return self.values_[key]

    def __iter__(self):
        return iter(self.values_)

    def __len__(self):
        return 2


class Pair(Sequence):
    """A sequence that cannot be built from a list."""

    def __init__(self, first, second):
        self.both = first, second

    def __getitem__(self, index):
        return self.both[index]

    def __len__(self):
        return 2


class Tagged(dict):
    tag = None


def tagged():
    result = Tagged(a=1)
    result.tag = "kept"
    return result


class Upper(str):
    pass


BATCHES = [
    lambda t: [],
    lambda t: [1, 2, 3],
    lambda t: [1, 2.5],
    lambda t: [1.5, 2],
    lambda t: [True, False],
    lambda t: [2**40, -1],
    lambda t: [1, "a"],
    lambda t: ["a", "b"],
    lambda t: [b"a", b"b"],
    lambda t: [Upper("a"), Upper("b")],
    lambda t: [None],
    lambda t: [1j],
    lambda t: [object],
    lambda t: [t.zeros(2), t.ones(2)],
    lambda t: [t.arange(6).reshape(2, 3).t(), t.zeros(3, 2, dtype=t.int64)],
    lambda t: [t.tensor(1.0), t.tensor(2, dtype=t.int64)],
    lambda t: [t.zeros(2), t.zeros(3)],
    lambda t: [np.zeros(2), np.ones(2)],
    lambda t: [np.float32(1.5), np.float32(2)],
    lambda t: [np.bool_(True), np.bool_(False)],
    lambda t: [np.int16(4)],
    lambda t: [np.array("a")],
    lambda t: [np.array(["a", "b"])],
    lambda t: [np.array([Ellipsis])],
    lambda t: [np.array(2.0), np.array(3.0)],
    lambda t: [(1, 2.0), (3, 4.0)],
    lambda t: [[1, 2.0], [3, 4.0]],
    lambda t: [(1, 2), (3,)],
    lambda t: [[], []],
    lambda t: [(), ()],
    lambda t: [{"a": 1, "b": (2, "x")}, {"a": 3, "b": (4, "y")}],
    lambda t: [{"a": 1}, {"b": 1}],
    lambda t: [{}, {}],
    lambda t: [collections.OrderedDict(b=1, a=2)],
    lambda t: [collections.defaultdict(list, a=1)],
    lambda t: [types.MappingProxyType({"a": 1})],
    lambda t: [Frozen(1, 2), Frozen(3, 4)],
    lambda t: [tagged(), tagged()],
    lambda t: [Pair(1, 2), Pair(3, 4)],
    lambda t: [Point(1, t.zeros(1)), Point(2, t.ones(1))],
    lambda t: [range(3), range(3)],
    lambda t: [collections.deque([1, 2]), collections.deque([3, 4])],
    lambda t: [collections.UserList([1, 2])],
    lambda t: [array.array("d", [1, 2])],
    lambda t: ((1, 2), (3, 4)),
    lambda t: 3,
    lambda t: {"a": 1},
    lambda t: [{1, 2}],
]


def described(value):
    """A value of either library: types, and attributes of dicts, as well as contents."""
    if type(value).__name__ == "Tensor":
        return repr(value), str(value.dtype), tuple(value.stride())
    if isinstance(value, Mapping):
        return type(value), getattr(value, "tag", None), [(key, described(value[key])) for key in value]
    if isinstance(value, (list, tuple, collections.deque, Pair, collections.UserList)):
        return type(value), [described(item) for item in value]
    return type(value), repr(value)


def outcome(function, module, make):
    try:
        return described(function(make(module)))
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("make", BATCHES)
def test_default_collate(make):
    got = outcome(weft.utils.data.default_collate, weft, make)
    assert got == outcome(torch.utils.data.default_collate, torch, make)


@pytest.mark.parametrize("make", BATCHES)
def test_default_convert(make):
    got = outcome(weft.utils.data.default_convert, weft, make)
    assert got == outcome(torch.utils.data.default_convert, torch, make)


@pytest.mark.parametrize("value", [np.float32(2), np.array([1.0, 2.0]), np.array(["a"]), np.str_("a")])
def test_default_convert_of_arrays(value):
    got = outcome(weft.utils.data.default_convert, weft, lambda t: value)
    assert got == outcome(torch.utils.data.default_convert, torch, lambda t: value)


def test_collating_leaves_the_items_alone():
    items = [{"a": [1, 2]}, {"a": [3, 4]}]
    weft.utils.data.default_collate(items)
    assert items == [{"a": [1, 2]}, {"a": [3, 4]}]


class Fraction:
    def __init__(self, value):
        self.value = value


class HalfFraction(Fraction):
    pass


def test_rules_for_types_of_users():
    from weft.utils.data._utils.collate import collate, default_collate_fn_map

    def sum_up(batch, *, collate_fn_map=None):
        return sum(item.value for item in batch)

    default_collate_fn_map[Fraction] = sum_up
    try:
        batch = [(1, HalfFraction(2)), (3, HalfFraction(5))]
        numbers, total = weft.utils.data.default_collate(batch)
        assert numbers.tolist() == [1, 3] and total == 7
    finally:
        del default_collate_fn_map[Fraction]
    with pytest.raises(TypeError, match="Fraction"):
        weft.utils.data.default_collate([Fraction(1)])
    assert (
        collate(["ab", "cd"], collate_fn_map={str: lambda batch, collate_fn_map: "+".join(batch)}) == "ab+cd"
    )


def test_without_rules_only_containers_are_collated():
    for module in (torch, weft):
        with pytest.raises(TypeError, match="found <class 'int'>"):
            module.utils.data._utils.collate.collate([(1,)])


def test_importable_where_scripts_look():
    from weft.utils.data.dataloader import default_collate

    assert default_collate is weft.utils.data._utils.collate.default_collate


def test_errors_about_dicts_name_the_keys():
    samples = [{"image": {"pixels": weft.ones(n)}, "label": n} for n in (2, 3)]
    with pytest.raises(RuntimeError, match="equal size") as raised:
        weft.utils.data.default_collate(samples)
    assert raised.value.__notes__[1:] == [
        f"in the values of the key {key!r} of a batch of dicts" for key in ("pixels", "image")
    ]
    with pytest.raises(KeyError) as raised:
        weft.utils.data.default_collate([{"image": 1}, {"label": 1}])
    assert raised.value.__notes__ == ["in the values of the key 'image' of a batch of dicts"]
