"""Binds the framework in processes that tests start: Python imports this file, because its folder is on PYTHONPATH."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
from framework import FromWheel  # noqa: E402

sys.meta_path.insert(0, FromWheel())
