"""The distribution "torch", as `importlib.metadata` sees it where `import torch` is bound to weft."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path

from weft.compat.binding import PACKAGE, PACKAGES
from weft.compat.version import PYTORCH

_METADATA = f"""\
Metadata-Version: 2.1
Name: torch
Version: {PYTORCH}
Summary: weft, in the place of PyTorch
"""


class TorchDistribution(importlib.metadata.Distribution):
    """A distribution without files of its own: the files belong to weft's distribution."""

    def read_text(self, filename: str | os.PathLike[str]) -> str | None:
        """The text of a metadata file; None for the files that the distribution lacks."""
        match os.fspath(filename):
            case "METADATA":
                return _METADATA
            case "INSTALLER":
                return "weft\n"
            case "top_level.txt":
                return "".join(f"{package}\n" for package in PACKAGES if package != "torch_xla")
        return None

    def locate_file(self, path: str | os.PathLike[str]) -> Path:
        return Path(PACKAGE).parent / path
