"""Kernels for each level of x86-64 compute the same bits."""

import itertools
import os
import platform
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from weft.engine import host

ROOT = Path(__file__).resolve().parents[2]
FEATURES = " ".join(host._LEVELS.values()).split()


def digests(folder, level):
    run = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("plain_processor.py"))],
        env={**os.environ, "WEFT_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT), "WEFT_CPU": level},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return dict(line.rsplit(" ", 1) for line in run.stdout.splitlines())


pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="the levels are those of x86-64"
)


def test_a_processor_without_extensions_computes_the_same(tmp_path):
    native, plain = digests(tmp_path, ""), digests(tmp_path, "x86-64")
    assert len(native) > 200
    assert {
        call: (plain.get(call), found) for call, found in native.items() if plain.get(call) != found
    } == {}


class TestLevels:
    @pytest.fixture(autouse=True)
    def compile_for(self, monkeypatch):
        self.patch = monkeypatch

    def cpu(self, level):
        self.patch.setenv("WEFT_CPU", level)
        return host.cpu.__wrapped__()

    def test_each_level_has_the_features_of_the_ones_below(self):
        own = dict.fromkeys(FEATURES, True)
        found = [host._level(name, own) for name in host._LEVELS]
        assert [name for name, _ in found] == list(host._LEVELS)
        for (_, below), (_, above) in itertools.pairwise(found):
            assert above.startswith(below + ",")
        assert "+f16c" in found[2][1] and "+f16c" not in found[1][1] and "+avx512f" not in found[2][1]

    def test_without_a_level_it_is_this_processor(self):
        assert self.cpu("")[0] == llvm.get_host_cpu_name()

    def test_an_unknown_level(self):
        with pytest.raises(ValueError, match="WEFT_CPU must be one of x86-64, x86-64-v2, .*, not 'v9'"):
            self.cpu("v9")
        program = "try: import weft\nexcept ValueError as error: print(error)"
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "WEFT_CPU": "v9"}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith("WEFT_CPU must be one of")

    def test_a_level_that_this_processor_does_not_have(self):
        with pytest.raises(ValueError, match="this processor lacks avx512bw"):
            host._level("x86-64-v4", {name: name != "avx512bw" for name in FEATURES})

    def test_the_kernel_cache_tells_levels_apart(self, tmp_path):
        """A process that compiled for one level finds nothing of it at another."""
        program = (
            "import weft; weft.ones(3).exp(); from weft.engine import host; print(host.disk_cache()._stem)"
        )
        stems = {
            subprocess.run(
                [sys.executable, "-c", program],
                env={
                    **os.environ,
                    "WEFT_CACHE_DIR": str(tmp_path),
                    "PYTHONPATH": str(ROOT),
                    "WEFT_CPU": level,
                },
                capture_output=True,
                text=True,
                check=True,
                timeout=600,
            ).stdout
            for level in ("", "x86-64", "x86-64-v2")
        }
        assert len(stems) == 3
