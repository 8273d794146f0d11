"""Work that is captured once and replayed with the same tensors."""

import copy
import gc
import weakref

import pytest

import weft
from weft.nn import functional as F

ILLEGAL = "operation not permitted when stream is capturing"


def captured(function, **options):
    graph = weft.cuda.CUDAGraph()
    with weft.cuda.graph(graph, **options):
        result = function()
    return graph, result


@pytest.mark.parametrize("n", [10, 1 << 18])  # the second is deferred
def test_a_replay_reads_and_writes_the_tensors_of_the_capture(n):
    x, state = weft.ones(n, device="cuda"), weft.zeros(n, device="cuda")

    def work():
        assert weft.cuda.is_current_stream_capturing()
        y = x * 2 + 1
        state.add_(y)
        return y, y.sum()

    graph, (y, total) = captured(work)
    assert not weft.cuda.is_current_stream_capturing()
    assert state.sum().item() == 0  # the capture did not run it
    for value in (1, 2):
        x.mul_(2).div_(2)  # stays where it is
        x.copy_(weft.full((n,), float(value), device="cuda") * 1)
        graph.replay()
        assert y[-1].item() == 2 * value + 1 and total.item() == n * (2 * value + 1)
    assert state[0].item() == 8


def test_work_that_waits_comes_before_a_replay():
    x = weft.ones(1 << 18, device="cuda")
    graph, y = captured(lambda: x + 1)
    graph.replay()
    later = y * 2 + 1
    x.fill_(10)
    graph.replay()
    assert later[0].item() == 5 and y[0].item() == 11


def test_memory_of_a_graph_is_given_to_no_other_tensor():
    x = weft.ones(5000, device="cuda")
    graph, y = captured(lambda: (x + 1) * (x + 2))
    address = y.data_ptr()
    for _ in range(3):
        others = [weft.full((5000,), -1.0, device="cuda") for _ in range(5)]
        graph.replay()
        assert all(each.sum().item() == -5000 for each in others) and y.sum().item() == 30000
    assert y.data_ptr() == address
    reserved = weft.cuda.memory_reserved()
    del graph, y
    gc.collect()
    weft.cuda.empty_cache()
    assert weft.cuda.memory_reserved() < reserved


def test_memory_that_launches_keep_outlives_their_plans():
    x = weft.ones(5, device="cuda")
    kept = weft.device("cuda:0").backend.lasting(5000)
    reference = weakref.ref(kept)
    graph, y = captured(lambda: x + 1)
    del kept
    assert reference() is not None
    graph.reset()
    assert reference() is None and y.is_cuda


def test_graphs_share_a_pool():
    x, pool = weft.ones(4000, device="cuda"), weft.cuda.graph_pool_handle()
    first, y = captured(lambda: x + 1, pool=pool)
    second, z = captured(lambda: (y * 2 + 3).clone(), pool=first.pool())
    assert first.pool() == second.pool() == pool
    first.replay(), second.replay()
    assert z.tolist() == [7.0] * 4000


def test_each_replay_draws_the_next_random_numbers():
    x = weft.ones(700, device="cuda")

    def work():
        return (
            weft.rand(700, device="cuda"),
            F.dropout(x),
            weft.randperm(30, device="cuda"),
            weft._standard_gamma(x),
        )

    graph, results = captured(work)
    weft.manual_seed(5)
    eager = [[each.tolist() for each in work()] for _ in range(2)]
    weft.manual_seed(5)
    for each in eager:
        graph.replay()
        assert [result.tolist() for result in results] == each


def test_constants_are_written_anew():
    def work():
        ramp, mask = weft.arange(6, device="cuda"), weft.ones(3, 3, device="cuda").tril(-1)
        return ramp.add_(1), mask, weft.linspace(0, 1, 3, device="cuda").mul_(2)

    graph, results = captured(work)
    assert weft.arange(6, device="cuda").tolist() == list(range(6))  # plans keep what the capture has made
    for _ in range(2):
        graph.replay()
        assert [each.tolist() for each in results] == [
            [1, 2, 3, 4, 5, 6],
            [[0, 0, 0], [1, 0, 0], [1, 1, 0]],
            [0, 1, 2],
        ]


@pytest.mark.parametrize(
    "work",
    [
        lambda x: x.sum().item(),
        lambda x: x.cpu(),
        lambda x: x.nonzero(),
        lambda x: x.copy_(weft.ones(10)),
        lambda x: weft.tensor([1.0], device="cuda"),
        lambda x: weft.linalg.svd(x.reshape(2, 5)),
        lambda x: weft.poisson(x),
        lambda x: weft.cuda.synchronize(),
        lambda x: weft.cuda.empty_cache(),
    ],
)
def test_what_waits_for_the_device_cannot_be_captured(work):
    x = weft.ones(10, device="cuda")
    graph = weft.cuda.CUDAGraph()
    with weft.cuda.graph(graph):
        with pytest.raises(weft.AcceleratorError, match=ILLEGAL):
            work(x)
        y = x + 1
    graph.replay()
    assert y.tolist() == [2.0] * 10 and x.sum().item() == 10


def test_an_exception_ends_the_capture():
    x, graph = weft.ones(3, device="cuda"), weft.cuda.CUDAGraph()
    with pytest.raises(ZeroDivisionError), weft.cuda.graph(graph):
        x.add_(1)
        1 // 0  # noqa: B018
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()
    with weft.cuda.graph(graph):
        x.add_(2)
    graph.replay()
    assert x.tolist() == [3, 3, 3]
    assert not weft.cuda.is_current_stream_capturing()
    assert weft.cuda.current_stream() == weft.cuda.default_stream()
    assert (weft.ones(3, device="cuda") + 1).tolist() == [2, 2, 2]


def test_misuse():
    graph = weft.cuda.CUDAGraph()
    for method in (graph.replay, graph.pool):
        with pytest.raises(RuntimeError, match="without a preceding successful capture"):
            method()
    with pytest.raises(RuntimeError, match="must be captured on a non-default stream"):
        graph.capture_begin()
    with pytest.raises(RuntimeError, match="not being captured"):
        graph.capture_end()
    with weft.cuda.stream(weft.cuda.Stream()):
        graph.capture_begin()
        with pytest.raises(RuntimeError, match="is being captured"):
            weft.cuda.CUDAGraph().capture_begin()
        graph.capture_end()
        with pytest.raises(RuntimeError, match="already owns a captured graph"):
            graph.capture_begin()
        graph.reset()
        graph.capture_begin()
        graph.reset()
    assert not weft.cuda.is_current_stream_capturing()
    with pytest.raises(NotImplementedError, match="draws no pictures"):
        graph.debug_dump("graph.dot")


@pytest.mark.parametrize("make", [weft.optim.SGD, lambda params: weft.optim.AdamW(params, capturable=True)])
def test_a_training_step(make):
    def trained(is_graphed):
        weft.manual_seed(1)
        net = weft.nn.Sequential(
            weft.nn.Linear(8, 50),
            weft.nn.LayerNorm(50),
            weft.nn.ReLU(),
            weft.nn.Dropout(0.5),
            weft.nn.Linear(50, 3),
        ).cuda()
        optimizer = make(net.parameters())
        x, y = weft.randn(60, 8, device="cuda"), weft.randint(0, 3, (60,), device="cuda")

        def step():
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            return loss

        losses = [step().item() for _ in range(2)]
        optimizer.zero_grad()
        if is_graphed:
            graph, loss = captured(step)
        for _ in range(3):
            if is_graphed:
                graph.replay()
            else:
                loss = step()
            losses.append(loss.item())
        return losses

    assert trained(True) == trained(False)


def test_layers_of_all_kinds_and_their_random_numbers():
    weft.manual_seed(0)
    conv, norm = weft.nn.Conv2d(1, 2, 3), weft.nn.BatchNorm2d(2)
    layer, recurrent = weft.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), weft.nn.LSTM(8, 4)
    net = weft.nn.ModuleList([conv, norm, layer, recurrent]).cuda()
    image, text = weft.randn(2, 1, 6, 6, device="cuda"), weft.randn(2, 5, 8, device="cuda")

    def work():
        with weft.autocast("cuda", dtype=weft.bfloat16):
            loss = F.max_pool2d(norm(conv(image)).relu(), 2).mean() + layer(text).square().mean()
        loss = loss.float() + recurrent(text)[0].topk(2).values.sum()
        loss.backward()
        return loss

    def results(loss):
        return loss.item(), [each.grad.tolist() for each in net.parameters()]

    work()
    net.zero_grad()
    buffers = [each.clone() for each in net.buffers()]
    weft.manual_seed(1)
    eager = results(work())
    net.zero_grad()
    graph, loss = captured(work)
    for each, before in zip(net.buffers(), buffers):
        each.copy_(before)
    weft.manual_seed(1)
    graph.replay()
    assert results(loss) == eager


def test_optimizers_that_count_on_the_host_must_be_capturable():
    w = weft.ones(3, device="cuda", requires_grad=True)
    w.grad = weft.ones(3, device="cuda")
    optimizer = weft.optim.Adam([w])
    optimizer.step()
    with pytest.raises(RuntimeError, match="for an instance of Adam but param_groups' capturable is False"):
        captured(optimizer.step)


def test_graphed_callables():
    net = weft.nn.Sequential(weft.nn.Linear(4, 9), weft.nn.Tanh(), weft.nn.Linear(9, 2)).cuda()
    same = copy.deepcopy(net)
    sample = weft.randn(5, 4, device="cuda", requires_grad=True)
    graphed = weft.cuda.make_graphed_callables(net, (sample,))
    assert graphed is net
    for _ in range(2):
        x = weft.randn(5, 4, device="cuda", requires_grad=True)
        gradients = []
        for each in (graphed, same):
            result = each(x)
            result.square().sum().backward()
            gradients.append(
                [x.grad.tolist(), *(p.grad.tolist() for p in each.parameters()), result.tolist()]
            )
            x.grad = None
            each.zero_grad()
        assert gradients[0] == gradients[1]
    assert net.eval()(x).tolist() == same(x).tolist()
    add, scale = weft.cuda.make_graphed_callables(
        (lambda a: {"sum": a + 1}, lambda a: a * 2), ((sample.detach(),), (sample.detach(),))
    )
    assert add(sample)["sum"].tolist() == (sample + 1).tolist()
    assert scale(sample).tolist() == (sample * 2).tolist()
    net.register_forward_hook(lambda *_: None)
    with pytest.raises(AssertionError, match="must not have hooks"):
        weft.cuda.make_graphed_callables(net, (sample,))
