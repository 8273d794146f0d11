"""Write the stubs: `make stubs`. With `--check`, name those that differ from what this would write."""

import sys

from .files import PACKAGE, stubs

written = stubs()
there = {file: file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.pyi")}
if "--check" in sys.argv:
    different = [file for file in written.keys() | there.keys() if written.get(file) != there.get(file)]
    sys.exit("\n".join(f"{file} is not what the run time says" for file in sorted(different)) or None)
for file in there.keys() - written.keys():
    file.unlink()
for file, text in written.items():
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
print(f"{len(written)} stubs, {sum(map(len, written.values()))} bytes")
