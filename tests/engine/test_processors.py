"""Processors without the instructions for float16 compute the same bits."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def digests(folder, *arguments):
    run = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("plain_processor.py")), *arguments],
        env={**os.environ, "WEFT_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return dict(line.rsplit(" ", 1) for line in run.stdout.splitlines())


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the plain processor is an x86-64")
def test_a_processor_without_extensions_computes_the_same(tmp_path):
    native, plain = digests(tmp_path / "native"), digests(tmp_path / "plain", "plain")
    assert len(native) > 200
    assert {
        call: (plain.get(call), found) for call, found in native.items() if plain.get(call) != found
    } == {}
