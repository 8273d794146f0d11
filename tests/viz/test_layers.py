from hypothesis import given
from hypothesis import strategies as st

from weft.viz.layers import layers_of, layout, spread

_boxes = st.lists(st.tuples(st.floats(-500, 1500), st.floats(10, 90)), min_size=1, max_size=6)


@given(_boxes)
def test_boxes_do_not_overlap(boxes):
    wanted, widths = zip(*boxes, strict=True)
    found = spread(wanted, widths, 1000.0)
    edges = [(x - width / 2, x + width / 2) for x, width in zip(found, widths, strict=True)]
    assert all(right < left for (_, right), (left, _) in zip(edges, edges[1:]))
    assert edges[0][0] >= -1e-6
    assert edges[-1][1] <= 1000.0 + 1e-6


def test_boxes_stand_where_they_want_if_there_is_room():
    assert spread([100.0, 300.0], [50.0, 50.0], 800.0) == [100.0, 300.0]


def test_layers_are_the_longest_paths():
    edges = {"a": ["b", "d"], "b": ["c"], "c": ["d"], "d": []}
    assert layers_of(edges, "abcd") == {"a": 0, "b": 1, "c": 2, "d": 3}


def test_a_long_edge_passes_beside_the_nodes_between():
    edges = {"a": ["b", "d"], "b": ["c"], "c": ["d"], "d": []}
    layers = layers_of(edges, "abcd")
    places = layout(edges, layers, dict.fromkeys("abcd", 60.0), 800.0)
    bends = places.bends["a", "d"]
    assert len(bends) == 2
    assert all(abs(bend - places.x[node]) >= 35 for bend, node in zip(bends, "bc", strict=True))


def test_edges_do_not_cross_without_need():
    edges = {"top": ["x", "y"], "x": ["p"], "y": ["q"], "q": [], "p": []}
    places = layout(edges, layers_of(edges, ["top", "x", "y", "q", "p"]), dict.fromkeys(edges, 60.0), 800.0)
    assert (places.x["x"] < places.x["y"]) == (places.x["p"] < places.x["q"])
