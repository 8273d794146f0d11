"""Reads and writes NumPy's .npz files: zip archives of .npy files."""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.tensor import Tensor
from ..serialization.atomic import replacing
from .damage import damaged, reading
from .npy import array_to_write, read_bytes, read_layout, tensor_of

ALIGNMENT = 64  # bytes; alignment of the arrays in files that weft writes, so that they can be mapped
_LOCAL_HEADER = 30  # bytes of the header of a member, without its name and its extra field
_EXTRA = struct.Struct("<2H")  # the header of an extra field: identifier and size
_PADDING = 0x4157  # an identifier that no program uses
RATIO = 1032  # the largest compression ratio of deflate


def save_npz(tensors: Mapping[str, Tensor], path: str | os.PathLike, *, compressed: bool = False) -> None:
    """Write named tensors as `np.savez` does, or `np.savez_compressed`.

    Raises: TypeError for dtypes that the format does not support: bfloat16, float8, complex32.

    >>> import os, tempfile, weft
    >>> path = os.path.join(tempfile.mkdtemp(), "t.npz")
    >>> weft.io.save_npz({"weight": weft.ones(2), "bias": weft.tensor(3)}, path)
    >>> weft.io.load_npz(path)
    {'weight': tensor([1., 1.]), 'bias': tensor(3)}
    """
    arrays = {name: array_to_write(tensor) for name, tensor in tensors.items()}
    if any("\0" in str(name) for name in arrays):
        raise ValueError("a zip archive has no names with a null character")
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with replacing(path) as file, zipfile.ZipFile(file, "w", method) as archive:
        for name, values in arrays.items():
            # The date is fixed, so that equal content gives equal files.
            member = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            member.compress_type = method
            if not compressed:
                _align(member, file.tell())
            with archive.open(member, "w", force_zip64=True) as output:
                np.lib.format.write_array(output, values, allow_pickle=False)


def _align(member: zipfile.ZipInfo, position: int) -> None:
    """Pad a member that will be written at `position`, so that its content is aligned.

    This aligns the array as well, because the size of the header of a .npy file is a multiple of 64 bytes.
    """
    zip64 = 20  # the extra field that force_zip64 adds
    start = position + _LOCAL_HEADER + len(member.filename.encode()) + zip64 + _EXTRA.size
    padding = -start % ALIGNMENT
    member.extra = _EXTRA.pack(_PADDING, padding) + bytes(padding)


def load_npz(path: str | os.PathLike, *, mmap: bool = False) -> dict[str, Tensor]:
    """Load the tensors in a .npz file as a dict by their names.

    With `mmap`, the memory of tensors is the mapped file if they are uncompressed and aligned, as in files of `save_npz`.
    Checksums of mapped tensors are not verified.

    Raises: RuntimeError if the file is damaged, TypeError if a tensor cannot represent its elements.
    """
    with open(path, "rb") as file, reading(path), zipfile.ZipFile(file) as archive:
        size = os.fstat(file.fileno()).st_size
        members = archive.infolist()
        _check_sizes(path, members, size)
        mapped = np.memmap(file, np.uint8, "c") if mmap else None
        return {_name(member): _load(archive, member, path, mapped) for member in members}


def _name(member: zipfile.ZipInfo) -> str:
    return member.filename.removesuffix(".npy")


def _check_sizes(path: Any, members: list[zipfile.ZipInfo], size: int) -> None:
    """Raises: RuntimeError if the members claim to be larger than deflate can produce from the bytes of the archive."""
    if len({_name(member) for member in members}) < len(members):
        raise damaged(path, "two members have the same name")
    if sum(member.compress_size for member in members) > size:
        raise damaged(path, f"the members are said to have more bytes than the file's {size}")
    for member in members:
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise damaged(
                path, f"{member.filename}: compression method {member.compress_type} is not NumPy's"
            )
        if member.file_size > member.compress_size * (
            RATIO if member.compress_type == zipfile.ZIP_DEFLATED else 1
        ):
            raise damaged(
                path,
                f"{member.filename}: {member.compress_size} bytes cannot hold the {member.file_size} they should",
            )


def _load(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Any, mapped: np.memmap | None) -> Tensor:
    with archive.open(member) as file:
        where = f"{path}: {member.filename}"
        layout = read_layout(file, where)
        header = file.tell()
        if header + layout.nbytes != member.file_size:
            raise damaged(
                where,
                f"shape {layout.shape} of {layout.dtype} takes {layout.nbytes} bytes, but "
                f"{member.file_size - header} are there",
            )
        if mapped is not None and layout.nbytes and member.compress_type == zipfile.ZIP_STORED:
            start = _content(member, mapped) + header
            return tensor_of(mapped[start : start + layout.nbytes], layout)
        values = read_bytes(file, layout.nbytes, where)
        file.read(1)  # zipfile verifies the checksum at the end of the member
        return tensor_of(values, layout)


def _content(member: zipfile.ZipInfo, mapped: np.ndarray) -> int:
    """The position of the content of a member, after its header. zipfile has checked the header when it opened the member."""
    name, extra = (
        mapped[member.header_offset + 26 : member.header_offset + _LOCAL_HEADER].view("<u2").tolist()
    )
    return member.header_offset + _LOCAL_HEADER + name + extra
