"""NumPy's .npz files: zip archives of .npy files."""

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

ALIGNMENT = 64  # of the arrays in a file that we write, so that they can be mapped
_LOCAL_HEADER = 30  # bytes of a zip archive's header before a member, without its name and extra field
_EXTRA = struct.Struct("<2H")  # of an extra field: what it is and its size
_PADDING = 0x4157  # an identifier that no program claims
RATIO = 1032  # deflate makes no more of one byte


def save_npz(tensors: Mapping[str, Tensor], path: str | os.PathLike, *, compressed: bool = False) -> None:
    """Write named tensors as `np.savez` does, or `np.savez_compressed`.

    Raises: TypeError for dtypes that the format has no name for: bfloat16, float8, complex32.

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
            member = zipfile.ZipInfo(
                f"{name}.npy", (1980, 1, 1, 0, 0, 0)
            )  # so that equal content is equal bytes
            member.compress_type = method
            if not compressed:
                _align(member, file.tell())
            with archive.open(member, "w", force_zip64=True) as output:
                np.lib.format.write_array(output, values, allow_pickle=False)


def _align(member: zipfile.ZipInfo, position: int) -> None:
    """Pad a member that will be written at a position so that its content is aligned.

    The header of a .npy file is a multiple of 64 bytes, so that aligns the array too.
    """
    zip64 = 20  # the extra field that force_zip64 adds
    start = position + _LOCAL_HEADER + len(member.filename.encode()) + zip64 + _EXTRA.size
    padding = -start % ALIGNMENT
    member.extra = _EXTRA.pack(_PADDING, padding) + bytes(padding)


def load_npz(path: str | os.PathLike, *, mmap: bool = False) -> dict[str, Tensor]:
    """The tensors in a .npz file by their names.

    With `mmap` they lie in the file and are read when they are used, where they are not compressed and lie aligned, as
    `save_npz` writes them; their checksums are then not verified.

    Raises: RuntimeError if the file is damaged, TypeError if a tensor cannot hold its elements.
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
    """Refuse archives that unpack to more than their bytes can hold."""
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
        file.read(1)  # only at the end is the checksum compared
        return tensor_of(values, layout)


def _content(member: zipfile.ZipInfo, mapped: np.ndarray) -> int:
    """Where the content of a member begins: behind its header, which zipfile has checked when it opened the member."""
    name, extra = (
        mapped[member.header_offset + 26 : member.header_offset + _LOCAL_HEADER].view("<u2").tolist()
    )
    return member.header_offset + _LOCAL_HEADER + name + extra
