"""Several devices: tensors copied among them, and modules whose batch they share. The second one is the first by another number."""

import copy

import pytest

import weft
from weft.nn import parallel
from weft.nn.parallel import _functions as steps


@pytest.fixture(autouse=True)
def _two(second):
    pass


def on(tensors):
    return [str(each.device) for each in tensors]


def test_broadcast():
    x = weft.arange(4.0, device="cuda")
    copies = weft.cuda.comm.broadcast(x, [0, 1])
    assert copies[0] is x and on(copies) == ["cuda:0", "cuda:1"] and copies[1].tolist() == x.tolist()
    out = [weft.zeros(4, device="cuda:1")]
    assert weft.cuda.comm.broadcast(x, out=out)[0] is out[0] and out[0].tolist() == x.tolist()
    rows = weft.cuda.comm.broadcast_coalesced([x, x + 1], ["cuda:1"])
    assert [each.tolist() for each in rows[0]] == [[0, 1, 2, 3], [1, 2, 3, 4]] and on(rows[0]) == [
        "cuda:1"
    ] * 2
    with pytest.raises(RuntimeError, match="Exactly one of 'devices' and 'out'"):
        weft.cuda.comm.broadcast(x)


def test_sums():
    x, y = weft.ones(3, device="cuda"), weft.full((3,), 2.0, device="cuda:1")
    assert on([weft.cuda.comm.reduce_add([x, y], 1)]) == ["cuda:1"]
    assert weft.cuda.comm.reduce_add([x, y]).tolist() == [3, 3, 3]
    assert [each.tolist() for each in weft.cuda.comm.reduce_add_coalesced([[x, x], [y, y]], 0)] == [
        [3, 3, 3]
    ] * 2
    with pytest.raises(RuntimeError, match="on the same GPU with one of the tensors"):
        weft.cuda.comm.reduce_add([y], 0)
    with pytest.raises(ValueError, match="input 1 has invalid size: got 2, but expected 3"):
        weft.cuda.comm.reduce_add([x, y[:2]])


def test_parts():
    x = weft.arange(10.0).reshape(5, 2)
    parts = weft.cuda.comm.scatter(x, [0, 1])
    assert [len(each) for each in parts] == [3, 2] and on(parts) == ["cuda:0", "cuda:1"]
    assert [len(each) for each in weft.cuda.comm.scatter(x.cuda(), [1, 0], [1, 4])] == [1, 4]
    assert weft.cuda.comm.gather(parts).tolist() == x.tolist()
    assert on([weft.cuda.comm.gather(parts, 0, "cpu")]) == ["cpu"]
    out = weft.zeros(5, 2, device="cuda:1")
    assert weft.cuda.comm.gather(parts, out=out) is out and out.tolist() == x.tolist()
    halves = [weft.zeros(5, 1, device=f"cuda:{k}") for k in range(2)]
    weft.cuda.comm.scatter(x.cuda(), out=halves, dim=1)
    assert halves[1].tolist() == x[:, 1:].tolist()


def test_the_steps_are_differentiable():
    x = weft.arange(4.0, device="cuda", requires_grad=True)
    first, second = steps.Scatter.apply([0, 1], None, 0, x)
    steps.Gather.apply(0, 0, first * 2, second * 3).sum().backward()
    assert x.grad.tolist() == [2, 2, 3, 3]
    w = weft.ones(2, device="cuda", requires_grad=True)
    here, there = steps.Broadcast.apply([0, 1], w)
    (here.sum() + (there * 4).sum().cuda(0)).backward()
    assert w.grad.tolist() == [5, 5]
    with pytest.warns(UserWarning, match="all input tensors were scalars"):
        both = steps.Gather.apply(0, 0, weft.tensor(1.0, device="cuda"), weft.tensor(2.0, device="cuda:1"))
    assert both.tolist() == [1, 2]


def model():
    weft.manual_seed(0)
    return weft.nn.Sequential(weft.nn.Linear(3, 4), weft.nn.Tanh(), weft.nn.Linear(4, 2)).cuda()


def test_replicas():
    net = model()
    replicas = parallel.replicate(net, [0, 1])
    assert [str(each[0].weight.device) for each in replicas] == ["cuda:0", "cuda:1"]
    assert list(replicas[1].parameters()) == [] and list(replicas[1][0]._former_parameters) == [
        "weight",
        "bias",
    ]
    x = weft.ones(1, 3)
    outputs = parallel.parallel_apply(replicas, [x.cuda(0), x.cuda(1)])
    assert on(outputs) == ["cuda:0", "cuda:1"] and outputs[0].tolist() == outputs[1].tolist()
    parallel.gather(outputs, 0).sum().backward()
    gradient = net[2].bias.grad.tolist()
    assert gradient == [2, 2]
    assert not parallel.replicate(net, [1], detach=True)[0][0].weight.requires_grad


def test_each_replica_runs_on_its_own_device():
    class New(weft.nn.Module):
        def forward(self, x):
            return x + weft.ones(1, device="cuda")  # on the current device

    net = weft.nn.DataParallel(New())
    assert net(weft.zeros(4, 1)).tolist() == [[1]] * 4 and weft.cuda.current_device() == 0


def test_data_parallel_learns_what_one_device_learns():
    net, x = model(), weft.randn(7, 3)
    same = copy.deepcopy(net)
    shared = weft.nn.DataParallel(net)
    assert shared.device_ids == [0, 1] and shared.output_device == 0
    results = []
    for each in (shared, same):
        optimizer = weft.optim.SGD(each.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            output = each(x.cuda())
            output.square().sum().backward()
            optimizer.step()
        results.append(output)
        assert output.shape == (7, 2) and str(output.device) == "cuda:0"
    weft.testing.assert_close(*results)
    weft.testing.assert_close(parallel.data_parallel(net, x, [0, 1], output_device=1).cuda(0), same(x.cuda()))
    with weft.no_grad():
        assert not shared(x).requires_grad
    with pytest.raises(RuntimeError, match="but found one of them on device: cpu"):
        weft.nn.DataParallel(weft.nn.Linear(3, 1))(x)
    assert weft.nn.DataParallel(weft.nn.Linear(3, 1), [1])(x).device.index == 1
