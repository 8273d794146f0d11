"""Checkpoints of several processes: each writes its parts, and other numbers of processes read them."""

import os
import time
from random import Random

import torch
import torch.distributed.checkpoint
from weft_ranks import said, start

import weft
import weft.distributed.checkpoint as dcp

SETUP = """
import weft.distributed.checkpoint as dcp
from weft.distributed.tensor import Replicate, Shard, distribute_tensor
mesh = dist.init_device_mesh("cpu", (size,))
whole = torch.arange(35.0).reshape(5, 7)
"""


def save(folder, size=2, more=""):
    program = f"""
state = {{
    "rows": distribute_tensor(whole, mesh, [Shard(0)]),
    "columns": distribute_tensor(whole + 1, mesh, [Shard(1)]),
    "replica": distribute_tensor(whole + 2, mesh, [Replicate()]),
    "plain": whole + 3,
    "inner": {{"epoch": 4}},
}}
{more or f"dcp.save(state, checkpoint_id='{folder}')"}
"""
    assert said(start(SETUP + program, size, folder)) == [""] * size


def test_other_processes_and_placements_read_it(tmp_path):
    save(tmp_path)
    program = f"""
into = {{
    "rows": distribute_tensor(torch.zeros(5, 7), mesh, [Shard(1)]),
    "columns": distribute_tensor(torch.zeros(5, 7), mesh, [Replicate()]),
    "replica": distribute_tensor(torch.zeros(5, 7), mesh, [Shard(0)]),
    "plain": torch.zeros(5, 7),
    "inner": {{"epoch": 0}},
}}
dcp.load(into, checkpoint_id='{tmp_path}')
found = [into[name].full_tensor() for name in ("rows", "columns", "replica")] + [into["plain"]]
print([torch.equal(each, whole + place) for place, each in enumerate(found)], into["inner"])
"""
    (tmp_path / "other").mkdir()
    texts = said(start(SETUP + program, 3, tmp_path / "other"))
    assert texts == ["[True, True, True, True] {'epoch': 4}\n"] * 3


def test_one_process_and_pytorch_read_it(tmp_path):
    save(tmp_path)
    names = "rows", "columns", "replica", "plain"
    into = {name: weft.zeros(5, 7) for name in names}
    dcp.load(into, checkpoint_id=tmp_path)
    theirs = {name: torch.zeros(5, 7) for name in names}
    torch.distributed.checkpoint.load(theirs, checkpoint_id=tmp_path, no_dist=True)
    for place, name in enumerate(names):
        expected = (weft.arange(35.0).reshape(5, 7) + place).tolist()
        assert into[name].tolist() == theirs[name].tolist() == expected
    # One rank writes what several have, and each its shards.
    sizes = [path.stat().st_size for path in sorted(tmp_path.glob("*.distcp"))]
    assert len(sizes) == 2 and max(sizes) < 2 * min(sizes)


def test_saving_while_training_goes_on(tmp_path):
    more = f"""
future = dcp.async_save(state, checkpoint_id='{tmp_path}')
for _ in range(50):
    dist.all_reduce(whole)
future.result()
"""
    save(tmp_path, more=more)
    into = {"rows": weft.zeros(5, 7)}
    dcp.load(into, checkpoint_id=tmp_path)
    assert into["rows"].tolist() == weft.arange(35.0).reshape(5, 7).tolist()


def test_a_failure_of_one_rank_is_raised_on_all(tmp_path):
    program = f"""
class Failing(dcp.DefaultSavePlanner):
    def resolve_data(self, write_item):
        raise KeyError("a reason") if rank == 1 else RuntimeError("none")

state = {{"rows": distribute_tensor(whole, mesh, [Shard(0)])}}
try:
    dcp.save(state, checkpoint_id='{tmp_path}', planner=Failing() if rank else None)
except BaseException as error:
    print(type(error).__name__, list(error.failures), str(error.failures[1][0]))
print(os.path.exists('{tmp_path}/.metadata'))
"""
    (tmp_path / "meeting").mkdir()
    texts = said(start(SETUP + program, 2, tmp_path / "meeting"))
    assert texts == ["CheckpointException [1] 'a reason'\nFalse\n"] * 2


TRAINING = """
import random
state = {
    "step": 0,
    "rows": distribute_tensor(torch.zeros(301, 70), mesh, [Shard(0)]),
    "replica": torch.zeros(20000),
}
if os.path.exists(f"{folder}/.metadata"):
    dcp.load(state, checkpoint_id=folder)
print("there", flush=True)
while True:
    gradient = torch.ones(())
    dist.all_reduce(gradient, op=dist.ReduceOp.MAX)
    state["step"] += 1
    state["rows"] += gradient.item()
    state["replica"] += gradient
    dcp.save(state, checkpoint_id=folder)
    print(state["step"], flush=True)
"""


def test_a_kill_at_a_random_moment_loses_nothing_that_was_saved(tmp_path):
    """Each time one of two ranks is killed while they train and save, the other ends, and the next ones go on from a whole checkpoint."""
    folder = tmp_path / "checkpoint"
    random = Random(27)
    before = 0
    for _ in range(int(os.environ.get("TESTED_KILLS", "3"))):
        processes = start(SETUP + f"folder = {str(folder)!r}" + TRAINING, 2, tmp_path)
        for process in processes:
            assert process.stdout.readline() == "there\n"
        time.sleep(random.uniform(0, 0.15))
        victim = random.randrange(2)
        processes[victim].kill()
        begin = time.monotonic()
        texts = said(processes)
        assert time.monotonic() - begin < 20, texts
        assert f"rank {victim}" in texts[1 - victim] and "has ended" in texts[1 - victim]
        last = max([before, *(int(line) for text in texts for line in text.splitlines() if line.isdecimal())])
        if not (folder / ".metadata").exists():
            assert last == 0
            continue
        into = {"step": 0, "rows": weft.zeros(301, 70), "replica": weft.zeros(20000)}
        dcp.load(into, checkpoint_id=folder)
        before = into["step"]
        assert before in (last, last + 1)
        assert (into["rows"] == before).all() and (into["replica"] == before).all()
        (tmp_path / "store").unlink(missing_ok=True)


def test_a_checkpoint_over_another_leaves_no_files_of_it(tmp_path):
    names = []
    for value in range(3):
        dcp.save({"x": weft.full((3,), value)}, checkpoint_id=tmp_path)
        names.append(sorted(path.name for path in tmp_path.iterdir()))
        into = {"x": weft.zeros(3, dtype=weft.int64)}
        dcp.load(into, checkpoint_id=tmp_path)
        assert into["x"].tolist() == [value] * 3
    assert names == [[".metadata", f"__0_{number}.distcp"] for number in (0, 1, 0)]
