"""`import weft` leaves the collector of garbage on or off, as the program set it, and hides what it imported from it."""

import subprocess
import sys

import pytest

PROGRAMS = {
    "enabled": "import weft; assert gc.isenabled() and gc.get_freeze_count() > 50_000",
    "disabled": "gc.disable(); import weft; assert not gc.isenabled()",
    "frozen": "gc.freeze(); before = gc.get_freeze_count(); import weft; assert gc.get_freeze_count() > before // 2 > 0",
    "thawed": "import weft; gc.unfreeze(); assert len(gc.get_objects()) > 50_000",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_the_collector_stays_as_it_was(program):
    done = subprocess.run([sys.executable, "-c", f"import gc; {program}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
