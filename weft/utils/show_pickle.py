"""`python -m torch.utils.show_pickle file`: what a pickle holds, without running anything that it names.

A file of `torch.save` is an archive: `file.pt@*/data.pkl` is the pickle inside of it.
"""

from __future__ import annotations

import fnmatch
import pickle
import pprint
import sys
import zipfile
from typing import Any

__all__ = ["DumpUnpickler", "FakeClass", "FakeObject", "main"]


class FakeObject:
    """Stands for an object that a pickle would create, with its class, arguments and state."""

    def __init__(self, module: str, name: str, args: tuple) -> None:
        self.module, self.name, self.args = module, name, args
        self.state: Any = None

    def __repr__(self) -> str:
        shown = "" if self.state is None else f"(state={self.state!r})"
        return f"{self.module}.{self.name}{self.args!r}{shown}"

    def __setstate__(self, state: Any) -> None:
        self.state = state


class FakeClass:
    """Stands for a class or function that a pickle names."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name
        self.__new__ = self.fake_new  # type: ignore[method-assign, assignment]

    def __repr__(self) -> str:
        return f"{self.module}.{self.name}"

    def __call__(self, *args: Any) -> FakeObject:
        return FakeObject(self.module, self.name, args)

    def fake_new(self, *args: Any) -> FakeObject:
        """Return what the pickle's instruction to make an object calls."""
        return FakeObject(self.module, self.name, args[1:])


class _Reference(tuple):
    """A storage that lies outside of the pickle."""

    def __repr__(self) -> str:
        return f"pers.obj({', '.join(map(repr, self))})"


_Base: Any = pickle._Unpickler  # type: ignore[attr-defined]  # the one in Python, whose instructions can be replaced


class DumpUnpickler(_Base):
    """Reads a pickle with stand-ins for all that it names. Nothing of it is run.

    >>> import io, pickle, weft as torch
    >>> DumpUnpickler(io.BytesIO(pickle.dumps({"a": print}))).load()
    {'a': builtins.print}
    """

    def __init__(self, file: Any, *, catch_invalid_utf8: bool = False, **kwargs: Any) -> None:
        super().__init__(file, **kwargs)
        self.catch_invalid_utf8 = catch_invalid_utf8

    def find_class(self, module: str, name: str) -> Any:
        """Return the stand-in for a name."""
        return FakeClass(module, name)

    def persistent_load(self, pid: Any) -> Any:
        """Return the stand-in for what lies outside of the pickle."""
        return _Reference((pid,))

    dispatch: dict = dict(_Base.dispatch)

    def load_binunicode(self) -> None:
        """Text, or its bytes if they are no UTF-8 and `catch_invalid_utf8` is set."""
        (length,) = (int.from_bytes(self.read(4), "little"),)
        content = self.read(length)
        try:
            self.append(str(content, "utf-8", "surrogatepass"))
        except UnicodeDecodeError as error:
            if not self.catch_invalid_utf8:
                raise
            self.append(f"{error} in {content!r}")

    dispatch[pickle.BINUNICODE[0]] = load_binunicode

    @classmethod
    def dump(cls, in_stream: Any, out_stream: Any) -> Any:
        """Print what the pickle in a file holds, and return it."""
        value = cls(in_stream).load()
        pprint.pprint(value, stream=out_stream)
        return value


def main(argv: list[str], output_stream: Any = None) -> int | None:
    """Print the pickle that the command line names: `file`, `-` for the standard input, or `archive@member`."""
    if len(argv) != 2:
        print("Use: python -m torch.utils.show_pickle file, or archive@member", file=sys.stderr)
        return 2
    name = argv[1]
    if name == "-":
        DumpUnpickler.dump(sys.stdin.buffer, output_stream)
        return None
    path, at, pattern = name.partition("@")
    if not at:
        with open(name, "rb") as file:
            DumpUnpickler.dump(file, output_stream)
        return None
    with zipfile.ZipFile(path) as archive:
        members = [each for each in archive.namelist() if fnmatch.fnmatch(each, pattern)]
        if len(members) != 1:
            raise RuntimeError(f"{pattern} names {len(members)} members of {path}, expected one")
        with archive.open(members[0]) as member:
            DumpUnpickler.dump(member, output_stream)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv))
