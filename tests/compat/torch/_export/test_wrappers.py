"""`torch._export.wrappers` beside PyTorch's."""

import importlib

import pytest
import torch

import weft


@pytest.mark.parametrize("library", [torch, weft])
def test_constructors_are_marked_and_other_functions_refused(library):
    wrappers = importlib.import_module(f"{library.__name__}._export.wrappers")
    mark = wrappers.mark_subclass_constructor_exportable_experimental

    class Own:
        @mark
        def __init__(self, value, *, more=0):
            self.value = value, more

    assert Own(1, more=2).value == (1, 2)
    with pytest.raises(RuntimeError, match=r"can only be applied on subclass tensor\.__init__"):
        mark(lambda self: None)
