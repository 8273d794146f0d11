"""The stubs say what the run time has, and type checkers find mistakes in programs, and only these."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TYPED = ROOT / "tests" / "typed"
# As for an installed package: only the program is checked.
CONFIG = "[mypy]\nstrict = true\npython_version = 3.11\n[mypy-weft.*]\nfollow_imports = silent\n[mypy-tqdm.*,sklearn.*]\nignore_missing_imports = true\n"


@pytest.fixture
def mypy(run, tmp_path):
    """Run mypy as users do, strictly. The cache lies where `mypy` has its own: the first run takes some 10 s, others 1 s."""
    (tmp_path / "mypy.ini").write_text(CONFIG)

    def check(*files):
        options = "--config-file", "mypy.ini", "--cache-dir", ROOT / ".mypy_cache" / "users"
        got = run("-m", "mypy", *options, *files, MYPYPATH=str(ROOT))
        return got.stdout + got.stderr

    return check


def test_stubs_say_what_the_run_time_has(run):
    got = run("-m", "stubs", "--check", PYTHONPATH=str(ROOT / "tests"))
    assert got.returncode == 0, f"{got.stdout}{got.stderr}`make stubs` writes them"


def test_a_training_script_has_no_errors(mypy):
    assert mypy(TYPED / "training.py") == "Success: no issues found in 1 source file\n"


def test_the_examples_have_no_errors(mypy, tmp_path):
    """They import torch, which is weft under `weft run`; type checkers are told so."""
    names = []
    for example in (ROOT / "examples").glob("*.py"):
        text = (
            example.read_text()
            .replace("\nimport torch\n", "\nimport weft as torch\n")
            .replace("\nfrom torch", "\nfrom weft")
        )
        (tmp_path / example.name).write_text(text)
        names.append(example.name)
    assert mypy(*names) == f"Success: no issues found in {len(names)} source files\n"


def test_each_wrong_line_is_an_error(mypy):
    lines = (TYPED / "wrong.py").read_text().splitlines()
    wrong = range(lines.index("# Each line from here on is wrong.") + 2, len(lines) + 1)
    found = {int(line.split(":")[1]) for line in mypy(TYPED / "wrong.py").splitlines() if ": error:" in line}
    assert found == set(wrong), [lines[number - 1] for number in found ^ set(wrong)]


def test_the_training_script_runs(run_weft, tmp_path):
    got = run_weft("run", TYPED / "training.py")
    assert (got.returncode, got.stderr) == (0, "")
