"""Programs on MPI compute what they compute through shared memory."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from several_ranks import TESTS, loaded, outcomes, programs

MODULE = "rank_programs"
# Where the environment of this Python has none of its own, that of the machine.
MPIEXEC = shutil.which(
    "mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
)
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or MPIEXEC is None,
    reason="needs mpi4py and mpiexec",
)


def mpiexec(*command, size=2, folder):
    environment = {**os.environ, "PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS}"}
    return subprocess.run(
        [MPIEXEC, "-n", str(size), sys.executable, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(("size", "way"), [(2, "memory"), (2, "messages"), (3, "messages")])
def test_same_as_without_mpi(tmp_path, size, way):
    done = mpiexec(
        str(Path(TESTS) / "several_ranks.py"),
        MODULE,
        "weft",
        str(tmp_path),
        way,
        size=size,
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    for ours, theirs in zip(loaded(tmp_path, size), outcomes("weft", size, MODULE), strict=True):
        assert [name for name in programs(MODULE) if ours[name] != theirs[name]] == []


def test_programs_for_gloo_run_under_mpiexec(tmp_path):
    program = """
import weft as torch
dist = torch.distributed
dist.init_process_group("gloo")
x = torch.ones(2) + dist.get_rank()
dist.all_reduce(x)
own = torch.ones(1)
dist.all_reduce(own, group=dist.new_subgroups_by_enumeration([[1], [0]])[0])
assert (x.tolist(), own.item()) == ([3, 3], 1)
if dist.get_rank() == 0:
    print(dist.get_backend(), dist.group.WORLD.name(), dist.get_world_size())
dist.destroy_process_group()
"""
    done = mpiexec("-c", program, folder=tmp_path)
    assert done.stdout == "gloo gloo 2\n" and done.returncode == 0, done.stderr


def test_an_error_ends_all_processes(tmp_path):
    program = """
import weft as torch
dist = torch.distributed
dist.init_process_group("mpi")
if dist.get_rank() == 1:
    raise KeyError("a reason")
dist.all_reduce(torch.ones(2))
"""
    done = mpiexec("-c", program, folder=tmp_path)
    assert done.returncode and "KeyError: 'a reason'" in done.stderr


MESSAGES = "import weft.distributed.engine.mpi as mpi; mpi.meet = lambda comm: None"


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("", "barrier(): timed out after 0.5 s: rank 0 waited for rank 1"),
        (MESSAGES, "rank 0: barrier: timed out after 0.5 s"),
    ],
)
def test_a_timeout(tmp_path, way, message):
    program = f"""
import time
from datetime import timedelta
import weft as torch
dist = torch.distributed
{way}
dist.init_process_group("mpi", timeout=timedelta(seconds=0.5))
try:
    time.sleep(2) if dist.get_rank() else dist.barrier()
except RuntimeError as error:
    print(error)
dist.barrier() if dist.get_rank() else None
"""
    assert message in mpiexec("-c", program, folder=tmp_path).stdout
