"""The same programs on several processes, with weft and with PyTorch's Gloo, for the tests of torch.distributed.

A program is a function `program(torch, rank, size)` of a module such as `rank_programs.py`. All of them run one after the other in one
group, because starting the processes takes longer than everything else.
"""

import fcntl
import functools
import importlib
import inspect
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

TESTS = Path(__file__).parent
shared_folder = None  # of all workers of a test run, if there are several; conftest.py sets it
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
    """What each program returns on each rank, a list of dictionaries by name; or what the ranks say if one fails.

    The workers of a test run share what one of them has found.
    """
    if shared_folder is None:
        return _outcomes(library, size, module)
    file = shared_folder / f"{library}-{size}-{module}"
    with open(f"{file}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            file.write_bytes(pickle.dumps(_outcomes(library, size, module)))
        return pickle.loads(file.read_bytes())


def _outcomes(library, size, module):
    """PyTorch has a second try: its barriers raise the errors of earlier collectives whose objects happen to be alive, also of those that programs expect."""
    found = _run(library, size, module)
    return _run(library, size, module) if library == "torch" and isinstance(found, str) else found


def _run(library, size, module):
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS}",
        }
        process = subprocess.Popen(
            [sys.executable, __file__, module, library, folder, str(size)],
            env=environment,
            cwd=folder,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            _, errors = process.communicate(timeout=TIMEOUT)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        return errors if process.returncode else loaded(folder, size)


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


def start_ranks(module, library, folder, size):
    """Start the processes of a program. They are forked from this one, so that they need not import the library each.

    Returns 1 if one of them fails, after which the others are ended.
    """
    importlib.import_module(library)
    programs(module)
    ranks = []
    for rank in range(size):
        process = os.fork()
        if not process:
            failed = 1
            try:
                run_rank(
                    module,
                    library,
                    folder,
                    "gloo",
                    init_method=f"file://{folder}/store",
                    rank=rank,
                    world_size=size,
                )
                failed = 0
            except BaseException:
                traceback.print_exc()
            sys.stderr.flush()
            os._exit(failed)
        ranks.append(process)
    while ranks:
        process, status = os.wait()
        ranks.remove(process)
        if status:
            for each in ranks:
                os.kill(each, signal.SIGKILL)
            return 1
    return 0


def run_rank(module, library, folder, backend, **meeting):
    """Run all programs of a module as one rank, and write what they return into the folder."""
    torch = importlib.import_module(library)
    torch.set_num_threads(1)
    dist = torch.distributed
    dist.init_process_group(backend, **meeting)
    rank, size = dist.get_rank(), dist.get_world_size()
    found = {}
    for name, program in programs(module).items():
        found[name] = outcome(program, torch, rank, size)
        dist.barrier()
    dist.destroy_process_group()
    (Path(folder) / f"rank{rank}").write_bytes(pickle.dumps(found))


def run_rank_of_mpi(module, library, folder, way):
    """The same for a process that mpiexec has started. way: "messages", as if the processes were on several machines, or "memory"."""
    if way == "messages":
        importlib.import_module(f"{library}.distributed.engine.mpi").meet = lambda comm: None
    run_rank(module, library, folder, "mpi")


if __name__ == "__main__":
    *settings, size = sys.argv[1:]
    if size.isdecimal():
        sys.exit(start_ranks(*settings, int(size)))
    run_rank_of_mpi(*settings, size)
