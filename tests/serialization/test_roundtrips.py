"""Files between PyTorch and weft."""

import io
import struct
import warnings
import zipfile
from pathlib import Path

import pytest
import torch

import weft
from weft.core.layout import Layout
from weft.core.layout_calls import Rules
from weft.core.layout_spec import layout_spec
from weft.core.tensor import make
from weft.layouts.parts import PartsStorage, values_of
from weft.serialization.names import find_torch, torch_name

TWIN = Path(__file__).with_name("twin.py")


@pytest.fixture
def twin(run):
    """Runs twin.py in a process of its own, where either torch or weft is imported."""

    def twin(*arguments):
        done = run(TWIN, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return twin


@pytest.mark.parametrize("writer, readers", [("torch", ["weft"]), ("weft", ["torch", "weft"])])
def test_every_case_in_every_format(twin, tmp_path, writer, readers):
    twin(writer, "save", tmp_path)
    assert len(list(tmp_path.glob("layouts*"))) > 250
    for reader in readers:
        assert twin(reader, "check", tmp_path) == ""


# ---- The very bytes --------------------------------------------------------------------------------------------------


def content(library):
    whole = library.arange(12.0).reshape(3, 4)
    noted = library.ones(2)
    noted.note = 1
    return {
        "views": [whole, whole[1], whole.t(), library.ones(2, 0, 3), library.tensor(3.0)],
        "dtypes": [
            library.ones(2, dtype=dtype) for dtype in (library.uint16, library.bfloat16, library.bool)
        ],
        "pending": library.tensor([1 + 2j]).conj(),
        "objects": [
            library.Size([2, 3]),
            library.float32,
            library.device("cuda:1"),
            library.strided,
            b"ab",
            2**70,
        ],
        "meta": library.ones(2, device="meta"),
        "parameters": [library.nn.Parameter(library.ones(2)), noted],
        "state": library.nn.Linear(2, 3).state_dict(),
        "storage": whole.untyped_storage().clone(),
    }


@pytest.mark.parametrize("name", ["model.pt", "a.b c.tar", "none"])
def test_archives_have_the_same_layout_and_the_same_pickle(tmp_path, name):
    theirs, mine = tmp_path / "torch" / name, tmp_path / "weft" / name
    for path, library in ((theirs, torch), (mine, weft)):
        path.parent.mkdir()
        library.manual_seed(0)
        library.save(content(library), path)
    with zipfile.ZipFile(theirs) as a, zipfile.ZipFile(mine) as b:
        for one, other in zip(a.infolist(), b.infolist(), strict=True):
            assert one.filename == other.filename
            if not one.filename.endswith("serialization_id"):
                assert a.read(one) == b.read(other), one.filename
    # Headers, padding, descriptors and directory: all bytes but the name of the content and its checksum.
    one, other = theirs.read_bytes(), mine.read_bytes()
    assert len(one) == len(other)
    assert sum(x != y for x, y in zip(one, other)) <= 40 + 2 * 4


@pytest.mark.parametrize("size", [2**32 - 1, 2**32 + 5])
def test_archives_beyond_4_gigabytes(tmp_path, size):
    """Sparse files: the fields of zip64, for a large record and for those that lie behind it."""
    with torch.serialization.skip_data():
        torch.save([torch.empty(size, dtype=torch.uint8), torch.ones(3)], tmp_path / "t.pt")
    with weft.serialization.skip_data():
        weft.save([weft.empty(size, dtype=weft.uint8), weft.ones(3)], tmp_path / "w.pt")
    one, other = ((tmp_path / name).open("rb") for name in ("t.pt", "w.pt"))
    with one, other:
        assert one.seek(0, 2) == other.seek(0, 2)
        for place in (0, size):
            one.seek(place), other.seek(place)
            pair = one.read(10_000).replace(b"t/", b"w/"), other.read(10_000)
            assert sum(x != y for x, y in zip(*pair, strict=True)) <= 40 + 2 * 4
    assert [t.numel() for t in weft.load(tmp_path / "t.pt", mmap=True)] == [size, 3]
    assert [t.numel() for t in torch.load(tmp_path / "w.pt", mmap=True)] == [size, 3]


# ---- Modules ---------------------------------------------------------------------------------------------------------

MODEL = """
import sys, warnings, importlib
warnings.simplefilter("ignore")
library, path, action = sys.argv[1:]
torch = importlib.import_module(library)
if action == "save":
    torch.manual_seed(0)
    layers = torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.TransformerEncoderLayer(4, 2, 8, 0.0), torch.nn.GELU()
    torch.save(torch.nn.Sequential(*layers).eval(), path)
model = torch.load(path, weights_only=False)
print([round(value, 4) for value in model(torch.arange(8.0).reshape(2, 4)).flatten().tolist()], model.training)
"""


@pytest.mark.parametrize("writer, reader", [("torch", "weft"), ("weft", "torch"), ("weft", "weft")])
def test_whole_modules(run, tmp_path, writer, reader):
    written = run("-c", MODEL, writer, tmp_path / "m.pt", "save")
    read = run("-c", MODEL, reader, tmp_path / "m.pt", "load")
    assert written.stdout and written.stdout == read.stdout, written.stderr + read.stderr


@pytest.mark.parametrize("package", ["nn", "optim", "optim.lr_scheduler"])
def test_classes_have_the_names_of_pytorch(package):
    theirs, mine = torch, weft
    for part in package.split("."):
        theirs, mine = getattr(theirs, part), getattr(mine, part)
    classes = [
        name for name, found in vars(theirs).items() if isinstance(found, type) and hasattr(mine, name)
    ]
    assert len(classes) > 5
    for name in classes:
        their, my = getattr(theirs, name), getattr(mine, name)
        if isinstance(my, type):
            assert torch_name(my) == (their.__module__, their.__qualname__)
            assert find_torch(their.__module__, their.__qualname__) is my


def test_functions_have_the_names_under_which_users_find_them():
    assert torch_name(weft.nn.functional.gelu) == ("torch.nn.functional", "gelu")
    assert torch_name(weft.sin) == ("torch", "sin")
    assert torch_name(len) is None


# ---- Other bytes -----------------------------------------------------------------------------------------------------


def test_files_that_python_wrote_with_its_own_zip_module():
    """What is not aligned is copied out of the mapping; byte order and version say what they say."""
    file = io.BytesIO()
    torch.save({"a": torch.arange(5.0)}, file)
    plain = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(plain, "w") as new:
        for name in reversed(old.namelist()):
            new.writestr(name.replace("archive/", "other/"), old.read(name))
    plain.seek(0)
    assert weft.load(plain)["a"].tolist() == [0, 1, 2, 3, 4]


def test_big_endian_files():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        with zipfile.ZipFile(_saved(weft.tensor([1.0, 2.0]))) as old:
            for name in old.namelist():
                values = {"byteorder": b"big", "0": struct.pack(">2f", 1.0, 2.0)}
                archive.writestr(name, values.get(name.rpartition("/")[2], old.read(name)))
    file.seek(0)
    assert weft.load(file).tolist() == torch.load(io.BytesIO(file.getvalue())).tolist() == [1, 2]


def test_byte_order_of_files_that_do_not_say_it():
    content = _saved(weft.tensor([256], dtype=weft.int16), _disable_byteorder_record=True).getvalue()
    assert weft.load(io.BytesIO(content)).item() == 256
    weft.serialization.set_default_load_endianness(weft.serialization.LoadEndianness.BIG)
    try:
        assert weft.load(io.BytesIO(content)).item() == 1
    finally:
        weft.serialization.set_default_load_endianness(None)


def test_objects_follow_each_other_in_one_stream():
    for writer, reader in ((torch, weft), (weft, torch), (weft, weft)):
        file = io.BytesIO()
        for value in (1.0, 2.0):
            writer.save(writer.tensor([value]), file, _use_new_zipfile_serialization=False)
        file.seek(0)
        assert [reader.load(file).item(), reader.load(file).item()] == [1, 2]


def test_numpy_values_need_permission():
    import numpy as np

    file = io.BytesIO()
    torch.save({"array": np.arange(3.0), "number": np.float32(1.5)}, file)
    file.seek(0)
    needed = weft.serialization.get_unsafe_globals_in_checkpoint(file)
    assert sorted(needed) == [
        "numpy._core.multiarray._reconstruct",
        "numpy._core.multiarray.scalar",
        "numpy.dtype",
        "numpy.ndarray",
    ]
    file.seek(0)
    multiarray = np._core.multiarray
    allowed = [
        (multiarray._reconstruct, "numpy._core.multiarray._reconstruct"),
        (multiarray.scalar, "numpy._core.multiarray.scalar"),
        *(np.ndarray, np.dtype, type(np.dtype("f8")), type(np.dtype("f4"))),
    ]
    with weft.serialization.safe_globals(allowed):
        found = weft.load(file)
    assert found["array"].tolist() == [0, 1, 2] and found["number"] == 1.5


class Special(weft.Tensor):
    __slots__ = ("slot",)


def test_subclasses_and_attributes():
    special = weft.ones(2).as_subclass(Special)
    special.note, special.slot = "mine", 2
    with weft.serialization.safe_globals([Special]):
        found = weft.load(_saved(special))
    assert type(found) is Special and found.note == "mine" and found.slot == 2 and found.tolist() == [1, 1]


class Short(weft.Tensor):
    def __reduce_ex__(self, protocol):
        return Short.of, (self.tolist(),)

    @staticmethod
    def of(values):
        return weft.tensor(values).as_subclass(Short)


def test_a_subclass_decides_how_it_is_saved():
    file = _saved([weft.ones(2).as_subclass(Short), weft.nn.LazyLinear(3).weight])
    with pytest.warns(UserWarning, match="weights_only"):
        short, uninitialized = weft.load(file, weights_only=False)
    assert type(short) is Short and short.tolist() == [1, 1]
    assert type(uninitialized) is weft.nn.UninitializedParameter


def test_hooks_are_not_saved():
    tensor = weft.ones(2, requires_grad=True)
    tensor.register_hook(lambda grad: grad)
    with pytest.warns(UserWarning, match="backward hook .* will not be serialized"):
        weft.save(tensor, io.BytesIO())


def test_plain_pickles_are_as_before():
    import pickle

    whole = weft.arange(4.0)
    first, second = pickle.loads(pickle.dumps((whole, whole[1:])))
    first[1] = 9
    assert second[0] == 9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert weft.load(_saved(whole)).tolist() == [0, 1, 2, 3]


def _saved(value, **options):
    file = io.BytesIO()
    weft.save(value, file, **options)
    file.seek(0)
    return file


def test_a_layout_that_pytorchs_files_lack_is_saved_by_its_own_rule():
    rules = Rules("constant", "write x.to_dense()")
    value = weft.tensor(2.0)
    spec = layout_spec((2, 3), (3, 1), value.dtype, value.device, Layout("constant"), rules)
    x = make(PartsStorage((value,), spec), 0, spec)
    with pytest.raises(NotImplementedError, match="__reduce_ex__ is not implemented for constant tensors"):
        weft.save(x, io.BytesIO())
    rules.rule("__reduce_ex__")(lambda self, protocol: (weft.full, (self.shape, values_of(self).item())))
    file = io.BytesIO()
    weft.save(x, file)
    file.seek(0)
    assert weft.load(file, weights_only=False).tolist() == [[2.0] * 3] * 2
