"""When work runs, what is compiled again, and which values a compiled function returns."""

import pytest

import weft
from weft.devices.xla.graph import Program

HERE = weft.device("xla:0")
MEMORY = HERE.backend.memory


def sync():
    HERE.backend.flush()


@pytest.fixture(autouse=True)
def _nothing_is_pending():
    sync()


def test_nothing_runs_before_a_value_is_needed(runner):
    a = weft.ones(3).to(HERE)
    runs = runner.runs
    b = (a + 1) * 2
    assert runner.runs == runs
    assert b.tolist() == [4.0, 4.0, 4.0]
    assert runner.runs == runs + 1
    assert b.sum().item() == 12
    assert runner.runs == runs + 2


@pytest.mark.parametrize(
    "needed", [str, weft.Tensor.item, weft.Tensor.cpu, bool, lambda _: weft.synchronize()]
)
def test_what_needs_values(needed, runner):
    a = weft.ones(()).to(HERE) + 1
    runs = runner.runs
    needed(a)
    assert runner.runs == runs + 1


def model_and_step(width, optimizer):
    net = weft.nn.Sequential(weft.nn.Linear(4, width), weft.nn.Tanh(), weft.nn.Linear(width, 1)).to(HERE)
    optimizer = optimizer(net.parameters())
    x, y = weft.randn(8, 4).to(HERE), weft.randn(8, 1).to(HERE)

    def step():
        optimizer.zero_grad()
        loss = weft.nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        sync()
        return loss

    return optimizer, step


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_a_loop_compiles_once(optimizer, runner):
    optimizer, step = model_and_step(
        16, lambda parameters: getattr(weft.optim, optimizer)(parameters, lr=0.01)
    )
    losses = [
        step(),
        step(),
    ]  # the second has the state of the optimizer, and its graph is that of all others
    compilations = runner.compilations
    for _ in range(5):
        losses.append(step())
    for group in optimizer.param_groups:
        group["lr"] = 0.02
    losses.append(step())
    assert runner.compilations == compilations
    assert losses[-1].item() < losses[0].item()


def test_another_number_compiles_nothing_and_another_size_does(runner):
    def run(size, number):
        (weft.arange(size).to(HERE) * number).cpu()
        return runner.compilations

    first = run(5, 3)
    assert run(5, 4) == first
    assert run(6, 4) == first + 1
    assert run(5, 5) == first + 1


def test_values_that_nothing_holds_are_not_computed():
    a = weft.ones(3).to(HERE)
    sync()
    b = a.exp()
    c = b + 1
    del b
    pending = [block.value for block in MEMORY.pending.values()]
    program = Program(pending)
    assert len(program.results) == 1 and len(program.nodes) == 2
    weft.testing.assert_close(c.cpu(), weft.ones(3).exp() + 1)
    dead = a.sin()
    del dead
    assert not MEMORY.pending


def test_a_graph_of_many_launches_is_cut(runner, monkeypatch):
    monkeypatch.setattr("weft.devices.xla.memory.MOST_PENDING", 10)
    a = weft.zeros(2).to(HERE)
    sync()
    runs = runner.runs
    for _ in range(25):
        a += 1
    assert runner.runs > runs
    assert a.tolist() == [25.0, 25.0]


def test_a_loop_that_needs_no_values_is_cut_into_rounds(runner, monkeypatch):
    monkeypatch.setattr("weft.devices.xla.memory.MOST_PENDING", 50)
    optimizer, step = model_and_step(3, lambda parameters: weft.optim.SGD(parameters, lr=0.01, momentum=0.9))
    losses = []
    monkeypatch.setitem(globals(), "sync", lambda: None)
    for turn in range(60):
        losses.append(step())
        if turn == 20:
            compilations = runner.compilations
    assert runner.compilations <= compilations + 1
    assert losses[-1].item() < losses[0].item()


def test_batches_of_a_large_tensor_share_a_function(runner):
    x = weft.arange(200.0).reshape(40, 5).to(HERE)
    sums, compilations = [], []
    for begin in range(0, 40, 2):
        sums.append((x[begin : begin + 2, 1:3] * 2).sum().item())
        compilations.append(runner.compilations)
    assert sums == [float((x.cpu()[k : k + 2, 1:3] * 2).sum()) for k in range(0, 40, 2)]
    assert compilations[-1] == compilations[6]


def test_batches_by_indices_share_a_function(runner):
    x, order = weft.arange(40.0).reshape(20, 2), weft.randperm(20)
    x_there, order_there, compilations = x.to(HERE), order.to(HERE), []
    for begin in range(0, 20, 2):
        batch = x_there[order_there[begin : begin + 2]]
        assert weft.equal(batch.cpu(), x[order[begin : begin + 2]])
        compilations.append(runner.compilations)
    assert compilations[-1] == compilations[6]


def test_writes_at_many_places_share_a_function(runner):
    x, wanted, compilations = weft.zeros(30, 4).to(HERE), weft.zeros(30, 4), []
    for k in range(28):
        for each in (x, wanted):
            each[k + 1 : k + 3, 1:].copy_(each[k : k + 2, :3] + k)
        sync()
        compilations.append(runner.compilations)
    assert weft.equal(x.cpu(), wanted) and compilations[-1] == compilations[6]


def test_the_same_block_is_read_before_it_is_written():
    a = weft.arange(4.0).to(HERE)
    b = a + 1
    a.mul_(10)
    a[1:3] = b[:2]
    assert b.tolist() == [1, 2, 3, 4] and a.tolist() == [0, 1, 2, 30]


def test_jax_keeps_its_own_dtypes():
    import jax.numpy as jnp

    weft.ones(2, dtype=weft.float64, device=HERE).cpu()
    assert jnp.asarray(1.0).dtype == jnp.float32


def test_an_index_out_of_range_is_reported_by_the_next_read(monkeypatch):
    monkeypatch.setattr(MEMORY, "is_eager", False)
    found = weft.arange(3).to(HERE)[weft.tensor([0, 7]).to(HERE)]
    with pytest.raises(weft.AcceleratorError, match="an index of an earlier operation was out of range"):
        found.cpu()
    assert found.tolist() == [0, 0]


def test_freed_memory_is_refused():
    a = weft.ones(3, device=HERE)
    address = a._storage.ptr
    del a
    with pytest.raises(RuntimeError, match="is no address of device xla:0"):
        MEMORY.read(address, 4)


def test_memory_of_the_host_is_out_of_reach():
    with pytest.raises(RuntimeError, match=r"The host cannot read the memory of device xla:0: use .cpu\(\)"):
        weft.ones(3, device=HERE)._storage.bytes_()
