"""Write the stubs: `make stubs`."""

from .files import PACKAGE, stubs

written = stubs()
for file in PACKAGE.rglob("*.pyi"):
    if file not in written:
        file.unlink()
for file, text in written.items():
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
print(f"{len(written)} stubs, {sum(map(len, written.values()))} bytes")
