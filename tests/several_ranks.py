"""The same programs on several processes, with weft and with PyTorch's Gloo, for the tests of torch.distributed.

A program is a function `program(torch, rank, size)` of a module such as `rank_programs.py`. All of them run one after the other in one
group, because starting the processes takes longer than everything else.
"""

import functools
import importlib
import inspect
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).parent
TIMEOUT = 300  # seconds, of all programs; PyTorch takes 120 where others keep the processors busy


def programs(module):
    """The programs of a module, by name."""
    functions = inspect.getmembers(importlib.import_module(module), inspect.isfunction)
    return {
        name: each
        for name, each in functions
        if list(inspect.signature(each).parameters) == ["torch", "rank", "size"]
    }


@functools.cache
def outcomes(library, size, module):
    """What each program returns on each rank, a list of dictionaries by name; or what a rank says that fails."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, module, library, folder, str(size)]
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS}",
        }
        processes = [
            subprocess.Popen(
                [*command, str(rank)], env=environment, cwd=folder, stderr=subprocess.PIPE, text=True
            )
            for rank in range(size)
        ]
        try:
            for process in processes:
                _, errors = process.communicate(timeout=TIMEOUT)
                if process.returncode:
                    return errors
        finally:
            for process in processes:
                process.kill()
        return loaded(folder, size)


def loaded(folder, size):
    """What the processes have written into a folder."""
    return [pickle.loads((Path(folder) / f"rank{rank}").read_bytes()) for rank in range(size)]


def plain(value):
    """A result as Python's own values: tensors as (dtype, numbers)."""
    if hasattr(value, "tolist"):
        value = value.detach()
        return (str(value.dtype).rpartition(".")[2], tuple(value.shape), value.tolist())
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def close(ours, theirs, relative=1e-5, absolute=1e-12):
    """Whether two results are equal, numbers up to rounding."""
    if isinstance(ours, float | complex) and isinstance(theirs, float | complex):
        are_nan = ours != ours and theirs != theirs
        return ours == theirs or are_nan or abs(ours - theirs) <= max(relative * abs(theirs), absolute)
    if isinstance(ours, list | tuple) and isinstance(theirs, list | tuple):
        pairs = zip(ours, theirs, strict=False)
        return len(ours) == len(theirs) and all(close(*pair, relative, absolute) for pair in pairs)
    return ours == theirs


def assert_same_on_every_rank(size, module, name, **tolerances):
    """A program has the same results with weft and with PyTorch's Gloo."""
    found = outcomes("weft", size, module), outcomes("torch", size, module)
    assert str not in map(type, found), found
    for rank, (ours, theirs) in enumerate(zip(*found, strict=True)):
        assert close(ours[name], theirs[name], **tolerances), (
            f"rank {rank}: {_difference(ours[name], theirs[name], tolerances)}"
        )


def _difference(ours, theirs, tolerances):
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return next((f"item {k}: {a} and {b}" for k, (a, b) in pairs if not close(a, b, **tolerances)), "")
    return f"weft: {ours}\nPyTorch: {theirs}"


def outcome(program, *arguments):
    try:
        return plain(program(*arguments))
    except Exception as error:
        return f"raises {'RuntimeError' if isinstance(error, RuntimeError) else type(error).__name__}"


def main(module, library, folder, size, rank="0"):
    """size: the number of processes, or where mpiexec has started them "mpi", or "mpi messages" as if they were on several machines."""
    torch = importlib.import_module(library)
    torch.set_num_threads(1)
    dist = torch.distributed
    if size.startswith("mpi"):
        if "messages" in size:
            importlib.import_module("weft.distributed.engine.mpi").meet = lambda comm: None
        dist.init_process_group("mpi")
    else:
        dist.init_process_group(
            "gloo", init_method=f"file://{folder}/store", rank=int(rank), world_size=int(size)
        )
    rank, size = dist.get_rank(), dist.get_world_size()
    found = {}
    for name, program in programs(module).items():
        found[name] = outcome(program, torch, rank, size)
        dist.barrier()
    dist.destroy_process_group()
    (Path(folder) / f"rank{rank}").write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
