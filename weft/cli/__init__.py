"""The command `weft`, also `python -m weft`."""

import math
import os
import subprocess
import sys

USAGE = """\
weft: PyTorch's tensor library in pure Python

  weft run script.py [arguments]   run a PyTorch script, unmodified, with weft in the place of torch
  weft run -m module [arguments]   the same for a module,
  weft run -c code [arguments]     for a piece of code,
  weft run - [arguments]           and for a script on standard input
  weft torchrun [options] script.py [arguments]
                                   run a script in several processes, with the options of torchrun
  weft warm script.py [arguments]  the same as run, and keep the compiled kernels of the program on disk;
                                   for images of containers, whose programs then start at full speed
  weft bench script.py [arguments] run a script several times, and say how long each of its lines takes,
                                   and how many kernels and bytes
  weft tour                        open an introduction to tensors in the browser; its cells run on this machine
  weft doctor                      say what weft found on this machine
  weft cache                       say how much room the kernels on disk take, and where they are
  weft cache clear                 remove them; weft compiles those that it needs again
  weft names library               say which names of torch a library mentions that weft does not have
  weft placeholder add             make pip take torch for installed, so that it does not download PyTorch
  weft placeholder remove          undo that; without a word, weft placeholder says whether there is one

As in `python`, everything after the script, module or code is an argument of it. The processes that
it starts have weft for torch too. WEFT_TRACEBACK=1 shows weft's own frames in the traceback of an error."""


def main(arguments: list[str] | None = None) -> int:
    """Carry out `weft arguments...` and return the exit status: 2 if the command is not understood."""
    if arguments is None:
        arguments = sys.argv[1:]
    match arguments:
        case ["-h" | "--help"] | [
            "run" | "warm" | "bench" | "doctor" | "cache" | "names" | "placeholder",
            "-h" | "--help",
        ]:
            print(USAGE)
            return 0
        case ["--version"]:
            from weft.cli.doctor import distribution_version

            print("weft", distribution_version())
            return 0
        case ["doctor"]:
            from weft.cli.doctor import report

            print(report())
            return 0
        case ["tour", *options]:
            from weft.cli import tour

            return tour.main(options)
        case ["doctor", extra, *_]:
            return _refuse(f"doctor takes no arguments, but was given {extra!r}")
        case ["cache"]:
            from weft.cli.doctor import kernel_cache

            print(kernel_cache())
            return 0
        case ["cache", "clear"]:
            return _clear_cache()
        case ["cache", *others]:
            return _refuse(f"cache takes clear or nothing, but was given {' '.join(others)!r}")
        case ["names"]:
            return _refuse("names of what? Give packages, folders or files")
        case ["names", *libraries]:
            from weft.cli import mentions

            return mentions.main(libraries)
        case ["placeholder"] | ["placeholder", "add" | "remove"]:
            from weft.cli import placeholder

            return placeholder.main(arguments[1:])
        case ["placeholder", *others]:
            return _refuse(f"placeholder takes add, remove or nothing, but was given {' '.join(others)!r}")
        case ["run" | "warm" as command] | ["run" | "warm" as command, "-m" | "-c"]:
            return _refuse(f"{command} what? Give a script, - for standard input, -m module or -c code")
        case ["run" | "warm" as command, first, *_] if first.startswith("-") and first not in (
            "-",
            "-m",
            "-c",
        ):
            return _refuse(f"{command} does not know the option {first!r}")
        case ["bench"]:
            return _refuse("bench what? Give a script")
        case ["bench", first, *_] if first.startswith("-"):
            return _refuse(f"bench takes a script and its arguments, but was given {first!r}")
        case ["bench", *program]:
            return _run(["-m", "weft.cli.bench", *program])
        case ["run", *program]:
            return _run(program)
        case ["torchrun", *options]:
            return _run(["-m", "torch.distributed.run", *options])
        case ["warm", *program]:
            if problem := _cache_problem():
                return problem
            os.environ["WEFT_WARM"] = "1"
            return _run(program)
        case []:
            print(USAGE, file=sys.stderr)
            return 2
        case [command, *_]:
            return _refuse(f"there is no command {command!r}")
    raise AssertionError("every list of arguments matches a case")


def _refuse(problem: str) -> int:
    print(f"weft: {problem}\n(weft --help lists the commands)", file=sys.stderr)
    return 2


def _cache_problem() -> int:
    """1 if this user cannot change the kernels on disk, which this says on stderr; else 0."""
    from weft.engine import diskcache, host

    directory = host.disk_cache().directory
    if directory is None or not os.access(directory, os.W_OK):
        print(
            f"weft: {diskcache.cache_root()} is no folder that only this user can write to", file=sys.stderr
        )
        return 1
    return 0


def _clear_cache() -> int:
    from weft.engine import host

    if problem := _cache_problem():
        return problem
    print(f"removed {math.ceil(host.disk_cache().clear() / 1024)} KiB of kernels")
    return 0


def _run(program: list[str]) -> int:
    """Replace this process by a fresh interpreter on which the binding is installed from the start.

    So argv, stdin, `__main__`, sys.path, exit status and signals are Python's own, not an imitation.
    """
    from weft import compat

    compat.install()
    # Options such as -O or -W hold for the program; those that would ignore the binding cannot.
    options = [
        option
        for option in subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        if option not in ("-E", "-I", "-S")
    ]
    command = [sys.executable, *options, *program]
    if os.name == "nt":  # exec there starts a second process and does not wait for it
        return subprocess.call(command)
    os.execv(sys.executable, command)
