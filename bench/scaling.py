"""`python -m bench.scaling`: how programs of several processes scale, by a model of network and memory and as measured here.

The model of a step on P processes is the time that one of them computes, plus the time of its messages (`weft.distributed.traffic`) at the latency
and bandwidth below. What it computes and sends is that of rank 0 in a "fake" group, whose other ranks do not exist. It computes on a processor of
its own, or in the model of this machine beside P - 1 others, which share the processors and the memory. Every process has one thread. Measured is
the slowest of P processes that do exist.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import machine
from bench.rounds import ROOT

LATENCY, BANDWIDTH = (
    5e-6,
    12e9,
)  # seconds and bytes per second, of memory that processes of this machine share
SIZES = 1, 2, 4, 8
STEPS = 7  # of which the first two do not count
PRODUCTS = 22  # of which the first two do not count
WIDTH, BATCH, ORDER = 1024, 256, 2048  # of the layers, of all processes, of the matrices


def step_of_layers(torch, batch: int, cut: bool):
    """A training step of three layers: with DistributedDataParallel, or cut by `fully_shard`."""
    nn = torch.nn
    torch.manual_seed(0)
    layers = [nn.Linear(WIDTH, WIDTH) for _ in range(3)]
    model = nn.Sequential(*(part for layer in layers for part in (layer, nn.ReLU())))
    if cut:
        from weft.distributed.fsdp import fully_shard

        for layer in layers:
            fully_shard(layer)
        fully_shard(model)
    else:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(batch, WIDTH)

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return step


def product(torch, ranks: int, order: int):
    """A product of matrices that are cut by rows and by columns (SUMMA)."""
    from weft.distributed.tensor import DTensor, Shard

    rows = next(rows for rows in (4, 2, 1) if rows * rows <= ranks and ranks % rows == 0)
    mesh = torch.distributed.init_device_mesh("cpu", (rows, ranks // rows))
    part = torch.randn(order // rows, order // (ranks // rows))
    a, b = (DTensor.from_local(part, mesh, [Shard(0), Shard(1)]) for _ in range(2))
    return lambda: a @ b


def programs(torch, ranks: int) -> dict:
    """Each program, with work that is divided (strong scaling) and with work that grows with the processes (weak)."""
    grown = round(ORDER / 2 * ranks ** (1 / 3) / 64) * 64
    return {
        "DDP step, strong": lambda: step_of_layers(torch, BATCH // ranks, cut=False),
        "DDP step, weak": lambda: step_of_layers(torch, BATCH // 4, cut=False),
        "FSDP step, strong": lambda: step_of_layers(torch, BATCH // ranks, cut=True),
        "FSDP step, weak": lambda: step_of_layers(torch, BATCH // 4, cut=True),
        "product, strong": lambda: product(torch, ranks, ORDER),
        "product, weak": lambda: product(torch, ranks, grown),
    }


def work(ranks: int, rank: int, folder: str, fake: bool) -> None:
    """What a process measures; rank 0 writes for each program the seconds of a step and of its messages in the model."""
    import weft as torch
    from weft.distributed.traffic import traffic

    torch.set_num_threads(1)
    dist = torch.distributed
    if fake:
        dist.init_process_group("fake", rank=rank, world_size=ranks)
    else:
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    found = {}
    for name, make in programs(torch, ranks).items():
        step, times = make(), []
        for _ in range(STEPS):
            dist.barrier()
            begin = time.perf_counter()
            step()
            times.append(time.perf_counter() - begin)
        with traffic() as sent:
            step()
        slowest = torch.tensor(times[2:], dtype=torch.float64)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        found[name] = statistics.median(slowest.tolist()), sent.seconds(LATENCY, BANDWIDTH)
    if rank == 0:
        Path(folder, "times").write_text(json.dumps(found))
    dist.destroy_process_group()


def work_on_products(ranks: int, rank: int, folder: str) -> None:
    """Products of matrices on several processes in turn with the local products of which they consist, by all processes at once."""
    import weft as torch

    torch.set_num_threads(1)
    dist = torch.distributed
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    step = product(torch, ranks, ORDER)
    rows, columns = step().device_mesh.mesh.shape
    left, right = torch.randn(ORDER // rows, ORDER), torch.randn(ORDER, ORDER // columns)
    times = []
    for _ in range(PRODUCTS):
        times.append([])
        for call in (step, lambda: left @ right):
            dist.barrier()
            begin = time.perf_counter()
            call()
            times[-1].append(time.perf_counter() - begin)
    slowest = torch.tensor(times[2:], dtype=torch.float64)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    if rank == 0:
        Path(folder, "times").write_text(
            json.dumps([statistics.median(each) for each in slowest.t().tolist()])
        )
    dist.destroy_process_group()


def efficiency(ranks: int) -> float:
    """The time of local products as a part of that of the product on so many processes."""
    whole, local = run(ranks, ranks, "--local")
    return local / whole


def run(ranks: int, processes: int, *options: str):
    """What is measured in so many processes at once, which are the ranks, or with --fake each alone in a fake group."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bench.scaling", "--work", str(ranks), folder, *options]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        started = [
            subprocess.Popen([*command, "--rank", str(rank)], env=environment, cwd=ROOT)
            for rank in range(processes)
        ]
        codes = [process.wait() for process in started]
        if any(codes):
            raise SystemExit(f"python -m bench.scaling: the processes have ended with {codes}")
        return json.loads(Path(folder, "times").read_text())


def table() -> str:
    lines = [
        f"| program | {' | '.join(f'P = {ranks}' for ranks in SIZES)} |",
        f"| :-- {'| --: ' * len(SIZES)}|",
    ]
    cells: dict[str, list[str]] = {}
    for ranks in SIZES:
        apart, beside = run(ranks, 1, "--fake"), run(ranks, ranks, "--fake")
        together = run(ranks, ranks)
        for name, (measured, messages) in together.items():
            times = apart[name][0] + messages, beside[name][0] + messages, measured
            cells.setdefault(name, []).append(" / ".join(f"{1e3 * each:.0f}" for each in times))
    return "\n".join([*lines, *(f"| {name} | {' | '.join(each)} |" for name, each in cells.items())])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scaling", description=__doc__)
    parser.add_argument("--work", nargs=2, metavar=("RANKS", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--fake", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--local", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work and options.local:
        work_on_products(int(options.work[0]), options.rank, options.work[1])
    elif options.work:
        work(int(options.work[0]), options.rank, options.work[1], options.fake)
    if options.work:
        return
    here = machine.describe()
    print(f"{here['processor']} ({here['model']}), {here['cores']} processors")
    print("ms: model with a processor for each process / model of this machine / measured\n")
    print(table())
    for ranks in (2, 4):
        print(
            f"\nproduct of order {ORDER} on {ranks} processes: {efficiency(ranks):.2f} of the local products' speed"
        )


if __name__ == "__main__":
    main()
