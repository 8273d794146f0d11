import re
import threading

import pytest

from weft.cli.tour import reader as readers
from weft.cli.tour.worker import MOST_OUTPUT


@pytest.fixture(scope="module")
def reader():
    found = readers.Reader()
    yield found
    found.close()


def ran(reader, code):
    """What a cell printed, and its errors."""
    events = list(reader.run(code))
    assert events[-1] == {"done": True}
    return "".join(each.get("text", "") for each in events), "".join(each.get("error", "") for each in events)


def test_cells_share_a_namespace_and_show_the_value_of_the_last_line(reader):
    assert ran(reader, "x = 20\nx + 1") == ("21\n", "")
    assert ran(reader, "print(x); x += 1; None") == ("20\n", "")
    assert ran(reader, "x") == ("21\n", "")
    assert ran(reader, "import sys; print('e', file=sys.stderr); input()")[0] == "e\n"


def test_models_of_cells_can_be_saved(reader):
    code = """
import pickle
import weft
class Network(weft.nn.Linear):
    pass
type(pickle.loads(pickle.dumps(Network(2, 3)))) is Network
"""
    assert ran(reader, code) == ("True\n", "")


def test_what_libraries_write_does_not_disturb(reader):
    assert ran(reader, "import os; os.write(1, b'x')") == ("1\n", "")


def test_tracebacks_have_the_lines_of_cells_only(reader):
    ran(reader, "def f(x):\n    return x.view(7)")
    printed, error = ran(reader, "import weft\nf(weft.ones(2))")
    assert printed == ""
    assert re.sub(r"<cell \d+>", "<cell>", error).splitlines()[:5] == [
        "Traceback (most recent call last):",
        '  File "<cell>", line 2, in <module>',
        "    f(weft.ones(2))",
        '  File "<cell>", line 2, in f',
        "    return x.view(7)",
    ]
    assert "worker.py" not in error
    assert "SyntaxError" in ran(reader, "def (")[1]
    assert ran(reader, "raise SystemExit(3)")[1].endswith("SystemExit: 3")
    assert ran(reader, "f.__name__") == ("'f'\n", "")


def test_long_output_is_cut(reader):
    printed, _ = ran(reader, "for _ in range(1000):\n    print('x' * 1000)")
    assert len(printed) < MOST_OUTPUT + 100
    assert "only the first 100,000 characters" in printed
    assert ran(reader, "print('again')")[0] == "again\n"


def stopped(reader, code):
    """What a cell printed and its error, if it is stopped after its first output."""
    events = []
    for event in reader.run(code):
        if not events:
            threading.Thread(target=reader.stop).start()
        events.append(event)
    return "".join(each.get("error", "") for each in events)


def test_an_endless_loop_is_stopped(reader, monkeypatch):
    monkeypatch.setattr(readers, "PATIENCE", 60.0)  # for machines with much else to do
    ran(reader, "x = 5")
    assert stopped(reader, "print('go')\nwhile True: pass") == (
        "The cell was stopped. Its variables are still there."
    )
    assert ran(reader, "x") == ("5\n", "")


def test_a_cell_that_does_not_react_is_killed(reader, monkeypatch):
    monkeypatch.setattr(readers, "PATIENCE", 0.3)
    code = (
        "while True:\n    try:\n        print('go')\n        while True: pass\n    except BaseException: pass"
    )
    assert "The process of the cells ended (signal SIGKILL)" in stopped(reader, code)
    assert ran(reader, "1 + 1") == ("2\n", "")


def test_the_process_may_end_by_itself(reader):
    assert "ended (exit status 3)" in ran(reader, "import os; os._exit(3)")[1]
    assert ran(reader, "'x' in globals()") == ("False\n", "")


def test_stop_without_a_cell_does_nothing(reader):
    reader.stop()
    ran(reader, "x = 1")
    reader.stop()
    assert ran(reader, "x") == ("1\n", "")


def test_the_process_ends_when_nobody_reads(reader):
    events = reader.run("import os; print(os.getpid())\nwhile True: pass")
    next(events)
    process = reader._process
    events.close()
    assert process.poll() is not None


def test_the_process_ends_with_its_input(reader):
    events = reader.run("print('go')\nwhile True: pass")
    next(events)
    process = reader._process
    process.stdin.close()
    assert list(events)[-1] == {"done": True}
    assert process.returncode == 0
