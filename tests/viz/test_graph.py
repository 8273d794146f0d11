import pytest
from picture_texts import texts

import weft as torch
from weft import nn


def test_steps_leaves_shapes_and_saved_bytes():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU())
    loss = model(torch.ones(8, 16)).sum()
    shown = texts(torch.viz.graph(loss, model))
    assert shown[:2] == ["The graph of the result of Sum", "5 nodes, 1.54 kB saved for backward"]
    pairs = list(zip(shown[2::2], shown[3::2]))
    assert pairs[:3] == [
        ("Sum", "()"),
        ("Relu", "(8, 32)  saves 1.02 kB"),
        ("Addmm", "(8, 32)  saves 512 bytes"),
    ]
    assert set(pairs[3:]) == {("0.weight", "(32, 16)"), ("0.bias", "(32,)")}


def test_names_of_leaves():
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    shown = texts(torch.viz.graph(a * b, {"first": a}))
    assert "first" in shown
    assert "leaf" in shown
    assert texts(torch.viz.graph(a))[0] == "The graph of a leaf"


def test_after_backward_saved_tensors_are_freed():
    a = torch.ones(3, requires_grad=True)
    result = (a * a).sum()
    assert "(3,)  saves 12 bytes" in texts(torch.viz.graph(result)) or "saves 24" in str(
        torch.viz.graph(result)
    )
    result.backward()
    assert "(3,)  freed" in texts(torch.viz.graph(result))


def test_long_graphs_are_cut():
    x = torch.ones(2, requires_grad=True)
    y = x
    for _ in range(3000):
        y = y.sin()
    picture = torch.viz.graph(y)
    shown = texts(picture)
    assert shown.count("Sin") == 22
    assert "… 2,979 more nodes" in shown
    assert picture.height < 1700


def test_wide_layers_are_cut():
    shown = texts(torch.viz.graph(torch.cat([torch.ones(2, requires_grad=True) for _ in range(100)])))
    assert shown.count("leaf") + 94 == 100
    assert "… 94 more nodes" in shown


def test_nodes_of_functions_of_the_program():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return 2 * x

        @staticmethod
        def backward(ctx, ct):
            return 2 * ct

    assert "(5,)  saves 20 bytes" in texts(torch.viz.graph(Double.apply(torch.ones(5, requires_grad=True))))


def test_mistakes():
    with pytest.raises(ValueError, match=r"no graph was recorded .* outside of torch.no_grad\(\)"):
        torch.viz.graph(torch.ones(2))
    with pytest.raises(TypeError, match="graph of a tensor, but was given float"):
        torch.viz.graph(1.0)
    with pytest.raises(
        TypeError, match="'names' .* a module, or a dictionary from names to tensors, not list"
    ):
        torch.viz.graph(torch.ones(2, requires_grad=True), ["a"])
