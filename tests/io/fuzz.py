"""Damaged files of the other formats: python -m tests.io.fuzz --mutants 100000 [--format hdf5]

As tests/serialization/fuzz.py does it: a mutant may load, or raise one of the documented exceptions, and do nothing else.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import encodings.ascii  # noqa: F401  (h5py asks for it when a name is damaged)
import functools
import io
import os
import random
import struct
import sys
import tempfile
import time
import unicodedata  # noqa: F401  (Python's parser asks for it when a name is not ASCII)
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
import safetensors
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1]))
from serialization.fuzz import GROWTH, Guard, _damaged, memory

import weft
from weft.engine import tiers

DOCUMENTED = (RuntimeError, TypeError)  # NotImplementedError is a RuntimeError


class Format(NamedTuple):
    good: Callable[[str], list[bytes]]  # contents of files, given a path to write to
    mutant: Callable[[bytes, random.Random], bytes]
    reads: tuple[Callable[[str], object], ...]
    harmless: tuple[str, ...] = ()  # events of the interpreter that reading needs


def tensors() -> dict[str, weft.Tensor]:
    found = {
        "whole": weft.arange(60.0).view(5, 12),
        "bools": weft.tensor([True, False]),
        "empty": weft.empty(0, 3),
    }
    return found | {"scalar": weft.tensor(1), "complex": weft.ones(3, dtype=weft.complex64)}


def written(path: str, *saves: Callable[[str], object]) -> list[bytes]:
    contents = []
    for save in saves:
        save(path)
        contents.append(Path(path).read_bytes())
    return contents


# ---- HDF5 ------------------------------------------------------------------------------------------------------------


def hdf5_files(path: str) -> list[bytes]:
    tree = {"a": tensors(), "list": [weft.ones(2).bfloat16(), (weft.ones(70, 3).to(weft.float8_e4m3fn),)]}

    def other_program(options):
        def save(path):
            with h5py.File(path, "w", **options) as file:
                file["group/big"] = np.arange(10, dtype=">i4")
                file["group/grows"] = np.zeros(0)
                dataset = file.create_dataset(
                    "chunked", (30, 20), "f8", chunks=(7, 9), maxshape=(None, 20), shuffle=True
                )
                dataset[:10] = 1
                dataset.attrs["units"] = "metres"
                file["again"] = dataset

        return save

    return written(
        path,
        lambda path: weft.io.save_hdf5(tree, path),
        lambda path: weft.io.save_hdf5(tree, path, compression="gzip"),
        other_program({}),
        other_program({"libver": "latest"}),
    )


def read_lazily(path: str) -> object:
    """A corner of each tensor."""

    def corners(tree):
        if isinstance(tree, weft.io.TensorInFile):
            return tree[tuple(slice(0, 3) for _ in tree.shape)]
        return [corners(each) for each in (tree.values() if isinstance(tree, dict) else tree)]

    return corners(weft.io.load_hdf5(path, lazy=True))


# ---- The others ------------------------------------------------------------------------------------------------------


def safetensors_files(path: str) -> list[bytes]:
    narrow = {"b": weft.ones(3).bfloat16(), "f": weft.ones(5).to(weft.float8_e5m2)}
    return [weft.io.safetensors.save(tensors(), {"a": "b"}), weft.io.safetensors.save(tensors() | narrow)]


def safetensors_mutant(good: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.3:
        return _damaged(good, rng)
    size = 8 + int.from_bytes(good[:8], "little")
    header = _damaged(good[8:size], rng)
    return len(header).to_bytes(8, "little") + header + good[size:]


def read_as_the_library(path: str) -> object:
    """What weft reads, the library reads too, and the same."""
    loaded = weft.io.safetensors.load_file(path)
    for name, info in safetensors.deserialize(Path(path).read_bytes()):
        tensor = loaded[name]
        assert list(tensor.shape) == info["shape"]
        assert bytes(tensor.flatten().view(weft.uint8).tolist()) == bytes(info["data"])
    return loaded


def npy_files(path: str) -> list[bytes]:
    return written(
        path,
        *(lambda path, t=t: weft.io.save_npy(t, path) for t in (*tensors().values(), weft.ones(2, 3).t())),
    )


def npz_files(path: str) -> list[bytes]:
    return written(
        path,
        lambda path: weft.io.save_npz(tensors(), path),
        lambda path: weft.io.save_npz(tensors(), path, compressed=True),
    )


def npz_mutant(good: bytes, rng: random.Random) -> bytes:
    """Sometimes with the checksums of the damaged members."""
    if rng.random() < 0.5:
        return _damaged(good, rng)
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(good)) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, _damaged(content, rng) if rng.random() < 0.5 else content, rng.choice((0, 8)))
    return file.getvalue()


def image_files(path: str) -> list[bytes]:
    pixels = weft.arange(3 * 9 * 11).to(weft.uint8).view(3, 9, 11)
    endings = (".png", ".jpg", ".webp", ".gif", ".bmp", ".tiff", ".ppm")

    def save(ending):
        def save(path):
            weft.io.save_image(pixels, path + ending)
            os.replace(path + ending, path)

        return save

    def palette(path):
        Image.fromarray(pixels[0].numpy()).convert("P").save(path, "PNG", transparency=3)

    return written(path, *map(save, endings), palette)


def image_mutant(good: bytes, rng: random.Random) -> bytes:
    """For PNG sometimes with the checksums of the damaged chunks."""
    if good[:4] != b"\x89PNG" or rng.random() < 0.3:
        return _damaged(good, rng)
    mutant, at = good[:8], 8
    while at < len(good):
        size = int.from_bytes(good[at : at + 4], "big")
        chunk = good[at + 4 : at + 8 + size]
        if rng.random() < 0.4:
            chunk = chunk[:4] + _damaged(chunk[4:], rng)
        mutant += struct.pack(">L", len(chunk) - 4) + chunk + struct.pack(">L", zlib.crc32(chunk))
        at += size + 12
    return mutant


@contextlib.contextmanager
def limited_pixels() -> Iterator[None]:
    """A run of one colour has any length in TIFF, WebP and BMP: there, Pillow's limit is all there is."""
    limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, 1 << 20
    try:
        yield
    finally:
        Image.MAX_IMAGE_PIXELS = limit


def csv_files(path: str) -> list[bytes]:
    return [b"1,2,3\n4,5,6\n" * 5, b'"1","2e3"\r\n-nan,inf\r\n', b"\xef\xbb\xbf1\n2\n"]


LITERALS = ("compile",)  # a header of NumPy's is Python: ast.literal_eval parses it and runs nothing

FORMATS = {
    "hdf5": Format(hdf5_files, _damaged, (weft.io.load_hdf5, read_lazily)),
    "safetensors": Format(
        safetensors_files,
        safetensors_mutant,
        (read_as_the_library, lambda path: weft.io.safetensors.load_file(path, backend="pread")),
    ),
    "npy": Format(
        npy_files, _damaged, (weft.io.load_npy, lambda path: weft.io.load_npy(path, mmap=True)), LITERALS
    ),
    "npz": Format(
        npz_files, npz_mutant, (weft.io.load_npz, lambda path: weft.io.load_npz(path, mmap=True)), LITERALS
    ),
    "image": Format(
        image_files, image_mutant, (weft.io.load_image, lambda path: weft.io.load_image(path, "RGBA"))
    ),
    "csv": Format(csv_files, _damaged, (weft.io.load_csv,)),
}


def run(name: str, mutants: int, seed: int, first: int = 0) -> collections.Counter:
    """Read so many mutants of a format; how often each outcome was."""
    form, outcomes, guard = FORMATS[name], collections.Counter(), Guard()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), limited_pixels():
        warnings.simplefilter("ignore")  # Pillow's about damage that it repairs
        guard.path = os.path.join(folder, "mutant")
        files = form.good(guard.path)
        for content in (
            *files,
            b"none of the format",
        ):  # which also imports what is imported when it is needed
            for read in form.reads:
                Path(guard.path).write_bytes(content)
                try:
                    read(guard.path)
                except DOCUMENTED:
                    assert content not in files
        guard.harmless = form.harmless
        tiers.finish()  # the thread that compiles kernels writes files, too
        before = memory()
        for index in range(first, first + mutants):
            rng = random.Random(f"{name} {seed} {index}")
            Path(guard.path).write_bytes(form.mutant(rng.choice(files), rng))
            read = functools.partial(rng.choice(form.reads), guard.path)
            try:
                result = guard.watch(read, DOCUMENTED)
            except AssertionError as error:
                raise AssertionError(f"{name}: mutant {index} of seed {seed}: {error}") from error
            outcomes[type(result).__name__ if isinstance(result, Exception) else "loaded"] += 1
    assert memory() - before < GROWTH, f"memory grew by {memory() - before} bytes"
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description="read damaged files")
    parser.add_argument("--mutants", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the index of the first mutant")
    parser.add_argument("--format", choices=FORMATS, action="append")
    options = parser.parse_args()
    for name in options.format or FORMATS:
        start = time.perf_counter()
        outcomes = run(name, options.mutants, options.seed, options.first)
        print(
            f"{name}: {options.mutants} mutants in {time.perf_counter() - start:.0f} s: {dict(outcomes)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
