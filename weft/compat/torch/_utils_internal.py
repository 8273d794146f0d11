"""Where PyTorch keeps what its owner replaces inside the company: paths of files, addresses of tests, switches that are off."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from weft.compat.binding import PACKAGE

TEST_MASTER_ADDR = "127.0.0.1"
TEST_MASTER_PORT = 29500


def get_file_path(*path_components: str) -> str:
    """A path below the folder that weft is installed in."""
    return os.path.join(os.path.dirname(PACKAGE), *path_components)


def get_file_path_2(*path_components: str) -> str:
    """The components as one path."""
    return os.path.join(*path_components)


def get_writable_path(path: str) -> str:
    """`path`, or a new temporary folder if it cannot be written to."""
    return path if os.access(path, os.W_OK) else tempfile.mkdtemp(suffix=os.path.basename(path))


def prepare_multiprocessing_environment(path: str) -> None:
    """Nothing, because processes that are started find weft as this one does."""


def resolve_library_path(path: str) -> str:
    """The path without symbolic links."""
    return os.path.realpath(path)


def signpost_event(category: str, name: str, parameters: dict[str, Any]) -> None:
    """Nothing, because weft reports to nobody."""


def justknobs_check(name: str, default: bool = True) -> bool:
    """The default, because nothing outside the program switches its behaviour."""
    return default


def is_fb_unit_test() -> bool:
    """False, because these are no tests inside that company."""
    return False
