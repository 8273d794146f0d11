"""Groups whose other ranks do not exist, and what programs send."""

import pytest
import torch
import torch.distributed
from one_rank import outcome
from torch.testing._internal.distributed import fake_pg  # noqa: F401 (registers the backend of PyTorch)

import weft
from weft.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from weft.distributed.traffic import Call, traffic

RANKS = 4096


@pytest.fixture(autouse=True)
def fake_group():
    for library in (torch, weft):
        options = {"store": torch.distributed.HashStore()} if library is torch else {}
        library.distributed.init_process_group("fake", rank=3, world_size=RANKS, **options)
    yield
    for library in (torch, weft):
        library.distributed.destroy_process_group()


def collectives(library):
    """What this rank has after each collective."""
    dist, found = library.distributed, [library.distributed.get_backend(), library.distributed.get_rank()]
    x = library.arange(2.0)
    dist.all_reduce(x)
    dist.broadcast(x, 0)
    gathered = library.zeros(RANKS * 2)
    dist.all_gather_into_tensor(gathered, x)
    piece = library.zeros(1)
    dist.reduce_scatter_tensor(piece, library.arange(float(RANKS)))
    exchanged = library.zeros(RANKS)
    dist.all_to_all_single(exchanged, library.arange(float(RANKS)))
    received = library.zeros(2)
    dist.recv(received, 0)
    dist.send(received, 0)
    dist.barrier()
    group = dist.new_group([1, 3])
    found += [x.tolist(), gathered.sum().item(), piece.item(), exchanged.sum().item(), received.tolist()]
    return [*found, dist.get_rank(group), dist.get_world_size(group)]


def test_collectives_are_pytorchs():
    assert outcome(collectives, weft) == outcome(collectives, torch)


def test_what_a_rank_sends():
    """In the algorithms of the docstring, for groups of 8 ranks."""
    expected = {
        "all_reduce": (6, 1400),
        "broadcast": (6, 1400),
        "all_gather": (3, 700),
        "reduce_scatter": (3, 700),
    }
    expected |= {"all_to_all": (7, 700), "reduce": (3, 700), "send": (1, 800), "barrier": (3, 0)}
    for name, found in expected.items():
        call = Call(name, 8, 0 if name == "barrier" else 800)
        assert (call.messages, call.sent) == found, name


def test_only_what_happens_within_is_noted():
    x = weft.ones(1000)
    weft.distributed.all_reduce(x)
    with traffic() as found:
        weft.distributed.all_reduce(x)
        weft.distributed.all_to_all_single(weft.empty(RANKS), weft.ones(RANKS))
    weft.distributed.all_reduce(x)
    assert found.calls == [Call("all_reduce", RANKS, 4000), Call("all_to_all", RANKS, 4 * RANKS)]
    assert found.messages == 24 + 4095 and found.sent == 2 * 3999 + 4 * 4095
    assert found.seconds(latency=1.0, bandwidth=1.0) == found.messages + found.sent


def test_products_on_a_square_of_ranks_move_rows_and_columns_only():
    """Each rank needs a 64th of both matrices, and has a 4096th of the product."""
    mesh = weft.distributed.init_device_mesh("cpu", (64, 64))
    a, b = (DTensor.from_local(weft.ones(4, 4), mesh, [Shard(0), Shard(1)]) for _ in range(2))
    with traffic() as found:
        product = a @ b
    assert product.placements == (Shard(0), Shard(1)) and product.to_local().shape == (4, 4)
    assert {(call.name, call.ranks, call.nbytes) for call in found.calls} == {("all_gather", 64, 64 * 64)}
    assert len(found.calls) == 2


def test_layers_cut_by_columns_then_by_rows_send_nothing_before_the_sum():
    mesh = weft.distributed.init_device_mesh("cpu", (64, 64), mesh_dim_names=("dp", "tp"))
    x = distribute_tensor(weft.ones(64, 128), mesh, [Shard(0), Replicate()])
    up = distribute_tensor(weft.ones(128, 512), mesh, [Replicate(), Shard(1)])
    down = distribute_tensor(weft.ones(512, 128), mesh, [Replicate(), Shard(0)])
    with traffic() as found:
        hidden = x @ up
        result = hidden @ down
    assert (
        hidden.placements == (Shard(0), Shard(1)) and str(result.placements) == "(Shard(dim=0), Partial(sum))"
    )
    assert not found.calls
