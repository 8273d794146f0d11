import os

import numpy as np
import pytest

import weft
from weft.utils.data._utils import transport


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path)


def sent(batch, folder):
    return transport.unpack(transport.pack(batch, folder))


@pytest.mark.parametrize("with_folder", [True, False])
@pytest.mark.parametrize("size", [0, 3, 70_000])
def test_values_layouts_and_dtypes_arrive(folder, with_folder, size):
    base = weft.arange(size * 2).reshape(size, 2)
    batch = {
        "t": base.t(),
        "bfloat16": base.to(weft.bfloat16),
        "complex": weft.complex(base.double(), base.double()).conj(),
        "array": base.numpy()[:, 1],
        "rest": [1, "a", None, weft.Size([2]), weft.float16, weft.device("cpu")],
    }
    result = sent(batch, folder if with_folder else None)
    assert result["rest"] == batch["rest"]
    for name in ("t", "bfloat16", "complex"):
        got, expected = result[name], batch[name]
        assert got.dtype == expected.dtype and got.stride() == expected.stride()
        assert got.is_conj() == expected.is_conj()
        assert got.equal(expected)
    np.testing.assert_array_equal(result["array"], batch["array"])
    assert os.listdir(folder) == []


def test_shared_memory_stays_shared(folder):
    whole = weft.arange(100_000)
    first, second = sent([whole, whole[50_000:]], folder)
    first[60_000] = -1
    assert second[10_000].item() == -1


def test_little_of_a_large_tensor_goes_alone(folder):
    dataset = weft.arange(10_000_000).reshape(1000, -1)
    message = transport.pack(dataset[7], folder)
    written = sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))
    assert len(message) + written < 100_000
    assert transport.unpack(message).equal(dataset[7])


def test_parameters_and_leaves_keep_what_they_are(folder):
    leaf = weft.ones(3, requires_grad=True)
    assert sent(leaf, folder).requires_grad
    tagged = weft.ones(3)
    tagged.tag = "x"
    assert sent(tagged, folder).tag == "x"


def test_a_full_file_system_is_got_around(folder, monkeypatch):
    def write(path, buffers):
        open(path, "x").close()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(transport, "_write", write)
    batch = weft.arange(100_000)
    assert sent(batch, folder).equal(batch)
    assert os.listdir(folder) == []


def test_too_many_mappings_are_got_around(folder, monkeypatch):
    def mapped(descriptor, size):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(transport, "_mapped", mapped)
    batch = weft.arange(100_000)
    assert sent(batch, folder).equal(batch)


def test_the_memory_is_ours_to_write_and_to_resize(folder):
    result = sent(weft.arange(100_000), folder)
    result.mul_(2)
    result.resize_(200_000)
    assert result[:100_000].equal(weft.arange(100_000) * 2)
    assert result.data_ptr() % 64 == 0
    array = sent(np.zeros(100_000), folder)
    array += 1
    assert array.sum() == 100_000


def test_memory_is_unmapped_with_its_last_tensor(folder):
    def mapped():
        with open("/proc/self/maps") as file:
            return sum(folder in line for line in file)

    if not os.path.exists("/proc/self/maps"):
        pytest.skip("this system does not list mappings")
    result = sent([weft.arange(100_000), np.zeros(100_000)], folder)
    assert mapped() == 1
    tail = result[0][-1:]
    del result
    assert mapped() == 1 and tail.item() == 99_999
    del tail
    assert mapped() == 0


def test_buffers_of_odd_sizes_do_not_run_into_each_other(folder):
    batch = [weft.arange(n).to(weft.int8) for n in (70_001, 65_599, 100_003)]
    for mine, found in zip(batch, sent(batch, folder), strict=True):
        assert found.equal(mine) and found.data_ptr() % 64 == 0
