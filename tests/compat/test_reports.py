"""Reports about errors end at the user's line, in pytest, IPython, logging and threads."""

import re

import pytest

# The user's functions are two, with a frame of weft between them: a hook of a module that a call runs.
SCRIPT = """\
import logging
import threading
import sys
import weft as torch
import weft.compat


def hook(module, args):
    return torch.ones(2) + torch.ones(3)


def call():
    layer = torch.nn.Linear(2, 2)
    layer.register_forward_pre_hook(hook)
    return layer(torch.ones(2))


if "short" in sys.argv:
    weft.compat.short_tracebacks()
    weft.compat.short_tracebacks()
try:
    call()
except RuntimeError:
    logging.exception("logged")
thread = threading.Thread(target=call)
thread.start()
thread.join()
print("uncaught", file=sys.stderr)
call()
"""


@pytest.fixture
def files_of_frames(run, tmp_path):
    """Runs a script; gives the names of the files in the traceback that logging prints, in that of a thread, and in the uncaught one."""

    def files(*arguments, **environment):
        (tmp_path / "script.py").write_text(SCRIPT)
        output = run(*arguments, **environment).stderr
        logged, thread, uncaught = re.split("Exception in thread|^uncaught$", output, flags=re.MULTILINE)
        assert "ERROR:root:logged" in logged
        return [
            re.findall(r'File ".*?([^/\\"]+)"', part.rpartition("Traceback")[2])
            for part in (logged, thread, uncaught)
        ]

    return files


def test_a_program_may_ask_for_short_tracebacks(files_of_frames):
    own = ["script.py"] * 2
    assert files_of_frames("script.py", "short") == [
        ["script.py", *own],
        ["threading.py"] * 2 + own,
        ["script.py", *own],
    ]


def test_weft_run_prints_short_tracebacks(files_of_frames):
    own = ["script.py"] * 2
    assert files_of_frames("-m", "weft", "run", "script.py") == [
        ["script.py", *own],
        ["threading.py"] * 2 + own,
        ["script.py", *own],
    ]


def test_other_programs_see_all_frames(files_of_frames):
    for files in files_of_frames("script.py"):
        assert "iteration.py" in files


def test_pytest_ends_at_the_line_of_the_test(run, tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import weft as torch\n\n\ndef test_it():\n    torch.ones(2) + torch.ones(3)\n"
    )
    arguments = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
    report = run(*arguments).stdout
    assert "test_it.py:5: RuntimeError" in report
    assert "iteration.py" not in report
    assert "iteration.py" in run(*arguments, WEFT_TRACEBACK="1").stdout


def test_ipython_ends_at_the_line_of_the_cell(run, tmp_path):
    (tmp_path / "script.py").write_text("import weft as torch\ntorch.ones(2) + torch.ones(3)\n")
    cells = "import weft as torch\ntorch.ones(2) + torch.ones(3)\n%run script.py\n%tb\n1 / 0\n"
    arguments = ("-m", "IPython", "--no-banner", "--colors=NoColor", "--quick")
    environment = {"HOME": str(tmp_path), "IPYTHONDIR": str(tmp_path)}
    shown = run(*arguments, input=cells, **environment).stdout
    assert shown.count("RuntimeError: The size of tensor a (2)") == 3
    assert shown.count("File ") == 2  # script.py, twice
    assert "ZeroDivisionError: division by zero" in shown
    assert "iteration.py" in run(*arguments, input=cells, WEFT_TRACEBACK="1", **environment).stdout


MISTAKE = "import weft as torch\ntorch.nn.Linear(in_feature=3, out_features=4)\n"


def test_all_reports_name_the_nearest_parameter(run, run_weft, tmp_path):
    (tmp_path / "script.py").write_text(MISTAKE)
    (tmp_path / "test_it.py").write_text(
        f"def test_it():\n    {MISTAKE.splitlines()[0]}\n    {MISTAKE.splitlines()[1]}\n"
    )
    reports = (
        run("script.py").stderr,
        run_weft("run", "script.py").stderr,
        run("-m", "pytest", "-q", "test_it.py").stdout,
    )
    for report in reports:
        assert "in_features" in report.partition("unexpected keyword argument 'in_feature'")[2]


def test_other_hooks_stay(run, tmp_path):
    (tmp_path / "script.py").write_text(
        f"import sys\nsys.excepthook = lambda *error: print('mine')\n{MISTAKE}"
    )
    assert run("script.py").stdout == "mine\n"
