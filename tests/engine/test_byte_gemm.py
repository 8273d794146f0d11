"""Products of bytes: exact sums by every processor's instructions, and the epilogue's bits those of the interpreter."""

import itertools

import numpy as np
import pytest

import weft
from weft.core.dtype import float32, int32, uint8
from weft.engine import byte_blocks, byte_gemm, byte_tiles, host
from weft.engine import scalar as s
from weft.engine.byte_gemm import byte_products, line_bytes
from weft.engine.byte_tiles import Epilogue, Shape
from weft.engine.expr import load, param
from weft.engine.interpreter import evaluate

SHAPES = {"bytes": Shape("", 8, (4, 2, 1), 2)}
if "+avx2" in host.cpu()[1].split(","):
    SHAPES["pairs"] = SHAPES["blocks"] = Shape("pmaddwd", 8, (4, 2, 1), 2)
if "+avx512vnni" in host.cpu()[1].split(","):
    SHAPES |= {
        "quads": Shape("vpdpbusd", 16, (8, 4, 1), 2),
        "quads of AVX": Shape("vpdpbusd", 8, (6, 3, 1), 2),
    }

# rows, terms, columns: whole tiles and lines, what is left of them, and single ones; several blocks
SIZES = [(1, 1, 1), (7, 5, 3), (6, 4, 16), (13, 33, 65), (16, 64, 32), (20, 3, 200), (3, 0, 5), (2, 1023, 40)]
SIZES.append((14, 2000, 150))
assert 2000 * 150 * 2 > byte_blocks.BLOCK_BYTES


@pytest.fixture(params=SHAPES, autouse=True)
def shape(request, monkeypatch):
    """The shape; "blocks" takes `byte_blocks.py` for any number of rows, the others never."""
    monkeypatch.setattr(byte_gemm, "shape", lambda: SHAPES[request.param])
    monkeypatch.setattr(byte_blocks, "LEAST_ROWS", 1 if request.param == "blocks" else 1 << 30)
    return SHAPES[request.param]


@pytest.fixture(params=[1, 3], autouse=True)
def threads(request, monkeypatch):
    before = weft.get_num_threads()
    weft.set_num_threads(request.param)
    for name in ("SHARED_WORK", "ALWAYS_SHARED_WORK"):
        monkeypatch.setattr(byte_gemm, name, 1 << 8)
    yield request.param
    weft.set_num_threads(before)


def address(array):
    return array.ctypes.data


def aligned(array):
    room = np.zeros(array.nbytes + 64, np.uint8)
    start = -address(room) % 64
    found = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


def in_lines(b, lanes):
    """[groups, terms, columns] as the kernel reads it."""
    groups, terms, columns = b.shape
    whole = np.zeros((groups, -(-columns // lanes) * lanes, -(-terms // 4) * 4), np.int8)
    whole[:, :columns, :terms] = b.swapaxes(1, 2)
    quads = whole.reshape(groups, whole.shape[1] // lanes, lanes, whole.shape[2] // 4, 4)
    return aligned(quads.swapaxes(2, 3))


def product(epilogue, a, b, result, shape, *operands):
    groups, terms, columns = b.shape
    lines = in_lines(b, shape.lanes)
    assert lines.nbytes == groups * -(-columns // shape.lanes) * line_bytes(terms)
    launch = byte_products(epilogue, (len(a), terms, columns), a.strides[0], result.shape[1], groups)
    given = [address(each) if isinstance(each, np.ndarray) else each for each in operands]
    launch.entry(address(result), address(a), address(lines), *given, launch.meta, launch.count)
    return result


def bytes_of(random, sizes, dtype):
    found = random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, sizes).astype(dtype)
    if found.size:
        found.flat[:: max(1, found.size // 3)] = np.iinfo(dtype).min
        found.flat[1 :: max(1, found.size // 3)] = np.iinfo(dtype).max
    return found


@pytest.mark.parametrize(("signed", "groups"), list(itertools.product((False, True), (1, 3))))
def test_sums_are_exact(shape, signed, groups):
    random = np.random.default_rng(0)
    for rows, terms, columns in SIZES:
        a = bytes_of(random, (rows, groups * terms + 5), np.int8 if signed else np.uint8)
        b = bytes_of(random, (groups, terms, columns), np.int8)
        found = product(
            Epilogue(load(0, int32), signed=signed),
            a,
            b,
            np.full((rows, groups * columns), -7, np.int32),
            shape,
        )
        left = a[:, : groups * terms].reshape(rows, groups, terms).swapaxes(0, 1).astype(np.int32)
        wanted = (left + 128 * signed) @ b.astype(np.int32)
        np.testing.assert_array_equal(found, wanted.swapaxes(0, 1).reshape(rows, -1))


def test_nothing_saturates_and_sums_wrap_around(shape):
    terms = 70000
    a, b = np.full((2, terms), 255, np.uint8), np.full((1, terms, 3), -128, np.int8)
    found = product(Epilogue(load(0, int32)), a, b, np.zeros((2, 3), np.int32), shape)
    assert found.ravel().tolist() == [(-128 * 255 * terms + 2**31) % 2**32 - 2**31] * 6


def test_the_epilogue_has_the_bits_of_the_interpreter(shape):
    random = np.random.default_rng(1)
    kinds = (int32, int32, float32, float32, int32)  # the sum, two vectors for columns, and two for rows
    total, offset, scale, part, row = (load(k, kind) for k, kind in enumerate(kinds))
    value = s.cast(total - offset * param(0, int32) - row, float32) * scale * part + param(1, float32)
    result = s.cast(s.cast(s.minimum(s.maximum(s.rint(value), 0.0), 255.0), int32), uint8)
    epilogue = Epilogue(result, (int32, float32), (float32, int32), (int32, float32))
    for rows, terms, columns in SIZES:
        for groups in (1, 2):
            a = bytes_of(random, (rows, groups * terms), np.uint8)
            b = bytes_of(random, (groups, terms, columns), np.int8)
            vectors = [random.integers(-99, 99, groups * columns).astype(np.int32)]
            vectors.append(random.uniform(0, 1e-2, groups * columns).astype(np.float32))
            vectors.append(random.uniform(0, 1, (groups, rows)).astype(np.float32))
            vectors.append(random.integers(-99, 99, (groups, rows)).astype(np.int32))
            room = np.zeros((rows, groups * columns + 1), np.uint8)
            found = product(epilogue, a, b, room, shape, *vectors, 7, 12.5)
            left = a.reshape(rows, groups, terms).swapaxes(0, 1).astype(np.int32)
            sums = (left @ b.astype(np.int32)).swapaxes(0, 1).reshape(rows, -1)
            operands = [sums, *vectors[:2], *(each.T.repeat(columns, 1) for each in vectors[2:])]
            (wanted,) = evaluate([result], operands, [np.int32(7), np.float32(12.5)])
            np.testing.assert_array_equal(found[:, :-1], wanted)
            assert not found[:, -1].any()


def test_shapes_of_processors(monkeypatch):
    for features, wanted in (("+avx512vnni,+avx2", 16), ("+avxvnni,+avx2", 8), ("+avx2", 8), ("+neon", 8)):
        monkeypatch.setattr(host, "cpu", lambda features=features: ("", features))
        found = byte_tiles.find_shape()
        assert found.lanes == wanted
        assert found.quads == ("vpdpbusd" if "vnni" in features else "pmaddwd" if "avx2" in features else "")
        assert found.heights[-1] == 1


def test_blocks_are_for_many_rows_and_for_panels_that_fit():
    pairs = Shape("pmaddwd", 8, (4, 2, 1), 2)
    rows, terms = byte_blocks.LEAST_ROWS, byte_blocks.most_terms(pairs)
    assert byte_blocks.suits_byte_blocks(pairs, rows, terms)
    assert not byte_blocks.suits_byte_blocks(pairs, rows - 1, terms)
    assert not byte_blocks.suits_byte_blocks(pairs, rows, terms + 1)
    assert not byte_blocks.suits_byte_blocks(pairs, rows, 0)
    assert not byte_blocks.suits_byte_blocks(Shape("", 8, (4, 2, 1), 2), rows, terms)
