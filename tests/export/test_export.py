import pytest
import torch

import weft
from weft import nn
from weft.export import Dim, export


class Sizes(nn.Module):
    """Asks for sizes, takes apart and puts together, and decides by a shape."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)
        self.linear = nn.Linear(8 * 6 * 6, 5)
        self.constant = weft.ones(5)

    def forward(self, x, scales, *, shift=None):
        batch = x.shape[0]
        if isinstance(x, weft.Tensor) and x.dim() == 4:
            x = self.norm(self.conv(x)).relu()
        a, b = x.chunk(2, 1)
        y = self.linear(weft.cat([b, a], 1).view(batch, -1))
        return {
            "y": y * scales["by"] + weft.zeros(batch, 5) + self.constant,
            "size": y.size(0) * 2,
            "shift": shift,
        }


def inputs(batch):
    return (weft.randn(batch, 3, 8, 8), {"by": weft.tensor(2.0)}), {"shift": weft.randn(2)}


def test_a_program_gives_what_the_module_gives():
    model = Sizes().eval()
    args, kwargs = inputs(2)
    program = export(
        model, args, kwargs, dynamic_shapes={"x": {0: Dim("batch", max=64)}, "scales": None, "shift": None}
    )
    for batch in (1, 2, 7):
        args, kwargs = inputs(batch)
        got, wanted = program.module()(*args, **kwargs), model(*args, **kwargs)
        assert got["size"] == wanted["size"] == 2 * batch
        assert weft.equal(got["y"], wanted["y"]) and weft.equal(got["shift"], kwargs["shift"])
    signature = program.graph_signature
    assert signature.parameters == (
        "conv.weight",
        "conv.bias",
        "norm.weight",
        "norm.bias",
        "linear.weight",
        "linear.bias",
    )
    assert signature.user_inputs == ("x", "scales_by", "shift")
    assert signature.lifted_tensor_constants == ("constant",)
    assert dict(program.named_parameters())["linear.bias"] is model.linear.bias


def test_sizes_are_checked():
    model = Sizes().eval()
    args, kwargs = inputs(2)
    static = export(model, args, kwargs).module()
    shapes = {"x": {0: Dim("batch", max=4)}, "scales": None, "shift": None}
    dynamic = export(model, args, kwargs, dynamic_shapes=shapes).module()
    args, kwargs = inputs(5)
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[0\] == 2"):
        static(*args, **kwargs)
    with pytest.raises(AssertionError, match="between 0 and 4"):
        dynamic(*args, **kwargs)


def test_what_depends_on_elements_is_refused():
    class Decides(nn.Module):
        def forward(self, x):
            return x + 1 if x.sum() > 0 else x

    with pytest.raises(RuntimeError, match="depends on the elements"):
        export(Decides(), (weft.ones(2),))


def test_a_comparison_of_a_dynamic_size_is_refused():
    class Compares(nn.Module):
        def forward(self, x):
            return x + 1 if x.shape[0] == 2 else x

    assert weft.equal(export(Compares(), (weft.ones(2),)).module()(weft.ones(2)), weft.full((2,), 2.0))
    with pytest.raises(RuntimeError, match="Constraints violated"):
        export(Compares(), (weft.ones(2),), dynamic_shapes={"x": {0: Dim("n")}})


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN", "Transformer"])
def test_layers(kind):
    if kind == "Transformer":
        model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    else:
        model = getattr(nn, kind)(8, 4, 2, batch_first=True)
    shapes = ({0: Dim("batch"), 1: Dim("time")},)
    program = export(model, (weft.randn(2, 5, 8),), dynamic_shapes=shapes)
    x = weft.randn(3, 9, 8)
    got, wanted = program.module()(x), model(x)
    for a, b in zip(weft.utils._pytree.tree_leaves(got), weft.utils._pytree.tree_leaves(wanted), strict=True):
        assert weft.allclose(a, b)


def test_signatures_print_as_pytorchs():
    def program(library):
        library.manual_seed(0)

        class Model(library.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = library.nn.Linear(3, 4)
                self.register_buffer("kept", library.ones(4))
                self.register_buffer("lost", library.ones(4), persistent=False)
                self.constant = library.ones(4)

            def forward(self, x, pair):
                return self.layer(x) + self.kept + self.constant + self.lost, pair[0]

        args = (library.ones(2, 3), (library.ones(2), library.ones(1)))
        return library.export.export(Model(), args)

    assert str(program(weft).graph_signature) == str(program(torch).graph_signature)


def test_random_numbers_are_drawn_anew():
    class Noise(nn.Module):
        def forward(self, x):
            return x + weft.randn(2)

    module = export(Noise(), (weft.zeros(2),)).module()
    assert not weft.equal(module(weft.zeros(2)), module(weft.zeros(2)))
