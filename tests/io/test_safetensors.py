"""safetensors files, against the library and PyTorch."""

import json
import struct

import numpy as np
import pytest
import safetensors
import safetensors.torch as theirs
import torch

import weft
from weft.io import safetensors as mine

DTYPES = (
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 "
    "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz"
).split()


def content(library):
    """Tensors of every dtype and of several shapes."""
    found = {
        name: library.arange(6).to(library.uint8).to(getattr(library, name)).view(2, 3) for name in DTYPES
    }
    found |= {f"empty {name}": tensor[:, :0] for name, tensor in found.items() if name.startswith("u")}
    found |= {'a "b"\n\\ü\x01': library.tensor(3.0), "z": library.tensor([True]), "": library.ones(1, 1, 1)}
    return found


def same(a, b):
    """Whether a weft tensor is a PyTorch tensor, to the bit."""
    return (
        str(a.dtype) == str(b.dtype)
        and tuple(a.shape) == tuple(b.shape)
        and bytes(a.contiguous().flatten().view(weft.uint8).tolist())
        == bytes(b.contiguous().flatten().view(torch.uint8).tolist())
    )


@pytest.mark.parametrize("metadata", [None, {}, {"format": "pt"}])
def test_the_very_bytes_of_the_library(metadata):
    assert mine.save(content(weft), metadata) == theirs.save(content(torch), metadata)


def test_a_file_of_nothing():
    # With metadata {} the library writes a header that is no JSON.
    assert mine.save({}) == theirs.save({})
    assert mine.load(mine.save({}, {})) == {}


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_files_of_the_library_are_read(tmp_path, backend):
    theirs.save_file(content(torch), tmp_path / "t")
    loaded, expected = mine.load_file(tmp_path / "t", backend=backend), theirs.load_file(tmp_path / "t")
    assert loaded.keys() == expected.keys()
    assert all(same(loaded[name], expected[name]) for name in expected)
    from_bytes = mine.load((tmp_path / "t").read_bytes())
    assert all(same(from_bytes[name], expected[name]) for name in expected)


def test_the_library_reads_files_of_ours(tmp_path):
    mine.save_file(content(weft), tmp_path / "t", {"a": "b", "c": "d"})
    loaded = theirs.load_file(tmp_path / "t")
    assert all(same(tensor, loaded[name]) for name, tensor in content(weft).items())
    with safetensors.safe_open(tmp_path / "t", "pt") as file:
        assert file.metadata() == {"a": "b", "c": "d"}


def test_opened_files_answer_as_the_librarys(tmp_path):
    theirs.save_file(content(torch), tmp_path / "t", {"a": "b"})
    with safetensors.safe_open(tmp_path / "t", "pt") as a, mine.safe_open(tmp_path / "t", "pt") as b:
        assert a.keys() == b.keys()
        assert a.metadata() == b.metadata()
        # The library's own order differs from run to run among tensors of no bytes.
        assert [n for n in a.offset_keys() if "empty" not in n] == [
            n for n in b.offset_keys() if "empty" not in n
        ]
        for name in a.keys():
            one, other = a.get_slice(name), b.get_slice(name)
            assert (one.get_shape(), one.get_dtype()) == (other.get_shape(), other.get_dtype())
        for index in (0, slice(1, None), (slice(None), slice(0, 2)), (..., 1)):
            assert same(b.get_slice("bfloat16")[index], a.get_slice("bfloat16")[index])
        with pytest.raises(KeyError, match="does not contain tensor nothing"):
            b.get_tensor("nothing")


def test_mapped_tensors_can_be_written_and_the_file_stays(tmp_path):
    mine.save_file({"a": weft.zeros(3)}, tmp_path / "t")
    before = (tmp_path / "t").read_bytes()
    mine.load_file(tmp_path / "t")["a"].add_(1)
    assert (tmp_path / "t").read_bytes() == before
    # A new file does not pull the memory from under tensors of the old one.
    old = mine.load_file(tmp_path / "t")["a"]
    mine.save_file({}, tmp_path / "t")
    assert old.tolist() == [0, 0, 0]


def test_tensors_that_lie_unaligned_are_copied(tmp_path):
    header = b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}} '
    (tmp_path / "t").write_bytes(struct.pack("<Q", len(header)) + header + np.ones(2, np.float32).tobytes())
    tensor = mine.load_file(tmp_path / "t")["a"]
    assert tensor.data_ptr() % 4 == 0 and tensor.tolist() == [1, 1]


# ---- Models ----------------------------------------------------------------------------------------------------------


def test_many_dims():
    tensor = weft.ones(65 * (1,))
    assert mine.load(mine.save({"a": tensor}))["a"].shape == tensor.shape


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_an_open_file_stays_the_one_that_was_opened(tmp_path, backend):
    mine.save_file({"a": weft.ones(5), "b": weft.zeros(5)}, tmp_path / "t")
    with mine.safe_open(tmp_path / "t", backend=backend) as file:
        mine.save_file({"c": weft.full((3,), 7.0)}, tmp_path / "t")
        assert file.get_tensor("a").sum() == 5 and file.get_slice("b")[1:].tolist() == [0, 0, 0, 0]


def tied(library):
    library.manual_seed(0)
    model = library.nn.Sequential(library.nn.Linear(3, 3), library.nn.ReLU(), library.nn.Linear(3, 3))
    model[2].weight = model[0].weight
    return model


def test_models_with_tied_weights(tmp_path):
    mine.save_model(tied(weft), tmp_path / "mine")
    theirs.save_model(tied(torch), tmp_path / "theirs")
    assert (tmp_path / "mine").read_bytes() == (tmp_path / "theirs").read_bytes()
    for library, functions in ((weft, mine), (torch, theirs)):
        model = tied(library)
        with library.no_grad():
            model[0].weight.zero_()
        assert functions.load_model(model, tmp_path / "mine") == (set(), [])
        assert model[2].weight.tolist() == tied(weft)[0].weight.tolist()


def test_models_with_several_parts_of_one_tensor(tmp_path):
    """The library compares a part with the one before it only, so it refuses this model."""
    whole, model = weft.arange(10.0), weft.nn.Module()
    for name, part in {"a": whole, "b": whole[1:2], "c": whole[5:6], "d": weft.ones(1)}.items():
        model.register_buffer(name, part)
    mine.save_model(model, tmp_path / "t")
    assert sorted(mine.load_file(tmp_path / "t")) == ["a", "d"]
    assert mine.load_model(model, tmp_path / "t") == (set(), [])


def test_models_that_do_not_fit(tmp_path):
    found = []
    for library, functions in ((weft, mine), (torch, theirs)):
        functions.save_file({"0.weight": library.ones(3, 3), "extra": library.ones(1)}, tmp_path / "t")
        with pytest.raises(RuntimeError) as error:
            functions.load_model(tied(library), tmp_path / "t")
        missing, unexpected = functions.load_model(tied(library), tmp_path / "t", strict=False)
        found.append((str(error.value), missing, unexpected))
    assert found[0] == found[1]


# ---- What is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tensors, error",
    [
        (lambda library: [library.ones(1)], ValueError),
        (lambda library: {"a": 1}, ValueError),
        (lambda library: {"a": library.ones(2, 3).t()}, ValueError),
        (lambda library: dict.fromkeys("ab", library.ones(2)), RuntimeError),
        (lambda library: (lambda t: {"a": t[:3], "b": t[2:]})(library.ones(5)), RuntimeError),
    ],
)
def test_what_cannot_be_saved_raises_as_in_the_library(tmp_path, tensors, error):
    for library, functions in ((weft, mine), (torch, theirs)):
        with pytest.raises(error):
            functions.save_file(tensors(library), tmp_path / "t")
    assert not list(tmp_path.iterdir())


def test_parts_of_one_tensor_that_do_not_overlap_are_saved():
    whole = weft.arange(4)
    assert mine.load(mine.save({"a": whole[:2], "b": whole[2:]}))["b"].tolist() == [2, 3]


@pytest.mark.parametrize("tensor", [weft.ones(1, dtype=weft.complex128), weft.ones(1, device="meta")])
def test_tensors_without_a_place_in_the_format(tensor):
    with pytest.raises(ValueError, match="tensor 'a'"):
        mine.save({"a": tensor})


GOOD = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
BAD = {
    "too short": b"\0" * 7,
    "header beyond the end": struct.pack("<Q", 2**63) + b"{}",
    "no brace": (b' {"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', 8),
    "no JSON": (b'{"a":', 0),
    "no UTF-8": (b'{"\xff":1}', 0),
    "UTF-16": (json.dumps({"a": GOOD}).encode("utf-16-le"), 8),
    "deep": (b'{"a":' + b"[" * 100_000, 0),
    "a name twice": (
        b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
        b'"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
        8,
    ),
    "a byte too many": ({"a": GOOD}, 9),
    "a byte too few": ({"a": GOOD}, 7),
    "overlap": ({"a": GOOD, "b": GOOD}, 8),
    "hole": ({"a": GOOD | {"data_offsets": [4, 12]}}, 12),
    "backwards": ({"a": GOOD | {"data_offsets": [8, 0]}}, 8),
    "overflow": ({"a": GOOD | {"shape": [2**62, 4, 2**3]}}, 8),
    "negative": ({"a": GOOD | {"shape": [-1, -2]}}, 8),
    "truth": ({"a": GOOD | {"shape": [True, 2]}}, 8),
    "fraction": ({"a": GOOD | {"shape": [2.0]}}, 8),
    "too large for nothing": ({"a": GOOD | {"shape": [2**62, 2**62, 0], "data_offsets": [0, 0]}}, 0),
    "unknown dtype": ({"a": GOOD | {"dtype": "F33"}}, 8),
    "no dtype": ({"a": {"shape": [2], "data_offsets": [0, 8]}}, 8),
    "no object": ({"a": 1}, 0),
    "metadata of numbers": ({"__metadata__": {"a": 1}, "a": GOOD}, 8),
    "metadata of nothing": ({"__metadata__": [1], "a": GOOD}, 8),
    "a million dims": (
        b'{"a":{"dtype":"F32","shape":['
        + b",".join([b"9223372036854775807"] * 10**6)
        + b'],"data_offsets":[0,8]}}',
        8,
    ),
    "not a number": (b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":NaN}}', 8),
    "half of a pair": (b'{"\\ud800":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', 8),
    "metadata in a list": ({"__metadata__": [["a", "b"]], "a": GOOD}, 8),
    "huge number": (b'{"a":{"dtype":"F32","shape":[' + b"9" * 5000 + b'],"data_offsets":[0,8]}}', 8),
    "less than a byte": ({"a": GOOD | {"dtype": "F4", "shape": [16]}}, 8),
}


@pytest.mark.parametrize("name", BAD)
def test_damaged_files_are_refused(tmp_path, name):
    bad = BAD[name]
    if isinstance(bad, tuple):
        header, nbytes = bad
        header = header if isinstance(header, bytes) else json.dumps(header).encode()
        bad = struct.pack("<Q", len(header)) + header + bytes(nbytes)
    (tmp_path / "t").write_bytes(bad)
    with pytest.raises(RuntimeError, match=str(tmp_path / "t") if name != "less than a byte" else "F4"):
        mine.load_file(tmp_path / "t")
    with pytest.raises(RuntimeError):
        mine.load(bad)


# ---- Scripts ---------------------------------------------------------------------------------------------------------

SCRIPT = """
import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model

tensors = {
    str(dtype): torch.arange(6).to(torch.uint8).to(dtype).view(2, 3)
    for dtype in (torch.bool, torch.int64, torch.uint16, torch.float32, torch.bfloat16, torch.float8_e4m3fn)
}
save_file(tensors, "t.safetensors", metadata={"format": "pt"})
for name, tensor in sorted(load_file("t.safetensors").items()):
    print(name, tensor)
print(sorted(load(save(tensors))))
with safe_open("t.safetensors", framework="pt", device="cpu") as file:
    print(file.keys(), file.metadata(), file.get_slice("torch.bfloat16")[:, 1:], file.get_tensor("torch.int64"))
model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
model[1].weight = model[0].weight
save_model(model, "m.safetensors")
print(load_model(model, "m.safetensors"))
try:
    save_file({"a": tensors["torch.int64"], "b": tensors["torch.int64"]}, "u.safetensors")
except RuntimeError as error:
    print("share memory" in str(error))
"""


def test_the_library_itself_works_on_weft(run, run_weft, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    expected = run("script.py")
    assert expected.returncode == 0, expected.stderr
    found = run_weft("run", "script.py")
    assert (found.returncode, found.stdout) == (0, expected.stdout), found.stderr


@pytest.mark.parametrize("shape", [[1], [3], [2, 2], [0]])
def test_a_shape_must_take_all_bytes_of_its_tensor(shape):
    header = json.dumps({"t": {"dtype": "F32", "shape": shape, "data_offsets": [0, 8]}}).encode()
    with pytest.raises(RuntimeError, match="does not take 8 bytes"):
        mine.load(struct.pack("<Q", len(header)) + header + bytes(8))
