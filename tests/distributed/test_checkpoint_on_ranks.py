"""Checkpoints of several processes: each writes its parts, and other numbers of processes read them."""

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
