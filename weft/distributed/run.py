"""`torch.distributed.run`, the command torchrun: start a program in several processes of this machine.

    weft torchrun --standalone --nproc-per-node 2 train.py --epochs 3

Each process finds its rank and the number of processes in the environment (RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT).
The command keeps the store through which they meet. If one fails, it stops the others, says which one failed first, and ends with 1.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..core.device import device_count
from ..engine.workers import available_cpus
from ._tcp_store import TCPStore
from .elastic.multiprocessing.errors import ChildFailedError
from .elastic.workers import GRACE_S, Job, Stopped, run_until_done

PORT = 29500  # PyTorch's


def get_args_parser() -> argparse.ArgumentParser:
    """The options of torchrun. The environment variable PET_NAME is the default of the option NAME."""
    parser = argparse.ArgumentParser(
        prog="torchrun", description="Start a program in several processes of this machine."
    )

    def option(*names: str, default: Any = None, flag: bool = False, **settings: Any) -> None:
        name = names[-1].removeprefix("--").replace("-", "_")
        given = os.environ.get(f"PET_{name.upper()}")
        spellings = [*names, *([f"--{name}"] if "_" in name else [])]
        if flag:
            parser.add_argument(*spellings, action="store_true", default=given == "1", **settings)
        else:
            parser.add_argument(*spellings, default=default if given is None else given, **settings)

    option("--nnodes", default="1:1", help="number of machines: 1")
    option("--nproc-per-node", default="1", help="number of processes: an int, cpu, gpu or auto")
    option("--standalone", flag=True, help="meet at a free port")
    option("--rdzv-backend", default="static", help="static or c10d, which is the same on one machine")
    option("--rdzv-endpoint", default="", help="host:port where the processes meet")
    option("--rdzv-id", default="none", help="a name for this run")
    option("--rdzv-conf", default="", help="has no effect on one machine")
    option("--max-restarts", default=0, type=int, help="how often to start again after a failure")
    option(
        "--monitor-interval",
        default=0.1,
        type=float,
        help="has no effect: the end of a process is seen at once",
    )
    option("--start-method", default="spawn", choices=["spawn", "fork", "forkserver"], help="has no effect")
    option("--event-log-handler", default="null", help="has no effect")
    option("--role", default="default", help="a name for the processes, in front of their output")
    option("-m", "--module", flag=True, help="the program is the name of a module")
    option("--no-python", flag=True, help="the program is a command")
    option("--run-path", flag=True, help="run the script with runpy.run_path")
    option("--log-dir", help="the folder of the files that --redirects and --tee write")
    option(
        "-r",
        "--redirects",
        default="0",
        help="write into files: 1 stdout, 2 stderr, 3 both; or 0:3,1:1 by local rank",
    )
    option("-t", "--tee", default="0", help="as --redirects, and show it, too")
    option("--local-ranks-filter", default="", help="show only the output of these local ranks: 0,1")
    option("--node-rank", default=0, type=int, help="the number of this machine: 0")
    option("--master-addr", default="127.0.0.1", help="where the processes meet")
    option("--master-port", type=int, help=f"the port there, {PORT} by default")
    option("--local-addr", help="has no effect on one machine")
    option(
        "--signals-to-handle", default="SIGTERM,SIGINT,SIGHUP,SIGQUIT", help="signals that end all processes"
    )
    option(
        "--shutdown-timeout",
        default=GRACE_S,
        type=float,
        help="seconds until processes that do not end are killed",
    )
    parser.add_argument("training_script", help="the program")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def parse_args(args: Sequence[str] | None) -> argparse.Namespace:
    return get_args_parser().parse_args(args)


def run(args: argparse.Namespace, tell_rank: bool = False) -> None:
    """Run a program. `tell_rank`: processes get the argument --local-rank, as torch.distributed.launch does it.

    Raises: ChildFailedError, NotImplementedError for several machines.
    """
    if args.nnodes not in ("1", "1:1") or args.node_rank:
        raise NotImplementedError(
            f"torchrun --nnodes {args.nnodes} --node-rank {args.node_rank}: weft connects processes of one machine. On several, mpiexec starts "
            f"the processes of all: pip install 'weft[distributed]', then once mpiexec -n RANKS -ppn {args.nproc_per_node} -hosts NAMES weft run {args.training_script}"
        )
    count = _number_of_processes(args.nproc_per_node)
    host, port = _place(args)
    store = TCPStore(host, port, is_master=True)
    numbers = [
        number for name in args.signals_to_handle.split(",") if (number := getattr(signal, name, None))
    ]
    with tempfile.TemporaryDirectory(prefix="torchelastic_") as temporary:
        folder = Path(args.log_dir or temporary) / f"{args.rdzv_id}_{uuid.uuid4().hex[:8]}"
        job = Job(
            _command(args),
            count,
            _environment(args, count, host, store.port),
            name=args.training_script,
            role=args.role,
            redirects=_by_rank(args.redirects, count),
            tee=_by_rank(args.tee, count),
            shown=frozenset(map(int, args.local_ranks_filter.split(",")))
            if args.local_ranks_filter
            else None,
            grace_s=args.shutdown_timeout,
            tell_rank=tell_rank,
        )
        run_until_done(job, folder, args.max_restarts, numbers)


def _number_of_processes(text: str) -> int:
    if text.isdecimal():
        return int(text)
    gpus = device_count("cuda")
    if text == "cpu" or (text == "auto" and not gpus):
        return available_cpus()
    if text in ("gpu", "auto"):
        if gpus:
            return gpus
        raise ValueError("Cuda is not available.")
    raise ValueError(f"Unsupported nproc_per_node value: {text}")


def _place(args: argparse.Namespace) -> tuple[str, int]:
    """Where the processes meet: host and port, 0 for any free one."""
    if args.standalone:
        return "localhost", 0
    if args.rdzv_endpoint:
        host, _, port = args.rdzv_endpoint.partition(":")
        return host, int(port or PORT)
    return args.master_addr, PORT if args.master_port is None else args.master_port


def _command(args: argparse.Namespace) -> list[str]:
    if args.no_python and args.module:
        raise ValueError("Don't use both the '--no-python' flag and the '--module' flag at the same time.")
    program = [args.training_script, *args.training_script_args]
    if args.no_python:
        return program
    if args.run_path:
        code = "import sys, runpy; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
        return [sys.executable, "-u", "-c", code, *program]
    return [sys.executable, "-u", *(["-m"] if args.module else []), *program]


def _environment(args: argparse.Namespace, count: int, host: str, port: int) -> dict[str, str]:
    found = {
        "MASTER_ADDR": host,
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": args.rdzv_id,
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }
    if count > 1 and "OMP_NUM_THREADS" not in os.environ:
        found["OMP_NUM_THREADS"] = "1"  # as torchrun does, so that processes do not compete for processors
    return found


def _by_rank(text: str, count: int) -> dict[int, int]:
    """What "3" or "0:3,1:1" say for each local rank."""
    if ":" not in text:
        return dict.fromkeys(range(count), int(text))
    return {int(rank): int(which) for rank, _, which in (part.partition(":") for part in text.split(","))}


def main(args: Sequence[str] | None = None, tell_rank: bool = False) -> None:
    """The command. Exits with 1 if a process has failed, and with 128 and the number of the signal that ended all."""
    try:
        run(parse_args(args), tell_rank)
    except ChildFailedError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    except Stopped as stopped:
        sys.exit(128 + stopped.number)


if __name__ == "__main__":
    main()
