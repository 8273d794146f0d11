"""Tensors of other layouts in inference mode: flags and errors are PyTorch's."""

import warnings

import pytest
import torch

import weft

LAYOUTS = {
    "COO": lambda t, x: x.to_sparse(),
    "CSR": lambda t, x: x.to_sparse_csr(),
    "strided nested": lambda t, x: t.nested.nested_tensor([x, x]),
    "jagged": lambda t, x: t.nested.nested_tensor([x, x], layout=t.jagged),
}


def _flags(t, make):
    """What each step says: a flag, or an error's type and first words."""
    x = t.tensor([[0, 2.0, 0, 0], [0, 0, 3, 4]])
    with t.inference_mode():
        made, result = make(t, x), make(t, x) * 2
        found = [made.is_inference(), result.is_inference(), made.clone().mul_(2).is_inference()]
    leaf, normal = make(t, x).requires_grad_(), make(t, x)
    with t.inference_mode():
        recorded = [(leaf * 2).requires_grad]
    steps = (
        lambda: result.mul_(2),
        lambda: made.requires_grad_(),
        lambda: (result * 2).is_inference(),
        lambda: result.clone().is_inference(),
        lambda: normal.mul_(2).is_inference(),
    )
    return found + recorded + [_outcome(step) for step in steps]


def _outcome(step):
    try:
        return step()
    except RuntimeError as error:
        return str(error)[:50]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_flags_and_errors(layout):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = _flags(torch, LAYOUTS[layout])
    assert _flags(weft, LAYOUTS[layout]) == expected


def test_inference_tensors_are_not_saved_for_backward():
    x = weft.eye(3).to_sparse()
    with weft.inference_mode():
        constant = x * 2
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x.clone().requires_grad_() * constant
