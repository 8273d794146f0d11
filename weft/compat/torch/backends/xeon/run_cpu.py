"""`python -m torch.backends.xeon.run_cpu`: PyTorch's launcher, which sets threads and binds them to cores.

weft starts its threads itself. The launcher accepts PyTorch's options, sets the number of threads and runs the program.
"""

from __future__ import annotations

import os
import runpy
import sys
from argparse import REMAINDER, ArgumentParser

__all__ = ["REMAINDER", "create_args", "main"]


def create_args(parser: ArgumentParser | None = None) -> ArgumentParser:
    """The options of the launcher."""
    parser = parser or ArgumentParser(description="Run a program with weft on the CPU.")
    for name in ("ninstances", "rank"):
        parser.add_argument(f"--{name}", type=int, default=-1, help="accepted; there is one instance")
    for name in ("ncores-per-instance", "node-id"):
        parser.add_argument(
            f"--{name}", f"--{name.replace('-', '_')}", type=int, default=-1, help="threads, or the node"
        )
    for name in (
        "throughput-mode", "latency-mode", "use-logical-core", "enable-tcmalloc", "enable-jemalloc",
        "use-default-allocator", "disable-iomp", "disable-numactl", "disable-taskset", "multi-instance",
        "skip-cross-node-cores",
    ):  # fmt: skip
        both = (f"--{name}", f"--{name.replace('-', '_')}")
        parser.add_argument(*both, action="store_true", help="accepted; it changes nothing")
    for name in ("core-list", "log-path", "log-file-prefix"):
        both = (f"--{name}", f"--{name.replace('-', '_')}")
        parser.add_argument(*both, default="", help="accepted; it changes nothing")
    parser.add_argument(
        "-m", "--module", action="store_true", help="the program is a module, as for python -m"
    )
    parser.add_argument(
        "--no-python", "--no_python", action="store_true", help="the program is no Python script"
    )
    parser.add_argument("program", help="the program")
    parser.add_argument("program_args", nargs=REMAINDER, help="its arguments")
    return parser


def main(args: list[str] | None = None) -> None:
    """Run the program that the command line names."""
    options = create_args().parse_args(args)
    if options.no_python:
        os.execvp(options.program, [options.program, *options.program_args])
    if options.ncores_per_instance > 0:
        from weft import set_num_threads

        set_num_threads(options.ncores_per_instance)
    sys.argv = [options.program, *options.program_args]
    if options.module:
        runpy.run_module(options.program, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(options.program, run_name="__main__")


if __name__ == "__main__":
    main()
