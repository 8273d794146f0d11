"""Runs a program as on Windows or macOS, as far as names decide: `python tests/other_system.py win32|darwin program arguments...`.

Takes away what Python has on Linux and lacks on that system, and says its name in `sys.platform`. So weft's branches for that system run,
and a use of Linux without a branch fails. Machine code and the file system are those of this system.
"""

import ctypes
import mmap
import multiprocessing.connection  # Python's own modules, before names are taken away
import multiprocessing.resource_sharer
import multiprocessing.spawn  # noqa: F401
import os
import runpy
import signal
import sys
import tempfile
import types

import llvmlite.binding  # noqa: F401
import numpy  # noqa: F401

_LACKING = {
    "darwin": {
        os: "memfd_create sched_getaffinity pidfd_open O_TMPFILE posix_fadvise",
        mmap: "MAP_POPULATE MADV_HUGEPAGE MADV_NOHUGEPAGE",
    },
    "win32": {
        os: "memfd_create sched_getaffinity pidfd_open O_TMPFILE posix_fadvise fork register_at_fork getuid geteuid fchmod "
        "sched_yield preadv pread sysconf mkfifo killpg getpgid setsid statvfs",
        mmap: "MAP_POPULATE MADV_HUGEPAGE MADV_NOHUGEPAGE MAP_PRIVATE MAP_SHARED MAP_ANONYMOUS MAP_ANON PROT_READ PROT_WRITE",
        signal: "SIGALRM SIGHUP SIGQUIT SIGKILL setitimer alarm pthread_sigmask pthread_kill",
    },
}
_MODULES_LACKING = {"darwin": (), "win32": ("fcntl", "resource", "pwd", "grp", "termios")}


def become(system: str) -> None:
    """Take away what the system lacks."""
    for module, names in _LACKING[system].items():
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    tempfile._O_TMPFILE_WORKS = False
    if system == "win32":
        sys.modules["msvcrt"] = _msvcrt()
    for name in _MODULES_LACKING[system]:
        sys.modules[name] = None
    is_folder = os.path.isdir
    os.path.isdir = lambda path: not str(path).startswith("/proc/") and is_folder(path)
    if system == "win32":
        _forbid_libraries_without_a_name()
        _keep_open_files_in_place()
    sys.platform = system


def _msvcrt() -> types.ModuleType:
    import fcntl

    def locking(file, mode, size):
        assert mode == module.LK_NBLCK
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, size, os.lseek(file, 0, os.SEEK_CUR))

    module = types.ModuleType("msvcrt")
    module.LK_NBLCK, module.locking = 2, locking
    return module


def _forbid_libraries_without_a_name() -> None:
    load = ctypes.CDLL.__init__

    def init(self, name, *arguments, **options):
        if name is None:
            raise TypeError("bad argument type for built-in operation")
        load(self, name, *arguments, **options)

    ctypes.CDLL.__init__ = init


def _keep_open_files_in_place() -> None:
    """Let files that this process has open neither be renamed nor be replaced nor be removed."""

    def refusing(function):
        def checked(path, *others, **options):
            for descriptor in os.listdir("/proc/self/fd"):
                for each in (path, *others):
                    try:
                        is_open = os.path.samestat(os.fstat(int(descriptor)), os.stat(each))
                    except (OSError, TypeError):
                        continue
                    if is_open:
                        raise PermissionError(13, "The process cannot access the file", str(each))
            return function(path, *others, **options)

        return checked

    for name in ("replace", "rename", "unlink", "remove"):
        setattr(os, name, refusing(getattr(os, name)))


if __name__ == "__main__":
    system, program, *arguments = sys.argv[1:]
    become(system)
    sys.argv = [program, *arguments]
    runpy.run_path(program, run_name="__main__")
