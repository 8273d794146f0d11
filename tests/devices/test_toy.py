"""The device of docs/adding-a-device.md passes the tests of every device. They run in a process of their own, which finds it in `toy`."""

import re
from pathlib import Path

FOLDER = Path(__file__).parent
TOY = FOLDER / "toy"


def test_those_of_every_device(run):
    options = "-q", "-p", "no:cacheprovider", "-p", "toy_devices"
    done = run(
        "-m", "pytest", *options, FOLDER / "test_calls.py", TESTED_DEVICE="disk:0", PYTHONPATH=str(TOY)
    )
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout[-4000:] + done.stderr[-2000:]


def test_the_page_shows_it():
    page = (FOLDER.parents[1] / "docs" / "adding-a-device.md").read_text()
    source = (TOY / "disk" / "__init__.py").read_text()
    code = re.sub(r"  # noqa.*", "", source.split('"""\n\n', 1)[1])
    assert code.strip() in page
