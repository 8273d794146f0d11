"""Dynamic dimensions: which are found to be constants, which comparisons are checked, and what the errors say."""

import math

import pytest
import torch

import weft
from weft import nn
from weft._dynamo.exc import UserError
from weft.export import AdditionalInputs, Dim, ShapesCollection, draft_export, export


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


X = weft.arange(12.0).reshape(4, 3)
FAILING = {
    "hard-coded": lambda x: x.view(4, 3) + 1,
    "compared": lambda x: x + 1 if x.shape[0] > 5 else x,
    "looped over": lambda x: sum(x[i] for i in range(x.shape[0])),
    "unpacked": lambda x: sum(x),
}


@pytest.mark.parametrize("name", FAILING)
@pytest.mark.parametrize("dim", ["n", "dynamic"])
def test_a_dimension_that_is_constant_is_an_error_as_in_pytorch(name, dim):
    class TorchFunction(torch.nn.Module):
        def forward(self, x):
            return FAILING[name](x)

    theirs = torch.export.Dim("n") if dim == "n" else torch.export.Dim.DYNAMIC
    ours = Dim("n") if dim == "n" else Dim.DYNAMIC
    if (
        name != "compared" or dim == "n"
    ):  # without a name, the dimension is limited to the sizes that compare alike
        with pytest.raises(torch._dynamo.exc.UserError, match="Constraints violated"):
            torch.export.export(TorchFunction(), (torch.ones(4, 3),), dynamic_shapes={"x": {0: theirs}})
        with pytest.raises(UserError, match="Constraints violated") as caught:
            export(Function(FAILING[name]), (X,), dynamic_shapes=({0: ours},))
        assert ("max=5" if name == "compared" else "(4)") in str(caught.value)


def test_automatic_dimensions_become_static_or_limited():
    for name, function in FAILING.items():
        program = export(Function(function), (X,), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},))
        assert weft.equal(program.module()(X), function(X))
        sizes = [node.meta["check"].sizes for node in program.graph.nodes if "check" in node.meta]
        assert (sizes[0][0] == 4) == (name != "compared") and (sizes[0][1] == 3) == (name == "hard-coded")
    limited = export(Function(FAILING["compared"]), (X,), dynamic_shapes=({0: Dim.AUTO},))
    assert str(limited.range_constraints) == "{s0: VR[0, 5]}"
    with pytest.raises(AssertionError, match="between 0 and 5"):
        limited.module()(weft.ones(6, 3))


def test_dimensions_that_must_be_equal():
    add = Function(lambda x, y: x + y)
    with pytest.raises(UserError, match="must always be equal"):
        export(add, (X, X), dynamic_shapes=({0: Dim("a")}, {0: Dim("b")}))
    module = export(add, (X, X), dynamic_shapes=({0: Dim.DYNAMIC}, {0: Dim.DYNAMIC})).module()
    assert module(weft.ones(2, 3), weft.ones(2, 3)).shape == (2, 3)
    with pytest.raises(AssertionError, match="Guard failed"):
        module(weft.ones(2, 3), weft.ones(5, 3))
    with pytest.raises(UserError, match="4 at .* and 2 at"):
        export(add, (X, X[:2]), dynamic_shapes=({0: Dim("a")}, {0: Dim("a")}))


def test_comparisons_are_checked_when_the_program_runs():
    sized = Function(lambda x: x * 2 if x.shape[0] * 2 > 6 else x)
    program = export(sized, (X,), dynamic_shapes=({0: Dim("n")},))
    assert weft.equal(program.module()(weft.ones(5, 3)), weft.full((5, 3), 2.0))
    with pytest.raises(AssertionError, match=r"\(n \* 2\) > 6"):
        program.module()(weft.ones(2, 3))


def test_derived_dimensions():
    halves = Function(lambda x, y: x[::2] + y)
    batch = Dim("batch")
    module = export(halves, (X, X[:2]), dynamic_shapes=({0: 2 * batch}, {0: batch})).module()
    assert module(weft.ones(6, 3), weft.ones(3, 3)).shape == (3, 3)
    with pytest.raises(AssertionError, match=r"2 \* batch"):
        module(weft.ones(6, 3), weft.ones(4, 3))


def test_sizes_that_are_accepted_as_by_pytorch():
    def answers(lib):
        class Reversed(lib.nn.Module):
            def forward(self, x, y):
                return 1 - x + y + lib.ones(10 - x.shape[0] + y.shape[0] - 10 + x.shape[0])

        batch = lib.export.Dim("n", max=8)
        shapes = {"x": {0: batch}, "y": {0: batch}}
        module = lib.export.export(Reversed(), (lib.ones(3),) * 2, dynamic_shapes=shapes).module()
        found = []
        for sizes in ((4, 4), (8, 8), (9, 9), (4, 5)):
            try:
                found.append(tuple(module(*map(lib.ones, sizes)).shape))
            except AssertionError as error:
                found.append(str(error)[:12])
        auto = lib.export.Dim.AUTO
        plain = lib.export.export(lib.nn.ReLU(), (lib.ones(1, 3),), dynamic_shapes=({0: auto, 1: auto},))
        with pytest.raises(AssertionError, match=r"size\(\)\[0\] == 1"):
            plain.module()(lib.ones(2, 3))
        found.append(tuple(plain.module()(lib.ones(1, 5)).shape))
        for high in (2, 3):
            with pytest.raises(AssertionError, match="inconsistent"):
                lib.export.Dim("a", min=3, max=high)
        return found

    assert answers(weft) == answers(torch)


def test_inputs_of_other_dims_and_elements_that_decide_are_refused():
    module = export(Function(lambda x: x + 1), (weft.ones(3, 1),)).module()
    with pytest.raises(AssertionError, match=r"dim\(\) == 2"):
        module(weft.ones(3))
    for function in (
        lambda x: x + 1 if weft.equal(x, x * 1) else x,
        lambda x: x + 1 if weft.allclose(x, x * 1) else x,
    ):
        with pytest.raises(RuntimeError, match="elements of a tensor"):
            export(Function(function), (weft.ones(3),))


def test_dimensions_in_which_one_of_the_inputs_differs_are_dynamic():
    more = AdditionalInputs()
    for size in (4, 3):
        more.add((weft.ones(size, 2),))
    (found,) = more.dynamic_shapes(Function(lambda x: x), (weft.ones(3, 2),)).values()
    found = list(found.values()) if isinstance(found, dict) else list(found)
    assert found == [Dim.DYNAMIC, None] or found == [[Dim.DYNAMIC, None]]


def test_numbers_of_sizes_and_elements():
    def function(x):
        chosen = x[x > 4]
        places = x.nonzero()
        mean = x / math.sqrt(x.shape[0]) * (1 / x.shape[0]) * x[0, 1].item()
        return (
            chosen.reshape(chosen.shape[0], 1),
            places.shape[0],
            weft.zeros(places.size(0)),
            mean,
            x.shape.numel(),
        )

    module = export(Function(function), (X,), dynamic_shapes=({0: Dim("n")},)).module()
    x = weft.arange(15.0).reshape(5, 3)
    for ours, wanted in zip(module(x), function(x), strict=True):
        assert weft.allclose(weft.as_tensor(ours), weft.as_tensor(wanted))


def test_collections_and_additional_inputs():
    add = Function(lambda x, y: x + y.sum())
    y = weft.ones(2)
    shapes = ShapesCollection()
    shapes[X] = {0: Dim("n")}
    assert export(add, (X, y), dynamic_shapes=shapes).module()(weft.ones(9, 3), y).shape == (9, 3)
    more = AdditionalInputs()
    more.add((weft.ones(7, 3), y))
    program = export(add, (X, y), dynamic_shapes=more)
    more.verify(program)
    assert list(program.range_constraints) == ["s0"]


@pytest.mark.parametrize(
    "shapes, message",
    [
        ({"y": None}, "top-level keys must be the arg names"),
        ([None, None], "one entry for each"),
        ([[Dim("n")]], "same length"),
        ([{0: 5}], "Static shape constraint"),
        ([{0: "n"}], "Unexpected dimension"),
        ([{0: Dim("n", max=2)}], "not in range"),
    ],
)
def test_wrong_dynamic_shapes(shapes, message):
    class Plus(nn.Module):
        def forward(self, x):
            return x + 1

    with pytest.raises(UserError, match=message):
        export(Plus(), (X,), dynamic_shapes=shapes)


def test_draft_export_says_what_is_static():
    program = draft_export(Function(FAILING["hard-coded"]), (X,), dynamic_shapes=({0: Dim("n")},))
    assert not program._report.successful() and "constant (4)" in str(program._report)
    assert weft.equal(program.module()(X), X + 1)
    assert draft_export(nn.ReLU(), (X,))._report.successful()
