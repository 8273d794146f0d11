"""weft.version: the version of PyTorch that weft follows, weft's own version (`weft`), and what it was built with."""

from weft.compat.version import PYTORCH as __version__
from weft.compat.version import WEFT as weft

cuda = None
hip: str | None
xpu = None
debug = False
git_version = "unknown"

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]


def __getattr__(name: str) -> str | None:
    # PyTorch's builds for ROCm have HIP's version here. weft has one package, which asks when a program does.
    if name == "hip":
        from weft.devices import cuda

        return cuda.hip_version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
