"""Tables whose keys are found by identity, as in PyTorch."""

import copy

import pytest
import torch

import weft

LIBRARIES = pytest.mark.parametrize("lib", [weft, torch])


class Names:
    """No mapping, but an object with `keys` and `[]`, which `update` of a dict takes, too."""

    def __init__(self, items):
        self.items_ = items

    def keys(self):
        return [key for key, _ in self.items_]

    def __getitem__(self, wanted):
        return next(value for key, value in self.items_ if key is wanted)


@LIBRARIES
def test_forms_of_update(lib):
    x, y = lib.ones(2), lib.ones(2)
    for other in ([(x, 1), (y, 2)], {x: 1, y: 2}, Names([(x, 1), (y, 2)])):
        table = lib.utils.weak.WeakIdKeyDictionary()
        table.update(other)
        assert [table[x], table[y]] == [1, 2]


@LIBRARIES
def test_unions(lib):
    x, y, z = lib.ones(2), lib.ones(2), lib.ones(2)
    table, plain = lib.utils.weak.WeakIdKeyDictionary({x: 1, y: 2}), {y: 3, z: 4}
    for found, wanted in ((table | plain, [1, 3, 4]), (plain | table, [1, 2, 4])):
        assert type(found) is type(table) and [found[each] for each in (x, y, z)] == wanted
    with pytest.raises(TypeError, match="unsupported operand"):
        [1] | table
    assert len(copy.copy(table)) == 2
