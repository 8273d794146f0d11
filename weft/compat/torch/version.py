"""weft.version: the version of PyTorch that weft follows, and what it was built with."""

from weft.compat.version import PYTORCH as __version__

cuda = None
hip = None
xpu = None
debug = False
git_version = "unknown"

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]
