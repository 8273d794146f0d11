"""Measuring one level of x86-64: `WEFT_CPU=x86-64-v3 python -m bench` gives all libraries the instructions of that level."""

import os

# What the other libraries read: PyTorch's own loops, its MKL and its oneDNN, and the OpenBLAS of NumPy and weft.
_VARIABLES = ("ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA", "OPENBLAS_CORETYPE")
_VALUES = {
    "x86-64-v2": ("default", "SSE4_2", "SSE41", "Nehalem"),
    "x86-64-v3": ("avx2", "AVX2", "AVX2", "Haswell"),
}


def level() -> str:
    """The level that is measured; empty for all that the processor has."""
    return os.environ.get("WEFT_CPU", "")


def limit() -> None:
    """Set the variables of the level for all processes that are started from now on.

    Raises: ValueError for a level that the other libraries do not know.
    """
    if not level():
        return
    if level() not in _VALUES:
        raise ValueError(
            f"WEFT_CPU: the levels that can be measured are {', '.join(_VALUES)}, not {level()!r}"
        )
    os.environ.update(zip(_VARIABLES, _VALUES[level()], strict=True))
