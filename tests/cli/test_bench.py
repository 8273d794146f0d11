"""`weft bench`: a table of the lines of a script."""

import re

import pytest

SCRIPT = """\
import sys
import torch


def double(x):
    return x * 2


x = torch.ones(int(sys.argv[1]), 1000)
for _ in range(3):
    y = double(x)
    y = y + 1
    total = y.sum()
print("total", total.item())
torch.linalg.svdvals(torch.eye(3))
"""


@pytest.fixture
def bench(run_weft, tmp_path):
    def of(source, *arguments):
        (tmp_path / "script.py").write_text(source)
        return run_weft("bench", "script.py", *arguments)

    return of


def rows(shown):
    """By number of a line: calls, kernels, bytes moved, source."""
    pattern = r"^ *(\d+) +(\d+) +[\d.]+ +[\d.]+% {2}([\d ]{7}) +([\d.]+ [kM]?B)? +(\S.*)$"
    return {
        int(each[0]): (int(each[1]), each[2].strip(), each[3], each[4])
        for each in re.findall(pattern, shown, re.MULTILINE)
    }


def test_lines_of_a_script(bench):
    done = bench(SCRIPT, "400")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("total 1200000.0\nscript.py: "), "the script prints once"
    found = rows(done.stdout)
    assert sorted(found) == [1, 2, 6, 9, 10, 11, 12, 13, 14, 15]
    assert found[6] == (3, "", "", "return x * 2")
    assert found[9][:3] == (1, "1", "1.6 MB")
    # The sums need what lines 6 and 12 have recorded: one kernel each, which reads x.
    assert found[13] == (3, "3", "4.8 MB", "total = y.sum()  # for 6, 12")
    assert "Deferred work is charged to the line that needs its results" in done.stdout
    assert done.stderr.startswith(
        "weft bench: a first run, which counts kernels ...\nweft bench: timed run 1, of at most 7 ...\n"
    )


def test_small_tensors_are_not_deferred(bench):
    found = rows(bench(SCRIPT, "1").stdout)
    assert found[6][:2] == (3, "3")
    assert found[12][:2] == (3, "3")


@pytest.mark.parametrize(
    ("source", "status", "message"),
    [
        ("raise SystemExit(3)", 3, ""),
        ("import sys; sys.exit('so long')", 1, "so long\n"),
        ("import torch\ntorch.ones(2).view(3)", 1, "line 2, in <module>"),
        ("def f(:", 1, "SyntaxError"),
    ],
)
def test_scripts_that_fail(bench, source, status, message):
    done = bench(source)
    assert done.returncode == status
    assert message in done.stderr
    assert done.stdout == ""
    assert "weft/" not in done.stderr.replace("weft bench", "")


def test_scripts_that_end(bench):
    done = bench("import sys\nsys.exit()")
    assert done.returncode == 0
    assert 2 in rows(done.stdout)


def test_what_is_no_script(run_weft):
    done = run_weft("bench", "missing.py")
    assert (done.returncode, done.stderr) == (
        2,
        "weft bench: can't open 'missing.py': No such file or directory\n",
    )
    assert run_weft("bench", ".").returncode == 2
    assert "bench what? Give a script" in run_weft("bench").stderr
    assert "bench takes a script and its arguments, but was given '-m'" in run_weft("bench", "-m", "x").stderr
