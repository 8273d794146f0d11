"""ShardedTensors of one process: specs, placements, pickles and checkpoints are PyTorch's."""

import io
import itertools
import pickle

import pytest
import torch
import torch.distributed._shard.sharded_tensor
import torch.distributed._shard.sharding_spec
import torch.distributed.checkpoint
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.distributed._shard import sharded_tensor, sharding_spec

THEIRS = torch.distributed._shard


@pytest.fixture
def groups(tmp_path):
    """A group of this process alone in both libraries."""
    for library in (weft, torch):
        dist = library.distributed
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    weft.distributed.destroy_process_group()
    torch.distributed.destroy_process_group()


def outcome(call):
    try:
        return repr(call())
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("text", [
    "rank:0/cpu", "rank:1", "rank:12/cuda:1", "worker/cpu", "worker", "worker/cuda:0", "cpu", "cuda:1", "meta", "rank:x/cpu",
    "rank:0/cpu/1", "/cpu", "rank:-1/cpu", "a:b:c/cpu", "a:1/cpu", "", 3, None,
])  # fmt: skip
def test_remote_devices(text):
    def about(library):
        place = library.distributed._remote_device(text)
        return (
            place,
            place.rank(),
            place.worker_name(),
            place.device(),
            place == library.distributed._remote_device("rank:1"),
        )

    assert outcome(lambda: about(weft)) == outcome(lambda: about(torch))


def test_remote_devices_are_devices_of_processes():
    place = weft.distributed._remote_device(weft.device("cpu"))
    assert (place.rank(), place.device()) == (None, weft.device("cpu"))
    assert hash(weft.distributed._remote_device("rank:1")) == hash(
        weft.distributed._remote_device("rank:1/cpu")
    )
    assert pickle.loads(pickle.dumps(place)) == place


@given(
    sizes=st.lists(st.integers(0, 7), min_size=1, max_size=3),
    dim=st.integers(-4, 3),
    ranks=st.permutations(range(4)),
    count=st.integers(1, 4),
)
def test_chunks(sizes, dim, ranks, count):
    def metadata(specs, tensors, size):
        spec = specs.ChunkShardingSpec(dim, [f"rank:{rank}/cpu" for rank in ranks[:count]])
        found = spec.build_metadata(size, tensors.TensorProperties())
        return found, specs._infer_sharding_spec_from_shards_metadata(found.shards_metadata)

    ours = outcome(lambda: metadata(sharding_spec, sharded_tensor, weft.Size(sizes)))
    assert ours == outcome(lambda: metadata(THEIRS.sharding_spec, THEIRS.sharded_tensor, torch.Size(sizes)))


_box = st.tuples(*[st.integers(0, 3)] * 4)


@given(boxes=st.lists(_box, min_size=1, max_size=5))
def test_shards_that_overlap(boxes):
    def made(specs):
        return specs.EnumerableShardingSpec(
            [
                specs.ShardMetadata([a, b], [c, d], f"rank:{place}/cpu")
                for place, (a, b, c, d) in enumerate(boxes)
            ]
        )

    ours, theirs = (
        outcome(lambda specs=specs: made(specs)) for specs in (sharding_spec, THEIRS.sharding_spec)
    )
    # PyTorch compares neighbours only where one dim is cut, and calls shards without elements equal to others overlapping.
    if all(c and d for _, _, c, d in boxes):
        assert (ours[0] == "ValueError") == (theirs[0] == "ValueError"), (ours, theirs)
    if "ValueError" not in (ours[0], theirs[0]):
        assert ours == theirs


@pytest.mark.parametrize("pieces", [
    [(0, 3), (3, 3)], [(3, 3), (0, 3)], [(0, 3), (3, 2)], [(0, 2), (2, 3)], [(0, 6)], [(0, 2), (2, 2), (4, 1)],
])  # fmt: skip
@pytest.mark.parametrize("dim", [0, 1])
def test_specs_of_shards(pieces, dim):
    def spec(specs):
        shards = []
        for rank, (start, length) in enumerate(pieces):
            offsets, sizes = [0, 0], [6, 6]
            offsets[dim], sizes[dim] = start, length
            shards.append(specs.ShardMetadata(offsets, sizes, f"rank:{rank}/cpu"))
        return specs._infer_sharding_spec_from_shards_metadata(shards)

    assert repr(spec(sharding_spec)) == repr(spec(THEIRS.sharding_spec))


def _grid(library, tensors):
    whole = library.arange(12.0).reshape(3, 4)
    shards = [
        tensors.Shard.from_tensor_and_offsets(whole[i : i + height, j : j + 2].clone(), [i, j], 0)
        for (i, height), j in itertools.product(((0, 1), (1, 2)), (0, 2))
    ]
    return tensors.init_from_local_shards(shards, 3, 4)


def _same(ours, theirs):
    pairs = zip(ours.local_shards(), theirs.local_shards(), strict=True)
    return repr(ours.metadata()) == repr(theirs.metadata()) and all(
        a.tensor.tolist() == b.tensor.tolist() and repr(a.metadata) == repr(b.metadata) for a, b in pairs
    )


def test_pytorch_reads_files_and_the_other_way_round(groups):
    ours, theirs = _grid(weft, sharded_tensor), _grid(torch, THEIRS.sharded_tensor)
    for saving, loading, saved, expected in ((weft, torch, ours, theirs), (torch, weft, theirs, ours)):
        file = io.BytesIO()
        saving.save({"x": saved}, file)
        file.seek(0)
        loaded = loading.load(file, weights_only=False)["x"]
        assert type(loaded).__name__ == "ShardedTensor" and _same(loaded, expected)
        file.seek(0)
        with pytest.raises(pickle.UnpicklingError):
            loading.load(file, weights_only=True)


def test_files_need_the_group_that_saved_them(groups):
    file = io.BytesIO()
    weft.save(_grid(weft, sharded_tensor), file)
    weft.distributed.destroy_process_group()
    file.seek(0)
    try:
        with pytest.raises(RuntimeError, match="init_process_group"):
            weft.load(file, weights_only=False)
        weft.distributed.init_process_group("fake", rank=1, world_size=2)
        file.seek(0)
        with pytest.raises(RuntimeError, match="Local rank at save time was 0, but at load time was 1"):
            weft.load(file, weights_only=False)
    finally:
        if weft.distributed.is_initialized():
            weft.distributed.destroy_process_group()
        weft.distributed.init_process_group("gloo", store=weft.distributed.HashStore(), rank=0, world_size=1)


def test_checkpoints_of_pytorch_and_for_it(groups, tmp_path):
    for folder, saving, loading in ((tmp_path / "a", weft, torch), (tmp_path / "b", torch, weft)):
        tensors = {weft: sharded_tensor, torch: THEIRS.sharded_tensor}
        saving.distributed.checkpoint.save({"grid": _grid(saving, tensors[saving])}, checkpoint_id=folder)
        specs = {weft: sharding_spec, torch: THEIRS.sharding_spec}[loading]
        rows = tensors[loading].zeros(specs.ChunkShardingSpec(0, ["rank:0/cpu"] * 2), 3, 4)
        into = {"grid": rows}
        loading.distributed.checkpoint.load(into, checkpoint_id=folder)
        found = [row for shard in rows.local_shards() for row in shard.tensor.tolist()]
        assert found == weft.arange(12.0).reshape(3, 4).tolist()


def test_saving_while_training_goes_on(groups, tmp_path):
    grid = _grid(weft, sharded_tensor)
    future = weft.distributed.checkpoint.async_save({"grid": grid}, checkpoint_id=tmp_path)
    for shard in grid.local_shards():
        shard.tensor.zero_()
    future.result()
    into = {"grid": weft.zeros(3, 4)}
    weft.distributed.checkpoint.load(into, checkpoint_id=tmp_path)
    assert into["grid"].tolist() == weft.arange(12.0).reshape(3, 4).tolist()


def test_comparisons(groups):
    """PyTorch needs an accelerator for them."""
    a, b = _grid(weft, sharded_tensor), _grid(weft, sharded_tensor)
    assert weft.equal(a, b) and weft.allclose(a, b)
    b.local_shards()[3].tensor[1, 1] += 1e-6
    assert not weft.equal(a, b) and weft.allclose(a, b)
    assert not weft.equal(a, a.to(weft.float64))
    with pytest.raises(TypeError, match="ShardedTensor"):
        weft.equal(a, weft.ones(3, 4))


def test_gathering_keeps_the_dtype(groups):
    """PyTorch sends float32 unless a dtype is given, so that this number loses its last digits."""
    own = sharded_tensor.Shard.from_tensor_and_offsets(weft.tensor([2**40 + 1]), [0], 0)
    out = weft.zeros(1, dtype=weft.int64)
    sharded_tensor.init_from_local_shards([own], 1).gather(0, out)
    assert out.item() == 2**40 + 1


def test_where_the_whole_goes(groups):
    grid = _grid(weft, sharded_tensor)
    with pytest.raises(ValueError, match="must be specified on destination rank 0"):
        grid.gather()
    with pytest.raises(ValueError, match="but should be"):
        grid.gather(0, weft.zeros(2, 2))
    with pytest.raises(ValueError, match="must NOT be specified"):
        grid.gather(1, weft.zeros(3, 4))
    with pytest.warns(FutureWarning, match="enforce_dtype"):
        grid.gather(0, weft.zeros(3, 4), enforce_dtype=True)


def test_references_to_shards_need_rpc(groups):
    spec = sharding_spec.ChunkShardingSpec(0, ["rank:0/cpu"])
    with pytest.raises(NotImplementedError, match="rpc"):
        sharded_tensor.zeros(spec, 2, init_rrefs=True)


def test_modules_with_sharded_parameters_are_converted(groups):
    layer = weft.nn.Linear(3, 2)
    weft.distributed._shard.shard_parameter(
        layer, "weight", sharding_spec.ChunkShardingSpec(0, ["rank:0/cpu"])
    )
    layer.double()
    own = layer.weight.local_tensor()
    assert own.dtype == layer.bias.dtype == weft.float64 and own.requires_grad and own.is_leaf


def test_each_call_says_that_dtensors_are_preferred(groups):
    grid = _grid(weft, sharded_tensor)
    with pytest.warns(FutureWarning, match="DTensor") as found:
        grid.dim()
    assert found[0].filename == __file__
