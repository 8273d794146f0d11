# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from .maskedtensor.core import MaskedTensor as MaskedTensor
from .maskedtensor.creation import as_masked_tensor as as_masked_tensor
from .maskedtensor.core import is_masked_tensor as is_masked_tensor
from .maskedtensor.creation import masked_tensor as masked_tensor
from . import maskedtensor as maskedtensor
from ..core.registry import namespace as namespace
