"""Named results behave as PyTorch's."""

import copy
import pickle

import pytest
import torch

from weft.core.return_types import return_type

OURS = return_type("max", ("values", "indices"))
THEIRS = torch.return_types.max
PAIR = (1.5, "two")


@pytest.mark.parametrize(
    "look", [repr, str, len, hash, tuple, lambda r: r.indices, lambda r: r[:1], lambda r: r + (3,)]
)
def test_a_result_is_a_tuple_with_names(look):
    assert look(OURS(PAIR)) == look(THEIRS(PAIR))


@pytest.mark.parametrize(
    "name", ["__name__", "__module__", "__match_args__", "n_fields", "n_sequence_fields", "n_unnamed_fields"]
)
def test_the_type_tells_its_fields(name):
    assert str(getattr(OURS, name)).replace("weft", "torch") == str(getattr(THEIRS, name))
    assert repr(OURS).replace("weft", "torch") == repr(THEIRS)


@pytest.mark.parametrize(
    "misuse",
    [
        lambda t: t((1,)),
        lambda t: t(5),
        lambda t: type("Sub", (t,), {}),
        lambda t: setattr(t(PAIR), "values", 1),
    ],
)
def test_misuse_raises_the_same_error(misuse):
    with pytest.raises((TypeError, AttributeError)) as theirs:
        misuse(THEIRS)
    with pytest.raises(theirs.type):
        misuse(OURS)


def test_copies_and_pickles_keep_the_type():
    for copied in (copy.copy(OURS(PAIR)), copy.deepcopy(OURS(PAIR)), pickle.loads(pickle.dumps(OURS(PAIR)))):
        assert type(copied) is OURS and copied == PAIR
    assert return_type("max", ("values", "indices")) is OURS
