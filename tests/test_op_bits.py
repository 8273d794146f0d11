"""tests/op_bits.py finds out whether two processes compute the same bits."""

import pickle
from pathlib import Path

import numpy as np
from op_bits import Call, Name, Values

TOOL = Path(__file__).with_name("op_bits.py")
NUMBERS = np.linspace(-3, 3, 6, dtype=np.float32)
MATRIX = Values("float32", (3, 2), (1, 3), 0, NUMBERS.tobytes(), True)


def written(path, *calls):
    path.write_bytes(pickle.dumps(list(calls)))
    return path


def call(path, *args, **options):
    return Call(f"{path}[float32]0", path, args, options)


def test_calls_of_two_processors_are_compared(run, tmp_path):
    calls = written(
        tmp_path / "calls",
        call("softmax", MATRIX, -1, dtype=Name("float64")),
        call("T", MATRIX),
        call("where", MATRIX, Values("bool", (), (), 0, b"\1", False), 0.0),
        call("sqrt", MATRIX),
        call("no_such_operation", MATRIX),
    )
    for level in ("x86-64", "x86-64-v2"):
        assert run(TOOL, "digests", calls, level, WEFT_CPU=level).returncode == 0
    lines = dict(line.split("\t") for line in (tmp_path / "x86-64").read_text().splitlines())
    assert lines["no_such_operation[float32]0"] == "AttributeError -"
    assert all(len(digests) == 33 for name, digests in lines.items() if name[:2] != "no")
    same = run(TOOL, "compare", "x86-64", "x86-64-v2")
    assert (same.returncode, same.stdout) == (
        0,
        "x86-64-v2: 5 of 5 calls have the same bits; errors: {'AttributeError': 1}\n",
    )


def test_a_difference_is_named(run, tmp_path):
    for folder, power in (("first", 2), ("second", 3)):
        calls = written(tmp_path / folder, call("pow", MATRIX, power), call("sqrt", MATRIX))
        run(TOOL, "digests", calls, f"{folder}.txt")
    done = run(TOOL, "compare", "first.txt", "second.txt")
    assert done.returncode == 1
    assert done.stdout.startswith("pow[float32]0: ")
    assert done.stdout.splitlines()[-1] == "second.txt: 1 of 2 calls have the same bits; errors: {}"


def test_a_run_goes_on_behind_a_call_that_ended_the_process(run, tmp_path):
    calls = written(tmp_path / "calls", call("sqrt", MATRIX), call("exp", MATRIX), call("sin", MATRIX))
    (tmp_path / "digests").write_text("sqrt[float32]0\t1234 -\nexp[float32]0\t")
    run(TOOL, "digests", calls, "digests")
    lines = [line.split("\t") for line in (tmp_path / "digests").read_text().splitlines()]
    assert [name for name, _ in lines] == ["sqrt[float32]0", "exp[float32]0", "sin[float32]0"]
    assert lines[1][1] == "" and len(lines[2][1]) == 33
