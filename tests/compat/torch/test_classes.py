import pytest
import torch

import weft


@pytest.mark.parametrize("lib", [weft, torch])
def test_there_are_no_registered_classes(lib):
    assert lib.classes.mylib is lib.classes.mylib
    with pytest.raises(RuntimeError, match=r"class 'mylib\.Thing', but it does not exist"):
        lib.classes.mylib.Thing  # noqa: B018
    with pytest.raises(OSError, match="Could not load this library"):
        lib.classes.load_library("/missing.so")
    assert isinstance(lib.classes.loaded_libraries, set)
