import os
import re
import sys

import pytest

from weft import cli

SCRIPTS = {
    "arguments": "import sys; print(sys.argv, __name__, __file__)",
    "sys.path": "import sys; print([path for path in sys.path if 'startup' in path], sys.path[0])",
    "stdin": "import sys; print(sys.stdin.read().upper())",
    "exit status": "raise SystemExit(7)",
    "exit message": "import sys; sys.exit('so long')",
    "exception": "def f():\n    1 / 0\n\nf()",
    "chain": "try:\n    {}[1]\nexcept KeyError as error:\n    raise ValueError('no') from error",
    "group": "raise ExceptionGroup('several', [ValueError(1), TypeError(2)])",
    "syntax error": "def f(:\n    pass",
    "interrupt": "raise KeyboardInterrupt",
    "main": "import pickle, sys\nclass C: pass\nprint(pickle.dumps(C()), sys.modules['__main__'].C is C)",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_run_is_as_under_python(run, run_weft, tmp_path, name):
    (tmp_path / "script.py").write_text(SCRIPTS[name])
    expected, got = (
        command("script.py", "-x", "y", input="in")
        for command in (run, lambda *a, **k: run_weft("run", *a, **k))
    )
    assert (got.returncode, got.stdout, got.stderr) == (expected.returncode, expected.stdout, expected.stderr)


def test_run_missing_file_is_as_under_python(run, run_weft):
    expected, got = run("missing.py"), run_weft("run", "missing.py")
    assert (got.returncode, got.stderr) == (expected.returncode, expected.stderr)
    assert got.returncode == 2


def test_run_module_code_and_stdin(run_weft, tmp_path):
    (tmp_path / "module.py").write_text("import sys, torch; print(torch.__name__, sys.argv[1:])")
    code = "import sys, torch; print(torch.__name__, sys.argv)"
    assert run_weft("run", "-m", "module", "-h").stdout == "torch ['-h']\n"
    assert run_weft("run", "-c", code, "a").stdout == "torch ['-c', 'a']\n"
    assert run_weft("run", "-", "a", input=code).stdout == "torch ['-', 'a']\n"


def test_interpreter_options_hold_for_the_program(run):
    done = run(
        "-O",
        "-W",
        "error",
        "-m",
        "weft",
        "run",
        "-c",
        "import sys; print(sys.flags.optimize, sys.warnoptions)",
    )
    assert done.stdout == "1 ['error']\n"


def test_the_option_that_leaves_out_site_packages_is_not_for_the_program(run):
    packages = os.pathsep.join(path for path in sys.path if path.endswith("site-packages"))
    code = "import sys, torch; print(torch.__name__, sys.flags.no_site)"
    done = run("-S", "-m", "weft", "run", "-c", code, PYTHONPATH=packages)
    assert done.stdout == "torch 0\n", done.stderr


def test_traceback_ends_where_weft_begins(run_weft, tmp_path):
    (tmp_path / "script.py").write_text("import torch\n\ntorch.ones(2).view(3)\n")
    lines = run_weft("run", "script.py").stderr.splitlines()
    assert [line for line in lines if line.startswith("  File")] == [
        f'  File "{tmp_path / "script.py"}", line 3, in <module>'
    ]
    assert "RuntimeError: shape '[3]' is invalid for input of size 2" in lines[-3:]
    assert "weft" in run_weft("run", "script.py", WEFT_TRACEBACK="1").stderr


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["run", "--help"], ["doctor", "--help"]])
def test_help(capsys, arguments):
    assert cli.main(arguments) == 0
    out = capsys.readouterr().out
    assert "weft run script.py" in out and len(out.splitlines()) < 24  # lines of a terminal


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "weft run script.py"),
        (["rnu", "script.py"], "no command 'rnu'"),
        (["run"], "run what?"),
        (["run", "-c"], "run what?"),
        (["run", "-I", "script.py"], "does not know the option '-I'"),
        (["warm"], "warm what?"),
        (["warm", "-x"], "warm does not know the option '-x'"),
        (["doctor", "who"], "takes no arguments"),
        (["cache", "clean"], "cache takes clear or nothing"),
    ],
)
def test_wrong_command(capsys, arguments, message):
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert message in err and not out


def test_cache_is_shown_and_cleared(run_weft, tmp_path):
    folder = tmp_path / "kernels"
    folder.mkdir(mode=0o700)
    environment = {"WEFT_CACHE_DIR": str(folder)}
    run_weft("run", "-c", "import torch; torch.ones(3) + 1", **environment)
    assert f" in {folder}; " in run_weft("cache", **environment).stdout
    assert len(list(folder.iterdir())) > 0
    assert re.fullmatch(
        r"removed [1-9]\d* KiB of kernels\n", run_weft("cache", "clear", **environment).stdout
    )
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("arguments", [["cache", "clear"], ["warm", "-c", "print('not reached')"]])
def test_a_cache_that_cannot_be_used_is_reported(run_weft, tmp_path, arguments):
    (tmp_path / "file").write_text("")
    done = run_weft(*arguments, WEFT_CACHE_DIR=str(tmp_path / "file"))
    assert done.returncode == 1 and not done.stdout
    assert f"{tmp_path / 'file'} is no folder that only this user can write to" in done.stderr


def test_warm_fills_the_cache_with_optimized_kernels(run_weft, tmp_path):
    environment = {"WEFT_CACHE_DIR": str(tmp_path / "kernels")}
    program = "import sys, torch; print((torch.ones(5) + 1).sum().item(), sys.argv)"
    warmed = run_weft("warm", "-c", program, "a", **environment)
    assert warmed.returncode == 0, warmed.stderr
    assert warmed.stdout == "10.0 ['-c', 'a']\n"
    checked = "import weft.engine.host as host\nhost._object_code = None  # compiling fails\n" + program
    checked += "\nimport weft.engine.tiers as tiers; assert not tiers._pending"
    again = run_weft("run", "-c", checked, "a", **environment)
    assert again.stdout == warmed.stdout, again.stderr
    calls = "import weft.engine.host as host\nhost._object_code = None\nimport torch\ntorch.ones(5) + 1"
    busy = run_weft("run", "-c", calls, WEFT_CALLS="native", **environment)
    assert busy.returncode == 0, busy.stderr


def test_warm_has_the_exit_status_of_the_program(run_weft, tmp_path):
    environment = {"WEFT_CACHE_DIR": str(tmp_path / "kernels")}
    assert run_weft("warm", "-c", "raise SystemExit(7)", **environment).returncode == 7


def test_doctor_and_version(capsys):
    assert cli.main(["doctor"]) == 0
    out = capsys.readouterr().out
    for line in (
        "weft",
        "Python",
        "CPU",
        "vectors",
        "threads",
        "BLAS",
        "kernels",
        "device cpu",
        "device cuda",
        "device xpu",
        "device xla",
    ):
        assert re.search(rf"^{line} +\S", out, re.MULTILINE)
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("weft ")
