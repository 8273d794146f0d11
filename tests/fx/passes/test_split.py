"""Splitting modules gives PyTorch's submodules and code, and the same numbers."""

import numpy as np
import pytest
import torch
import torch.fx.passes.split_module
import torch.fx.passes.split_utils

import weft


def model(library):
    nn = library.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.weight = nn.Parameter(library.ones(4))
            self.layers = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
            self.register_buffer("scale", library.ones(4))

        def forward(self, x, y=None):
            z = library.relu(self.linear(x) + self.weight)
            v = self.layers(z) * self.scale
            return library.neg(z) + v, z.sum(), v

    library.manual_seed(0)
    return library.fx.symbolic_trace(Model())


def shown(module):
    children = {name: shown(child) for name, child in module.named_children() if hasattr(child, "graph")}
    return module.code, children, [name for name, _ in module.named_parameters()]


def check_same_numbers(first, second):
    x = weft.linspace(-1, 1, 8).reshape(2, 4)
    for one, other in zip(first(x, None), second(x, None)):
        np.testing.assert_allclose(np.asarray(one.detach()), np.asarray(other.detach()), rtol=1e-6)


HALVES = lambda place: int(place > 4)  # noqa: E731
CASES = {
    "halves": (HALVES, {}),
    "order": (HALVES, dict(keep_original_order=True)),
    "names": (HALVES, dict(keep_original_node_name=True)),
    "inputs": (HALVES, dict(keep_original_input_name=False)),
    "affix": (HALVES, dict(partition_affix="part")),
    "tuples": (HALVES, dict(tuple_return=True)),
    "one": (lambda place: 0, {}),
    "each": (lambda place: place, {}),
    "backward": (lambda place: 100 - place, {}),
    "words": (lambda place: "ab"[place > 3], {}),
    "cycle": (lambda place: place % 3, {}),
}


@pytest.mark.parametrize("case", CASES)
def test_split_module(case):
    number, options = CASES[case]

    def split(library):
        module = model(library)
        places = {node: place for place, node in enumerate(module.graph.nodes)}
        paths = {}
        try:
            found = library.fx.passes.split_module.split_module(
                module, module, lambda node: number(places[node]), paths, **options
            )
        except RuntimeError as error:
            return None, module, str(error)
        found.graph.lint()
        return found, module, paths

    mine, whole, own_paths = split(weft)
    theirs, _, their_paths = split(torch)
    assert own_paths == their_paths
    if mine is not None:
        assert shown(mine) == shown(theirs)
        check_same_numbers(mine, whole)


@pytest.mark.parametrize("return_tuple", [False, True])
def test_split_by_tags(return_tuple):
    def split(library):
        module = model(library)
        for place, node in enumerate(module.graph.nodes):
            if node.op not in ("placeholder", "output", "get_attr"):
                node.tag = "first" if place < 5 else "second"
        split_by_tags = library.fx.passes.split_utils.split_by_tags
        found, paths = split_by_tags(module, ["first", "second"], True, return_tuple)
        return found, module, paths

    mine, whole, own_paths = split(weft)
    theirs, _, their_paths = split(torch)
    assert shown(mine) == shown(theirs)
    assert own_paths == their_paths
    check_same_numbers(mine, whole)
