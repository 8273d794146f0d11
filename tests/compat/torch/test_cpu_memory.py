"""`torch.cpu.memory`: numbers of the CPU's allocator, and snapshots that PyTorch's tools read."""

import pickle

import pytest
import torch.cuda._memory_viz as viz

import weft
from weft.cpu import memory


@pytest.fixture
def recording():
    memory._record_memory_history()
    yield
    memory._record_memory_history(enabled=None)


def events():
    return memory._snapshot()["device_traces"][0]


def actions(nbytes):
    return [each["action"] for each in events() if each["size"] == nbytes]


FREED = ["free_requested", "free_completed"]


def test_numbers_grow_and_shrink():
    memory.reset_peak_memory_stats()
    before = memory.memory_allocated()
    x = weft.ones(1000, 1001)
    assert memory.memory_allocated() - before >= x.nbytes
    del x
    assert memory.memory_allocated() == before
    assert memory.max_memory_allocated() >= before
    assert memory.memory_reserved() >= before
    memory.empty_cache()
    assert memory.memory_allocated() == before


def test_events_have_the_line_that_allocated(recording):
    x = weft.ones(5, 7)
    (event,) = events()
    assert (event["action"], event["size"], event["addr"]) == ("alloc", 140, x._storage.ptr)
    innermost = event["frames"][0]
    assert (innermost["filename"], innermost["name"]) == (
        __file__,
        "test_events_have_the_line_that_allocated",
    )
    (segment,) = memory.memory_snapshot()
    assert (segment["address"], segment["total_size"]) == (x._storage.ptr, 140)
    assert segment["blocks"][0]["frames"] == event["frames"]
    del x
    assert actions(140) == ["alloc", *FREED]
    assert memory.memory_snapshot() == []


def test_deferred_results_are_allocated_once(recording):
    x = weft.ones(300, 1000)
    y = (x + 1) * 2
    y += 1
    y.sum().item()
    assert memory.memory_snapshot()[-1]["total_size"] == x.nbytes
    del x, y
    assert memory.memory_snapshot() == []
    found = actions(300 * 1000 * 4)
    assert found.count("alloc") == found.count("free_completed") >= 2


def test_training_leaves_no_block(recording):
    model = weft.nn.Linear(30, 20)
    optimizer = weft.optim.Adam(model.parameters())
    for _ in range(3):
        model(weft.randn(10, 30)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    weft.linalg.svd(model.weight.detach())
    del model, optimizer
    import gc

    gc.collect()
    assert memory.memory_snapshot() == []


def test_pytorchs_tools_read_the_file(recording, tmp_path):
    x = weft.ones(5, 7) + 1
    memory._dump_snapshot(str(tmp_path / "snapshot.pickle"))
    with open(tmp_path / "snapshot.pickle", "rb") as file:
        snapshot = pickle.load(file)
    assert "140" in viz.segsum(snapshot) or "140" in viz.trace(snapshot)
    for page in (viz.trace_plot(snapshot), viz.segment_plot(snapshot)):
        assert "memory_viz" in page.lower() or "<html" in page.lower()
    assert x.sum() == 70


def test_only_the_last_events_are_kept():
    memory._record_memory_history(max_entries=2, context=None)
    for _ in range(5):
        weft.ones(3)
    assert [(each["action"], each["frames"]) for each in events()] == [(action, []) for action in FREED]
    memory._record_memory_history("state")
    x = weft.ones(3)
    assert events() == []
    assert len(memory.memory_snapshot()) == len([x])
    memory._record_memory_history(enabled=False)
    assert memory.memory_snapshot() == []


def test_afterwards_all_is_as_before():
    memory._record_memory_history()
    x = weft.ones(3)
    memory._record_memory_history(enabled=None)
    assert not {"allocator", "allocate", "adopt"} & set(vars(weft.device("cpu").backend))
    assert (x + x).tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="'state', 'all' or None, not 'some'"):
        memory._record_memory_history("some")
