"""The benchmarks run; how fast anything is, is not for tests to say."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def bench(tmp_path, *options):
    numbers = tmp_path / "numbers.json"
    command = [sys.executable, "-m", "bench", "--quick", "--json", str(numbers), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(numbers.read_text())["rows"]


def test_all_implementations_run_a_small_case(tmp_path):
    table, [row] = bench(tmp_path, "--only", "small/add")
    assert not row["errors"]
    assert min(row["values"][name] for name in ("torch", "weft", "numpy")) > 0
    assert row["ratio"] == row["values"]["torch"] / row["values"]["weft"]
    assert row["met"] == (row["ratio"] >= row["target"])
    assert "| small/add |" in table


def test_memory_of_a_copy_is_the_size_of_the_copy(tmp_path):
    _, [row] = bench(tmp_path, "--only", "memory/transpose copy", "--impl", "numpy")
    assert row["values"]["numpy"] == pytest.approx(4000 * 4000 * 4, rel=0.05)


def test_a_case_without_numpy_statement_has_an_empty_cell(tmp_path):
    table, [row] = bench(tmp_path, "--only", "loop/*", "--impl", "numpy")
    assert (row["values"], row["errors"], row["ratio"], row["met"]) == ({}, {}, None, None)
    assert "0 of 0 targets met" in table
