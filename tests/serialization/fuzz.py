"""Damaged and forged files, by the thousand: python -m tests.serialization.fuzz --mutants 100000

Each mutant of a good file is loaded from memory. It may load, or raise one of the documented exceptions; it may not
crash, hang, allocate what the file has no bytes for, open a file, import a module or run anything.
"""

from __future__ import annotations

import argparse
import collections
import io
import pickle
import pickletools  # noqa: F401  (messages about damage name instructions: imported before the guard listens)
import random
import resource
import signal
import struct
import sys
import tarfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator

import weft
from weft.engine import tiers

DOCUMENTED = (pickle.UnpicklingError, RuntimeError, EOFError)  # NotImplementedError is a RuntimeError
SECONDS = 5  # of processor time, for one mutant
GROWTH = 256 << 20  # bytes that memory may grow by over a whole run: fragments and caches, not forged sizes

# What the interpreter announces when something happens that reading weights has no use for.
FORBIDDEN = ("os.", "subprocess.", "socket.", "exec", "shutil.", "ctypes.dlopen", "import", "open", "compile")


# ---- Good files ------------------------------------------------------------------------------------------------------


def contents() -> list[object]:
    whole = weft.arange(24.0).reshape(4, 6)
    noted = weft.ones(2)
    noted.note = {"a": (1, 2)}
    return [
        {"whole": whole, "row": whole[1], "turned": whole.t(), "name": "x" * 20},
        [weft.ones(3, dtype=dtype) for dtype in (weft.bool, weft.uint16, weft.bfloat16, weft.float8_e5m2)],
        [weft.ones(2, dtype=weft.complex64).conj(), weft.ones(2, device="meta"), weft.empty(0), noted],
        [
            weft.Size([2]),
            weft.float16,
            weft.device("cuda:1"),
            weft.strided,
            weft.channels_last,
            b"\xff",
            bytearray(b"x"),
        ],
        collections.OrderedDict(
            a=1, b=collections.Counter("aab"), c={1, 2}, d=1j, e=2**70, f=-1.5, g=(1, (2, ()), None)
        ),
        [weft.nn.Parameter(weft.ones(2)), weft.ones(2).untyped_storage(), weft.ones(2).storage()],
    ]


def good_files() -> list[bytes]:
    files = []
    for content in contents():
        for zipped in (True, False):
            file = io.BytesIO()
            weft.save(content, file, _use_new_zipfile_serialization=zipped)
            files.append(file.getvalue())
    return [*files, tar_file()]


def tar_file(values: tuple[float, ...] = (1.0, 2.0, 3.0)) -> bytes:
    """The oldest format: a tensor of `values` under "t" and a view of all but the first under "v"."""
    storages = _pickles(1, (10, "cpu", _Global("torch FloatStorage"))) + struct.pack(
        f"<q{len(values)}f", len(values), *values
    )
    storages += _pickles([])
    tensors = _pickles(2)
    for key, size, offset in ((20, len(values), 0), (21, len(values) - 1, 1)):
        tensors += _pickles((key, 10, _Global("torch FloatTensor"))) + struct.pack(
            "<i4xqqq", 1, size, 1, offset
        )
    pickled = _pickles({"t": _Persistent(20), "v": _Persistent(21)})
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in (
            ("sys_info", _pickles({})),
            ("pickle", pickled),
            ("tensors", tensors),
            ("storages", storages),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return file.getvalue()


class _Global:
    """Stands for a global in a pickle that is made by hand."""

    def __init__(self, name: str):
        self.name = name


class _Persistent:
    """Stands for an object by its persistent id."""

    def __init__(self, key: int):
        self.key = key


class _Pickler(pickle._Pickler):  # type: ignore[name-defined]
    def persistent_id(self, obj: object) -> object:
        return obj.key if isinstance(obj, _Persistent) else None

    def save_named(self, obj: _Global) -> None:
        self.write(pickle.GLOBAL + obj.name.replace(" ", "\n").encode() + b"\n")

    dispatch = {**pickle._Pickler.dispatch, _Global: save_named}  # type: ignore[attr-defined]


def _pickles(*values: object) -> bytes:
    file = io.BytesIO()
    for value in values:
        _Pickler(file, 2).dump(value)
    return file.getvalue()


# ---- Mutants ---------------------------------------------------------------------------------------------------------


def mutant(good: bytes, rng: random.Random) -> bytes:
    """A damaged copy of a file; for archives often one whose checksums and sizes are right again."""
    if good[:2] == b"PK" and rng.random() < 0.7:
        return _repacked(good, rng)
    return _damaged(good, rng)


def _repacked(good: bytes, rng: random.Random) -> bytes:
    """An archive with a damaged pickle, packed anew so that nothing else is wrong with it."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(good)) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("data.pkl") or rng.random() < 0.05:
                content = _damaged(content, rng)
            new.writestr(name, content)
    return file.getvalue()


def _damaged(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        rng.choice(_DAMAGES)(changed, rng)
    return bytes(changed)


def _position(content: bytearray, rng: random.Random) -> int:
    return rng.randrange(len(content)) if content else 0


def _flip(content: bytearray, rng: random.Random) -> None:
    if content:
        content[_position(content, rng)] ^= 1 << rng.randrange(8)


def _set(content: bytearray, rng: random.Random) -> None:
    if content:
        content[_position(content, rng)] = rng.choice(
            (0, 1, 0x7F, 0x80, 0xFF, *b"(.RbcQqhtuse]}0123", rng.randrange(256))
        )


def _number(content: bytearray, rng: random.Random) -> None:
    start, size = _position(content, rng), rng.choice((1, 2, 4, 8))
    value = rng.choice((0, 1, 2**7, 2**15, 2**31 - 1, 2**32 - 1, 2**63 - 1, rng.getrandbits(64))) % 2 ** (
        8 * size
    )
    content[start : start + size] = value.to_bytes(size, "little")


def _cut(content: bytearray, rng: random.Random) -> None:
    start = _position(content, rng)
    del content[start : start + rng.choice((1, 2, 10, 10**6))]


def _repeat(content: bytearray, rng: random.Random) -> None:
    start, size = _position(content, rng), rng.choice((1, 2, 5, 20, 100))
    content[start:start] = content[start : start + size] * rng.choice((1, 1, 2, 50))


def _move(content: bytearray, rng: random.Random) -> None:
    start, size = _position(content, rng), rng.choice((1, 2, 5, 20))
    piece = content[start : start + size]
    del content[start : start + size]
    target = _position(content, rng)
    content[target:target] = piece


def _insert(content: bytearray, rng: random.Random) -> None:
    start = _position(content, rng)
    content[start:start] = rng.choice(_INSERTS)


_DAMAGES: tuple[Callable[[bytearray, random.Random], None], ...] = (
    _flip, _set, _set, _number, _cut, _repeat, _move, _insert,
)  # fmt: skip
_INSERTS = (
    *(
        b"cos\nsystem\n",
        b"cbuiltins\neval\n",
        b"c__builtin__\ngetattr\n",
        b"ctorch\nFloatStorage\n",
        b"ctorch\nTensor\n",
    ),
    *(
        b"c__builtin__\nbytearray\n",
        b"c_codecs\nencode\n",
        b"ccollections\nCounter\n",
        b"c__builtin__\nset\n",
    ),
    *(
        b"ctorch._utils\n_rebuild_tensor_v2\n",
        b"ctorch.nn.parameter\nParameter\n",
        b"ctorch\nSize\n",
        b"ctorch\ndevice\n",
    ),
    *(
        b"\x8a\xff" + b"\xff" * 255,
        b"J\xff\xff\xff\x7f",
        b"X\xff\xff\xff\xff",
        b"r\xff\xff\xff\xff",
        b"(" * 50,
        b")\x85" * 50,
    ),
    *(
        b"R",
        b"b",
        b"\x81",
        b"Q",
        b"0",
        b"2",
        b"\x85",
        b"\x86",
        b"\x87",
        b"]",
        b"}",
        b"(",
        b"h\0",
        b"h\1",
        b"q\0",
        b"h\0h\0\x86",
    ),
)


# ---- Loading them ----------------------------------------------------------------------------------------------------


class Guard:
    """Notices what a file must not do while it is loaded."""

    def __init__(self):
        self.on = False
        self.seen: list[str] = []
        self.path: str | None = None  # what may be opened
        self.harmless: tuple[str, ...] = ()  # events that a format cannot do without
        sys.addaudithook(self._event)

    def _event(self, event: str, arguments: tuple) -> None:
        if not self.on or not event.startswith(FORBIDDEN) or event in self.harmless:
            return
        # weft compiles a template of plans, which contains no text of the file.
        if event == "compile" and arguments[1] == "<weft template>":
            return
        if event != "open" or arguments[0] != self.path:
            self.seen.append(f"{event} {arguments!r:.100}")

    def load(self, content: bytes) -> object:
        """What is in a file of `torch.save`, or the documented exception."""
        return self.watch(lambda: weft.load(io.BytesIO(content)), DOCUMENTED)

    def watch(self, read: Callable[[], object], documented: tuple[type[Exception], ...]) -> object:
        """What `read` returns, or the documented exception.

        Raises: AssertionError for what is neither.
        """
        self.seen.clear()
        previous = signal.signal(signal.SIGPROF, _out_of_time)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        self.on = True
        try:
            result = read()
        except documented as error:
            result = error
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error}") from error
        finally:
            self.on = False
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, previous)
        assert not self.seen, f"the file did something: {self.seen}"
        for tensor in tensors_in(result):
            own = tensor.spec
            last = tensor._byte_offset + own.span * own.dtype.itemsize
            assert 0 <= tensor._byte_offset and (last <= tensor._storage.nbytes_ or own.numel == 0), own
        return result


def _out_of_time(*_: object) -> None:
    raise AssertionError(f"still loading after {SECONDS} seconds")


def tensors_in(value: object, seen: set[int] | None = None) -> Iterator[weft.Tensor]:
    """The tensors of nested containers, which may contain themselves."""
    seen = set() if seen is None else seen
    pending = [value]
    while pending:
        value = pending.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, weft.Tensor):
            yield value
        elif isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, (list, tuple, set)):
            pending += value


def memory() -> int:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def run(mutants: int, seed: int) -> collections.Counter:
    """Load so many mutants; how often each outcome was."""
    guard, files, outcomes = Guard(), good_files(), collections.Counter()
    for good in files:
        weft.load(io.BytesIO(good))  # also imports what is imported when it is needed
    weft.cuda.is_available()
    tiers.finish()  # the thread that compiles kernels writes files, too
    before = memory()
    for index in range(mutants):
        rng = random.Random(f"{seed} {index}")
        content = mutant(rng.choice(files), rng)
        try:
            result = guard.load(content)
        except AssertionError as error:
            raise AssertionError(f"mutant {index} of seed {seed}: {error}") from error
        outcomes[type(result).__name__ if isinstance(result, Exception) else "loaded"] += 1
    assert memory() - before < GROWTH, f"memory grew by {memory() - before} bytes"
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description="load damaged files")
    parser.add_argument("--mutants", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    outcomes = run(options.mutants, options.seed)
    print(f"{options.mutants} mutants in {time.perf_counter() - start:.0f} s: {dict(outcomes)}")


if __name__ == "__main__":
    main()
