import itertools
import warnings

import pytest
import torch.nn._reduction

from weft.nn import _reduction


def test_old_arguments_mean_what_they_mean_in_pytorch():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for size_average, reduce in itertools.product((None, False, True), repeat=2):
            wanted = torch.nn._reduction.legacy_get_enum(size_average, reduce)
            assert _reduction.legacy_get_enum(size_average, reduce) == wanted
    with pytest.warns(UserWarning, match="will be deprecated"):
        _reduction.legacy_get_string(True, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _reduction.legacy_get_string(True, None, emit_warning=False)


def test_an_unknown_word():
    with pytest.raises(ValueError, match="x is not a valid value for reduction"):
        _reduction.get_enum("x")
