"""torchrun, and torch.distributed.run and launch."""

import os
import signal
import subprocess
import sys
import time

import pytest

from weft.distributed import run

PROGRAM = """
import os, sys, time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
x = torch.ones(1) * dist.get_rank()
dist.all_reduce(x)
names = "LOCAL_RANK", "WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT", "OMP_NUM_THREADS"
words = [str(int(x)), *[os.environ[name] for name in names], *sys.argv[1:]]
sys.stdout.write(" ".join(words) + chr(10))  # at once, so that the lines of two processes do not mix
if "fail" in sys.argv and dist.get_rank() == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    raise KeyError("a reason")
if "fail" in sys.argv:
    dist.barrier()
if "wait" in sys.argv:
    time.sleep(60)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return str(path)


def start(*command):
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    return subprocess.Popen(
        [sys.executable, "-m", "weft", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def test_torchrun_starts_processes_that_meet(script):
    process = start("torchrun", "--standalone", "--nproc-per-node", "2", "--tee", "1", script, "a")
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert sorted(output.splitlines()) == ["[default0]:1 0 2 0 1 a", "[default1]:1 1 2 0 1 a"]


def test_the_first_failure_is_shown_and_a_restart_may_succeed(script):
    process = start("torchrun", "--standalone", "--nproc-per-node=2", script, "fail")
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 1 and "KeyError: 'a reason'" in errors
    assert "program.py FAILED" in errors and "rank 1 (local_rank 1" in errors and "exit code 1" in errors
    process = start("torchrun", "--standalone", "--nproc-per-node=2", "--max-restarts=1", script, "fail")
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and "1 1 2 1 1 fail" in output.splitlines()


def test_a_signal_ends_all(script):
    process = start("torchrun", "--standalone", "--nproc-per-node=2", "--shutdown-timeout=5", script, "wait")
    assert process.stdout.readline() and process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    begin = time.monotonic()
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM and time.monotonic() - begin < 5


def test_logs_and_local_rank_argument(tmp_path, script):
    logs = tmp_path / "logs"
    options = ("--master-port=0", "--nproc_per_node=2", "--redirects=1", f"--log-dir={logs}")
    process = start("run", "-m", "torch.distributed.launch", *options, script, "a")
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert output == ""
    written = sorted(path.read_text() for path in logs.rglob("stdout.log"))
    assert written == [f"1 {rank} 2 0 1 a --local-rank={rank}\n" for rank in range(2)]


def test_options(monkeypatch):
    monkeypatch.setenv("PET_NPROC_PER_NODE", "3")
    arguments = run.parse_args(["train.py", "--epochs", "2"])
    assert arguments.nproc_per_node == "3" and arguments.training_script_args == ["--epochs", "2"]
    with pytest.raises(NotImplementedError, match="one machine"):
        run.run(run.parse_args(["--nnodes=2", "train.py"]))
    with pytest.raises(ValueError, match="nproc_per_node"):
        run.run(run.parse_args(["--nproc-per-node=many", "train.py"]))
