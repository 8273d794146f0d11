import pytest
from picture_texts import texts

import weft as torch
from weft import nn


def test_peak_and_holders():
    weight = torch.ones(100, 50, requires_grad=True)

    def step(x):
        hidden = x @ weight
        return hidden.relu().sum()

    shown = texts(torch.viz.memory(step, torch.ones(20, 100)))
    assert shown[:2] == ["Memory of tensors in step", "peak 36 kB, 3 calls"]
    assert {"saved for backward", "variables"} <= set(shown)
    start = shown.index("At the peak: 5 storages")
    assert shown[start + 1 : start + 5] == ["20 kB", "(100, 50) float32", "weight", "made before"]
    assert "x, saved by Mm" in shown
    assert any(each.startswith("matmul, test_memory.py:") for each in shown)


def test_kinds_of_holders():
    model = nn.Linear(8, 8)
    optimizer = torch.optim.Adam(model.parameters())

    def step(x):
        model(x).sum().backward()
        optimizer.step()

    shown = texts(torch.viz.memory(step, torch.ones(4, 8)))
    kinds = {"parameters and buffers", "gradients", "states of optimizers", "saved for backward"}
    assert kinds <= set(shown)
    assert "model.weight" in " ".join(shown)


def test_what_is_dropped_is_not_counted_any_more():
    def grow_and_drop():
        for _ in range(5):
            torch.ones(1000).exp().sin()

    assert texts(torch.viz.memory(grow_and_drop))[1].startswith("peak 8 kB")


def test_a_function_without_tensors():
    shown = texts(torch.viz.memory(lambda: 3))
    assert shown[-1] == "no operation made or read a tensor with memory"


def test_functions_that_are_not_written_in_python():
    assert texts(torch.viz.memory(max, torch.ones(1), torch.zeros(1)))[0] == "Memory of tensors in max"


def test_mistakes():
    with pytest.raises(TypeError, match="'function' .* must be callable, not int"):
        torch.viz.memory(3)


def test_deferred_results_have_no_memory_yet():
    def chain(x):
        return x.exp().sin().cos()

    assert texts(torch.viz.memory(chain, torch.ones(1000, 1000)))[1] == "peak 4 MB, 3 calls"
