"""`profile.export_memory_timeline`: the memory of a training beside PyTorch's, in the three forms."""

import gzip
import json
import re

import pytest
import torch

import weft
from weft.profiler.memory_timeline import Category


@pytest.fixture(autouse=True)
def _deprecated():
    with pytest.warns(FutureWarning, match="export_memory_timeline"):
        yield


def trained(lib, steps=2):
    """The profile of a training, which ends before the gradients are dropped."""
    model = lib.nn.Sequential(lib.nn.Linear(30, 20), lib.nn.ReLU(), lib.nn.Linear(20, 4))
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = lib.ones(50, 30)
    with lib.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        for _ in range(steps):
            optimizer.zero_grad()
            model(x).pow(2).sum().backward()
            optimizer.step()
    return prof, model, x


def last_sizes(prof, path):
    prof.export_memory_timeline(str(path), device="cpu")
    times, sizes = json.loads(path.read_text())
    assert times == sorted(times)
    assert {len(row) for row in sizes} == {9}
    assert min(map(min, sizes)) >= 0
    return sizes[-1][1:]


def test_parameters_gradients_and_states_are_pytorchs(tmp_path):
    found = []
    for lib in (weft, torch):
        prof, model, x = trained(lib)
        found.append(last_sizes(prof, tmp_path / f"{lib.__name__}.json"))
    for category in (Category.PARAMETER, Category.GRADIENT, Category.OPTIMIZER_STATE, Category.INPUT):
        assert found[0][category] == found[1][category], category
    assert found[0][Category.PARAMETER] == 4 * sum(each.numel() for each in model.parameters())


def test_activations_end_with_the_backward(tmp_path):
    prof, model, x = trained(weft)
    prof.export_memory_timeline(str(tmp_path / "a.json.gz"))
    with gzip.open(tmp_path / "a.json.gz", "rt") as file:
        times, sizes = json.load(file)
    activations = [row[1 + Category.ACTIVATION] for row in sizes]
    assert max(activations) == 2 * 4 * 50 * 20  # the results of the first layer and of the ReLU
    assert activations[-1] == 0


def test_raw_events(tmp_path):
    prof, model, x = trained(weft)
    prof.export_memory_timeline(str(tmp_path / "a.raw.json.gz"))
    with gzip.open(tmp_path / "a.raw.json.gz", "rt") as file:
        events = json.load(file)
    assert {action for _, action, *_ in events} == {1, 2, 4}
    assert [-1, 1, x.nbytes, Category.INPUT] in events
    assert sum(nbytes for *_, nbytes, category in events if category == Category.ACTIVATION) == 0


def test_deferred_results_begin_when_they_are_computed(tmp_path):
    x = weft.ones(300, 1000)
    with weft.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        y = (x + 1) * 2
        total = y.sum()
    sizes = last_sizes(prof, tmp_path / "a.json")
    assert sizes[Category.INPUT] == x.nbytes
    assert sizes[Category.TEMPORARY] in (total.nbytes, y.nbytes + total.nbytes)
    assert y.shape == x.shape


def test_samples_of_vmap_have_no_memory(tmp_path):
    x = weft.ones(5, 3, 4)
    with weft.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        y = weft.func.vmap(lambda a: a.t() @ a)(x)
    assert last_sizes(prof, tmp_path / "a.json") == [0, 0, x.nbytes, y.nbytes, 0, 0, 0, 0]


def test_the_page_has_a_picture(tmp_path):
    trained(weft)[0].export_memory_timeline(str(tmp_path / "a.html"))
    page = (tmp_path / "a.html").read_text()
    assert len(re.findall("<polygon", page)) >= 5
    assert all(category.name in page for category in Category)


def test_flags_are_needed(tmp_path):
    with weft.profiler.profile(profile_memory=True) as prof:
        weft.ones(2)
    with pytest.raises(ValueError, match="record_shapes=True, with_stack=True required for memory profiling"):
        prof.export_memory_timeline(str(tmp_path / "a.json"))
    with weft.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        with pytest.raises(RuntimeError, match="didn't finish"):
            prof.export_memory_timeline(str(tmp_path / "a.json"))
    assert last_sizes_of_nothing(prof, tmp_path / "a.json") == [[], []]


def last_sizes_of_nothing(prof, path):
    prof.export_memory_timeline(str(path))
    return json.loads(path.read_text())
