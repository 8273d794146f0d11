import pytest
from picture_texts import texts

import weft as torch


def gelu(x):
    return 0.5 * x * (1 + torch.erf(x * 0.7071067811865476))


def test_a_chain_is_one_kernel_with_a_formula():
    shown = texts(torch.viz.kernels(gelu, torch.ones(1000, 1000)))
    assert shown[:4] == [
        "Kernels of gelu",
        "1 kernel, 8 MB moved",
        "5 fused",
        "0.5 * a * (1 + erf(a * 0.7071))",
    ]
    assert shown[4] == "a (1000, 1000) → (1000, 1000) float32"
    assert shown[5].startswith("test_kernels.py:")


def test_a_reduction_is_a_part_of_the_kernel_of_its_chain():
    def distance(x, y):
        return ((x - y) * 2).sum()

    shown = texts(torch.viz.kernels(distance, torch.ones(1000, 1000), torch.zeros(1000, 1000)))
    assert shown[1:4] == ["1 kernel, 8 MB moved", "3 fused", "sum((a - b) * 2)"]


def test_small_operations_run_one_by_one():
    shown = texts(torch.viz.kernels(lambda x: (2 - x).exp() / 4, torch.ones(4, 3)))
    assert shown[:2] == ["Kernels of a function", "3 kernels, 288 bytes moved"]
    assert [shown[k] for k in (3, 9, 15)] == ["2 - a", "exp(a)", "a / 4"]


def test_steps_of_graphs_products_and_views():
    shown = texts(torch.viz.kernels(lambda x: torch.softmax(x @ x.t(), -1), torch.ones(4, 4)))
    assert shown[1] == "2 kernels, 320 bytes moved, 1 view"
    assert "a @ b" in shown
    assert "softmax(a) = amax → exp_above → sum → divided" in shown


def test_a_step_of_training_shows_kernels_of_backward():
    weight = torch.ones(3, requires_grad=True)
    shown = texts(torch.viz.kernels(lambda x: (x * weight).sum().backward(), torch.ones(3)))
    assert "sum(a)" in shown
    assert shown.count("a * b") >= 2


def test_many_kernels_are_cut():
    def many(x):
        for _ in range(30):
            x = x + 1
        return x

    assert texts(torch.viz.kernels(many, torch.ones(2)))[-1] == "… 14 more kernels"


def test_what_calls_observe_is_over_afterwards():
    from weft.core import dispatch

    with pytest.raises(ZeroDivisionError):
        torch.viz.kernels(lambda: 1 / 0)
    torch.viz.kernels(gelu, torch.ones(2))
    assert dispatch.watchers == []


def test_mistakes():
    with pytest.raises(TypeError, match="'function' .* must be callable, not Tensor"):
        torch.viz.kernels(torch.ones(2))
