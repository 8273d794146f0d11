"""The pictures of docs/pictures.md, drawn by the code of the page. `python tests/page_pictures.py` writes them."""

import os
import re
import runpy
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "drawn"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def codes():
    """The code of each picture, by the name of its file."""
    blocks = BLOCK.findall((ROOT / "docs" / "pictures.md").read_text())
    return {re.search(r'save\("(\w+\.svg)"\)', code)[1]: code for code in blocks}


def draw(name, folder):
    """The text of the picture that the page's code for it saves, run in this folder."""
    script = Path(folder) / "training.py"
    script.write_text(codes()[name])
    before = os.getcwd()
    os.chdir(folder)
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        os.chdir(before)
    return (Path(folder) / name).read_text()


def without_times(svg):
    return re.sub(r"[\d.e+]+ (ms|µs)", "TIME", svg)


if __name__ == "__main__":
    for name in sys.argv[1:] or codes():
        with tempfile.TemporaryDirectory() as folder:
            (FOLDER / name).write_text(draw(name, folder))
