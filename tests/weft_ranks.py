"""Programs of several processes with weft, for the tests of torch.distributed."""

import os
import subprocess
import sys

START = """
import sys, time, os, signal
from datetime import timedelta
import weft as torch
dist = torch.distributed
rank, size, store = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size, timeout=timedelta(seconds=TIMEOUT))
"""


def start(program, size, folder, timeout=60):
    """The processes of a program, whose ranks print what they have to say."""
    code = START.replace("TIMEOUT", str(timeout)) + program
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return [
        subprocess.Popen(
            [sys.executable, "-c", code, str(rank), str(size), f"{folder}/store"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        for rank in range(size)
    ]


def said(processes):
    """What each process has printed, once all have ended."""
    try:
        return [process.communicate(timeout=60)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
