"""Ops of NumPy and LAPACK whose operands are the same for all samples keep the gradients of what surrounds `vmap`."""

import pytest
import torch

import weft


@pytest.mark.parametrize("name", ["det", "inv", "sort", "qr"])
def test_constants_of_a_mapped_function_have_gradients(name):
    gradients = []
    for lib in (torch, weft):
        a = lib.tensor([[1.5, 0.3, 0.2], [0.1, 2.0, 0.4], [0.3, 0.2, 1.1]], requires_grad=True)
        of = {
            "det": lib.linalg.det,
            "inv": lib.linalg.inv,
            "sort": lambda x: x.sort().values,
            "qr": lambda x, qr=lib.linalg.qr: qr(x).R,
        }[name]
        lib.vmap(lambda c: (c * of(a)).sum())(lib.arange(1.0, 4.0)).sum().backward()  # noqa: B023 (called at once)
        gradients.append(a.grad.numpy())
    assert gradients[1] == pytest.approx(gradients[0], rel=1e-4, abs=1e-5)


def test_membership_among_elements_with_nan():
    nan = float("nan")
    elements, tests = [[1.0, nan], [4.0, 2.0]], [[1.0, nan, nan], [1.0, 2.0, 3.0]]
    found = weft.vmap(weft.isin)(weft.tensor(elements), weft.tensor(tests))
    assert found.tolist() == [[True, False], [False, True]]
