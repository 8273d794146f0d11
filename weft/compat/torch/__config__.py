"""What weft computes with, `torch.__config__`."""

from __future__ import annotations


def show() -> str:
    """The libraries that weft stands on, with their versions, as text.

    >>> show().splitlines()[0]
    'weft with:'
    """
    import platform

    import llvmlite
    import numpy
    import scipy

    from weft import __version__

    facts = {
        "interface of PyTorch": __version__,
        "Python": platform.python_version(),
        "NumPy": numpy.__version__,
        "SciPy": scipy.__version__,
        "llvmlite": llvmlite.__version__,
        "machine": platform.machine(),
    }
    return "weft with:\n" + "".join(f"  - {name} {version}\n" for name, version in facts.items())


def parallel_info() -> str:
    """The numbers of threads, as text."""
    import os

    from weft import get_num_interop_threads, get_num_threads

    return (
        f"weft/Parallel:\n\tget_num_threads() : {get_num_threads()}\n"
        f"\tget_num_interop_threads() : {get_num_interop_threads()}\n"
        f"processors : {os.cpu_count()}\n"
        f"Environment variables:\n\tOMP_NUM_THREADS : {os.environ.get('OMP_NUM_THREADS', '[not set]')}\n"
    )


def _cxx_flags() -> str:
    """Empty: no C++ was compiled."""
    return ""
