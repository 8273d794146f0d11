"""What `from torch.x import *` brings."""

import importlib

import pytest
import torch

# Functions that PyTorch has in the module, but left out of its list.
MORE = {"fft": {"hfft2", "hfftn", "ihfft2", "ihfftn"}}


@pytest.mark.parametrize("name", ["fft", "nested", "special"])
def test_exports_are_pytorchs(name):
    module = importlib.import_module(f"weft.{name}")
    assert set(module.__all__) == set(getattr(torch, name).__all__) | MORE.get(name, set())
    assert all(hasattr(module, each) for each in module.__all__)
