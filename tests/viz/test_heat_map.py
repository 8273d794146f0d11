import math

import pytest
from picture_texts import elements, texts

import weft as torch
from weft.viz.heat_map import colour_of


def colours(picture):
    return [each.get("fill") for each in elements(picture, "rect") if each.get("fill")]


def test_cells_have_colours_and_values():
    picture = torch.viz.heat_map(torch.tensor([[-2.0, 0.0], [1.0, math.nan]]))
    assert colours(picture)[:4] == ["#2166ac", "#f7f7f7", "#f4a582", "#7f7f7f"]
    assert texts(picture)[2:] == ["-2.", "0.", "1.", "nan", "-2.", "0.", "2."]


def test_a_vector_and_a_number():
    assert len(colours(torch.viz.heat_map(torch.arange(5)))) == 5 + 48
    assert len(colours(torch.viz.heat_map(torch.tensor(True)))) == 1 + 48


def test_large_matrices_are_means_of_blocks():
    picture = torch.viz.heat_map(torch.ones(300, 130))
    assert texts(picture)[1] == "(300, 130) float32, a cell is the mean of 5 × 3"
    assert len(colours(picture)) == 60 * 44 + 48


def test_infinities_have_the_colours_of_the_ends():
    assert colour_of(math.inf, (0.0, 1.0)) == colour_of(1.0, (0.0, 1.0))
    assert colour_of(-math.inf, (-1.0, 1.0)) == colour_of(-1.0, (-1.0, 1.0))
    torch.viz.heat_map(torch.full((2, 2), math.inf))


def test_mistakes():
    with pytest.raises(
        ValueError, match=r"at most two dimensions, but the tensor has 3, of sizes \(2, 1, 1\)"
    ):
        torch.viz.heat_map(torch.ones(2, 1, 1))
    with pytest.raises(TypeError, match=r"x.abs\(\)"):
        torch.viz.heat_map(torch.ones(2, dtype=torch.complex64))
    with pytest.raises(ValueError, match="no elements"):
        torch.viz.heat_map(torch.ones(2, 0))
    with pytest.raises(ValueError, match="on meta has no values"):
        torch.viz.heat_map(torch.ones(2, device="meta"))
