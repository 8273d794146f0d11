import collections
import importlib

import pytest
import torch
from one_rank import groups, same

import weft
import weft.nn as nn
from weft.distributed._reducer import grouped, grouped_by_place
from weft.nn.parallel import DistributedDataParallel

Pair = collections.namedtuple("Pair", "a b")


def test_data_parallel_without_devices_is_the_module():
    ours, theirs = nn.DataParallel(nn.Linear(2, 1)), torch.nn.DataParallel(torch.nn.Linear(2, 1))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert ours(weft.ones(3, 2)).equal(ours.module(weft.ones(3, 2)))


@pytest.mark.parametrize(
    "inputs", [(1, "a"), [1, [2]], {"a": 1, "b": (2,)}, {}, (), Pair(1, 2), None, [[], {"a": ()}]], ids=repr
)
def test_scatter_of_other_objects(inputs):
    for targets in ([], [0], [0, 1]):
        same(lambda library, targets=targets: library.nn.parallel.scatter(inputs, targets))


def test_scatter_of_arguments():
    for arguments in (((1,), {"a": 2}, [0]), ((), None, [0, 1]), ((1, 2), {}, [0, 1]), ((), {"a": 1}, [0])):
        same(lambda library, given=arguments: library.nn.parallel.scatter_gather.scatter_kwargs(*given))


def test_gather():
    for outputs in ([None, None], [{"a": None}, {"a": None}], [{"a": None}, {}], [(None,), (None,)], [1, 2]):
        same(lambda library, outputs=outputs: library.nn.parallel.gather(outputs, 0))
    same(lambda library: library.nn.parallel.gather([library.ones(2)], 0))


def test_the_steps_of_data_parallelism_refuse_tensors_of_the_cpu():
    def steps(library):
        return importlib.import_module(f"{library.__name__}.nn.parallel._functions")

    same(lambda library: steps(library).Broadcast.apply([0]))
    same(lambda library: steps(library).Broadcast.apply([0], library.ones(2)))
    same(lambda library: steps(library).Gather.apply(0, 0, library.ones(2)))
    for call in (lambda: steps(weft).Scatter.apply([0], None, 0, weft.ones(2)),):
        with pytest.raises(RuntimeError, match="no GPU is available"):
            call()
    with pytest.raises(AssertionError, match="input 0 is on CPU"):
        steps(weft).ReduceAddCoalesced.apply(0, 1, weft.ones(2))


def test_what_needs_gpus():
    module, x = weft.nn.Linear(2, 1), weft.ones(1, 2)
    parallel = weft.nn.parallel
    for call in (
        lambda: parallel.data_parallel(module, x),
        lambda: parallel.parallel_apply([module], [x]),
        lambda: parallel.scatter(x, [0]),
        lambda: parallel.comm.broadcast(x, [0]),
    ):
        with pytest.raises(RuntimeError):
            call()
    for call in (lambda: parallel.replicate(module, [0]), lambda: parallel.comm.reduce_add([x])):
        with pytest.raises(AssertionError):
            call()
    with pytest.raises(ValueError, match="cpu"):
        parallel.replicate(module, ["cpu"])


def train(library):
    """What a model learns in two steps, with accumulation in the first."""
    library.manual_seed(0)
    model = library.nn.parallel.DistributedDataParallel(
        library.nn.Sequential(library.nn.Linear(2, 3), library.nn.BatchNorm1d(3), library.nn.Linear(3, 1))
    )
    optimizer = library.optim.SGD(model.parameters(), 0.5)
    x = library.arange(8.0).reshape(4, 2)
    with model.no_sync():
        model(x).square().sum().backward()
    with model.join():
        model(x).sum().backward()
    optimizer.step()
    return [(name, value.detach().tolist()) for name, value in model.state_dict().items()]


def test_one_rank_trains_as_in_pytorch():
    with groups():
        ours, theirs = train(weft), train(torch)
        assert [name for name, _ in ours] == [name for name, _ in theirs]
        for (_, mine), (_, other) in zip(ours, theirs):
            torch.testing.assert_close(torch.tensor(mine), torch.tensor(other))


def attributes(library):
    model = library.nn.parallel.DistributedDataParallel(library.nn.Linear(2, 1))
    return (
        [model.dim, model.device_ids, model.output_device, model.device, model.broadcast_buffers],
        [model.bucket_bytes_cap, model.find_unused_parameters, model.require_backward_grad_sync],
        [
            model.is_multi_device_module,
            model.will_sync_module_buffers(),
            model.join_device,
            model.modules_buffers,
        ],
        model.process_group is library.distributed.group.WORLD,
        model.eval().module.training,
        model,
    )


def test_attributes_and_refusals():
    same(lambda library: library.nn.parallel.DistributedDataParallel(library.nn.Linear(2, 1)))
    with groups():
        same(attributes)
        for make in (
            lambda library: library.nn.ReLU(),
            lambda library: library.nn.Linear(2, 1).requires_grad_(False),
        ):
            same(lambda library, make=make: library.nn.parallel.DistributedDataParallel(make(library)))
        same(
            lambda library: library.nn.parallel.DistributedDataParallel(
                library.nn.Linear(2, 1), device_ids=[0]
            )
        )


class Answer:
    """A Future as communication hooks return it."""

    def __init__(self, value):
        self.value = value

    def wait(self):
        return self.value


def test_communication_hook():
    seen = []

    def triple(state, bucket):
        shapes = [tuple(each.shape) for each in bucket.parameters()]
        seen.append((state, bucket.index(), bucket.is_last(), shapes, len(bucket.buffer())))
        return Answer(bucket.buffer() * 3)

    with groups():
        model = DistributedDataParallel(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)))
        model.register_comm_hook("state", triple)
        model(weft.ones(1, 2)).sum().backward()
        # The same bucket as in PyTorch, which has all four parameters.
        assert seen == [("state", 0, True, [(2, 2), (2,), (1, 2), (1,)], 9)]
        assert model.module[1].bias.grad.tolist() == [3]
        with model.no_sync():
            model(weft.ones(1, 2)).sum().backward()
        assert len(seen) == 1 and model.module[1].bias.grad.tolist() == [4]
        model(weft.ones(1, 2)).sum().backward()
        assert len(seen) == 2 and model.module[1].bias.grad.tolist() == [15]
        with pytest.raises(RuntimeError, match="only be called once"):
            model.register_comm_hook("state", triple)
        with pytest.raises(TypeError):
            DistributedDataParallel(nn.Linear(1, 1)).register_comm_hook(None, 3)


def test_buckets_have_limits():
    model = nn.Sequential(*(nn.Linear(512, 512) for _ in range(3)))
    buckets = grouped_by_place(list(model.parameters()), [1 << 20, 2 << 20])
    sizes = [sum(each.numel() * 4 for each in bucket) for bucket in buckets]
    assert any(each is model[2].bias for each in buckets[0])
    assert any(each is model[0].weight for each in buckets[-1])
    assert len(sizes) > 1 and sum(sizes) == 3 * 4 * (512 * 512 + 512)


def test_buckets_have_one_dtype():
    first, second, third = weft.zeros(2), weft.zeros(2, dtype=weft.float64), weft.zeros(1, dtype=weft.float64)
    assert [list(map(id, each)) for each in grouped([first, second, third], [100])] == [
        [id(first)],
        [id(second), id(third)],
    ]


def test_parameters_can_be_left_to_each_process():
    seen = []

    def note(state, bucket):
        seen.extend(tuple(each.shape) for each in bucket.parameters())
        return Answer(bucket.buffer())

    with groups():
        layers = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(layers, ["0.weight"])
        model = DistributedDataParallel(layers)
        model.register_comm_hook(None, note)
        model(weft.ones(1, 2)).sum().backward()
    assert sorted(seen) == [(1,), (1, 3), (3,)]


def test_sync_batchnorm_takes_a_group():
    with groups():
        layer = nn.SyncBatchNorm(2, process_group=weft.distributed.group.WORLD)
        assert layer.process_group is weft.distributed.group.WORLD
