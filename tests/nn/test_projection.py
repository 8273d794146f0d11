import warnings

import pytest
import torch
import torch.nn.functional

import weft
import weft.nn.functional

EXPRESSIONS = """
F._canonical_mask(None, "a", None, "b", torch.float32)
F._canonical_mask(torch.tensor([True, False]), "a", torch.bool, "b", torch.float64)
F._canonical_mask(torch.tensor([True, False]), "a", torch.float32, "b", torch.float32)
F._canonical_mask(torch.tensor([True, False]), "a", torch.float32, "b", torch.float32, False)
F._canonical_mask(torch.tensor([0.0, 1.0]), "a", None, "b", torch.float32)
F._canonical_mask(torch.tensor([0, 1]), "a", None, "b", torch.float32)
F._none_or_dtype(None), F._none_or_dtype(X)
F._none_or_dtype(3)
[F._get_softmax_dim("softmax", ndim, 3) for ndim in range(5)]
F._verify_batch_size([1, 3, 2])
F._verify_batch_size([1, 3, 1])
F._mha_shape_check(X, X, X, None, None, 2)
F._mha_shape_check(X[0], X[0], X[0], X[0, :, 0], None, 2)
F._mha_shape_check(X, X[0], X, None, None, 2)
F._mha_shape_check(X[0, 0], X, X, None, None, 2)
F._mha_shape_check(X, X, X, X, None, 2)
F._mha_shape_check(X, X, X, None, X[0, 0], 2)
F._mha_shape_check(X[0], X[0], X[0], None, X, 2)
F._mha_shape_check(X[0], X[0], X[0], None, torch.ones(2, 3, 3), 2)
F._in_projection(X, X, X, W[:4], W[4:8], W[8:], B[:4], None, B[8:])
F._in_projection(X, X, X, W, W[4:8], W[8:])
F._in_projection(X, X, X, W[:4], W[4:8], W[8:], B)
F._in_projection_packed(X, X, X, W, B)
F._in_projection_packed(X, Y, Y, W, B)
F._in_projection_packed(X, Y, X, W, B)
F._in_projection_packed(X, Y, X, W)
F._in_projection_packed(X, Y, Y, W)
""".strip().splitlines()


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_helpers_do_what_pytorchs_do(expression):
    found = []
    for lib in (torch, weft):
        x = lib.arange(24.0).reshape(2, 3, 4)
        names = {"torch": lib, "F": lib.nn.functional, "X": x, "Y": x.flip(0), "W": lib.arange(48.0).reshape(12, 4) % 5, "B": lib.arange(12.0)}  # fmt: skip
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                result = str(eval(expression, names)).replace("weft.", "torch.")
            except Exception as error:
                result = type(error).__name__, str(error).splitlines()[0].replace("weft.", "torch.")
        found.append((result, [str(each.message) for each in seen]))
    assert found[0] == found[1]
