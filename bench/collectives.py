"""`python -m bench.collectives`: collectives between two processes of this machine, weft beside PyTorch's Gloo and beside mpi4py.

Each implementation has one group, whose processes use one thread each. A time is the median over the calls, of the slower rank: every
call follows a barrier. A step of DistributedDataParallel is forward, backward and an update of an MLP. mpi4py and weft on MPI take turns
in the same processes, weft once through shared memory and once through MPI's messages, as on several machines.
"""

import argparse
import importlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import machine
from bench.rounds import ROOT

RANKS = 2
SIZES = {"1 KiB": 1 << 10, "1 MiB": 1 << 20, "100 MiB": 100 << 20}  # bytes of a tensor
CALLS = {
    "1 KiB": 500,
    "1 MiB": 200,
    "100 MiB": 9,
}  # times that a collective is called, of which the first tenth does not count
STEPS = 100


def work(library: str, rank: int, folder: str) -> None:
    """What a process measures; rank 0 writes the medians."""
    torch = importlib.import_module(library)
    torch.set_num_threads(1)
    dist = torch.distributed
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=RANKS)
    found = {}
    for size, nbytes in SIZES.items():
        x = torch.zeros(nbytes // 4)
        outputs = [torch.zeros(nbytes // 4) for _ in range(RANKS)]
        calls = {
            "all_reduce": lambda x=x: dist.all_reduce(x),
            "all_gather": lambda x=x, outputs=outputs: dist.all_gather(outputs, x),
            "broadcast": lambda x=x: dist.broadcast(x, 0),
        }
        for name, call in calls.items():
            found[f"{name}, {size}"] = median(torch, call, CALLS[size])
    found["DDP step, MLP 256-1024-1024-10, batch 64"] = median(torch, step_of(torch), STEPS)
    if rank == 0:
        Path(folder, "times").write_text(json.dumps(found))
    dist.destroy_process_group()


def work_on_mpi(folder: str) -> None:
    """What a process that mpiexec has started measures: each collective through mpi4py and through both engines of weft."""
    import weft as torch
    from weft.distributed.engine import mpi

    torch.set_num_threads(1)
    dist = torch.distributed
    dist.init_process_group("mpi")
    meet, mpi.meet = mpi.meet, lambda comm: None
    messages = dist.new_group()
    mpi.meet = meet
    found = {}
    for size, nbytes in SIZES.items():
        for name, ways in ways_on_mpi(torch, nbytes, messages).items():
            found[f"{name}, {size}"] = medians(torch, ways, CALLS[size])
    if dist.get_rank() == 0:
        Path(folder, "times").write_text(json.dumps(found))
    dist.destroy_process_group()


def ways_on_mpi(torch, nbytes: int, messages) -> dict:
    """Each collective by mpi4py, by weft's default group, and by its group `messages`."""
    import numpy
    from mpi4py import MPI

    dist, comm = torch.distributed, MPI.COMM_WORLD
    x, outputs = torch.zeros(nbytes // 4), [torch.zeros(nbytes // 4) for _ in range(RANKS)]
    own, every = x.numpy(), numpy.zeros(RANKS * nbytes // 4, numpy.float32)
    return {
        "all_reduce": [
            lambda: comm.Allreduce(MPI.IN_PLACE, own),
            *(lambda group=group: dist.all_reduce(x, group=group) for group in (None, messages)),
        ],
        "all_gather": [
            lambda: comm.Allgather(own, every),
            *(lambda group=group: dist.all_gather(outputs, x, group) for group in (None, messages)),
        ],
        "broadcast": [
            lambda: comm.Bcast(own, 0),
            *(lambda group=group: dist.broadcast(x, 0, group) for group in (None, messages)),
        ],
    }


def median(torch, call, count: int) -> float:
    """The median time of a call on the slower rank, in seconds."""
    return medians(torch, [call], count)[0]


def medians(torch, calls, count: int) -> list[float]:
    """The median times of calls that take turns, on the slower rank."""
    times = []
    for _ in range(count):
        times.append([])
        for call in calls:
            torch.distributed.barrier()
            start = time.perf_counter()
            call()
            times[-1].append(time.perf_counter() - start)
    slowest = torch.tensor(times[count // 10 :], dtype=torch.float64)
    torch.distributed.all_reduce(slowest, op=torch.distributed.ReduceOp.MAX)
    return [statistics.median(each) for each in slowest.t().tolist()]


def step_of(torch):
    """A training step."""
    nn = torch.nn
    layers = nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(64, 256), torch.randint(10, (64,))

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def measured(library: str) -> dict[str, float]:
    """The times of one implementation."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bench.collectives", "--work", library, folder]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        processes = [
            subprocess.Popen([*command, "--rank", str(rank)], env=environment, cwd=ROOT)
            for rank in range(RANKS)
        ]
        codes = [process.wait() for process in processes]
        times = Path(folder, "times")
        if not times.exists():  # PyTorch's processes may abort while they end, after all is measured
            raise RuntimeError(f"{library}: the processes have ended with {codes}")
        return json.loads(times.read_text())


def measured_on_mpi() -> dict[str, list[float]]:
    """The times of mpi4py, and of weft through shared memory and through messages."""
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    mpiexec = shutil.which("mpiexec", path=folders)
    if mpiexec is None:
        raise SystemExit("python -m bench.collectives: no mpiexec: pip install 'weft[distributed]'")
    with tempfile.TemporaryDirectory() as folder:
        command = [
            mpiexec,
            "-n",
            str(RANKS),
            sys.executable,
            "-m",
            "bench.collectives",
            "--work-on-mpi",
            folder,
        ]
        subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, cwd=ROOT, check=True)
        return json.loads(Path(folder, "times").read_text())


def table(torch: dict[str, float], weft: dict[str, float]) -> str:
    lines = ["| collective | PyTorch (gloo) | weft | PyTorch / weft |", "| :-- | --: | --: | --: |"]
    for name, theirs in torch.items():
        ours = weft[name]
        lines.append(f"| {name} | {_time(theirs)} | {_time(ours)} | {theirs / ours:.1f} |")
    return "\n".join(lines)


def table_of_mpi(times: dict[str, list[float]]) -> str:
    lines = [
        "| collective | mpi4py | weft, one machine | mpi4py / weft | weft, messages | mpi4py / weft |",
        "| :-- | --: | --: | --: | --: | --: |",
    ]
    for name, (theirs, *ours) in times.items():
        cells = [f"{_time(each)} | {theirs / each:.2f}" for each in ours]
        lines.append(f"| {name} | {_time(theirs)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _time(seconds: float) -> str:
    if seconds < 1e-5:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e6:.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.collectives", description=__doc__)
    parser.add_argument("--work", nargs=2, metavar=("LIBRARY", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--work-on-mpi", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work_on_mpi:
        work_on_mpi(options.work_on_mpi)
        return
    if options.work:
        work(options.work[0], options.rank, options.work[1])
        return
    here = machine.describe()
    print(f"{here['processor']} ({here['model']}), {here['cores']} processors, {RANKS} processes\n")
    print(table(measured("torch"), measured("weft")), end="\n\n")
    print(table_of_mpi(measured_on_mpi()))


if __name__ == "__main__":
    main()
