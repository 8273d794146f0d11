"""Copies from pinned memory to a device, for which the host does not wait."""

import pytest

import weft


@pytest.fixture
def sent(monkeypatch):
    """The sizes of copies that the host has not waited for."""
    found = []
    runtime = weft.device("cuda:0").backend.runtime
    send = runtime.send
    monkeypatch.setattr(runtime, "send", lambda *given: found.append(given[2]) or send(*given))
    return found


def test_values(sent):
    for _ in range(20):  # memory of the host is used again while copies run
        x = weft.randn(100, 30)
        y = x.pin_memory().to("cuda", non_blocking=True)
        assert y.cpu().equal(x) and y.spec is x.cuda().spec
    assert sent == [12_000] * 20


@pytest.mark.parametrize(
    "move",
    [
        lambda x: x.to("cuda", weft.float64, True),
        lambda x: x.to(weft.empty(0, device="cuda"), non_blocking=True),
        lambda x: x.cuda(non_blocking=True),
        lambda x: x.cuda(0, True),
        lambda x: weft.empty(6, 4, device="cuda").copy_(x, True),
        lambda x: weft.empty(2, 6, 4, device="cuda", dtype=weft.float16).copy_(x, non_blocking=True),
        lambda x: x.T.to("cuda", non_blocking=True),
        lambda x: x[1:3].to("cuda", non_blocking=True),
    ],
)
def test_forms(sent, move):
    x = weft.arange(24.0).reshape(6, 4)
    expected, found = move(x), move(x.pin_memory())
    assert len(sent) == 1
    assert found.cpu().equal(expected.cpu()) and (found.dtype, found.stride()) == (
        expected.dtype,
        expected.stride(),
    )


def test_copies_that_the_host_waits_for(sent):
    x = weft.arange(24.0).reshape(6, 4)
    pinned = x.pin_memory()
    leaf = pinned.clone().pin_memory().requires_grad_()
    calls = pinned.cuda(), x.to("cuda", non_blocking=True), pinned[:, 1].to("cuda", non_blocking=True)
    (leaf.to("cuda", non_blocking=True) * 2).sum().backward()
    assert leaf.grad.tolist() == [[2.0] * 4] * 6
    assert [each.cpu().numel() for each in calls] == [24, 24, 6] and sent == []
    assert pinned.to("cpu", non_blocking=True) is pinned
    assert calls[0].to("cpu", non_blocking=True).equal(x)  # complete when the call returns


def test_the_program_may_be_told_of_transfers_that_wait():
    pinned = weft.ones(3).pin_memory()
    weft.cuda.set_sync_debug_mode("error")
    try:
        x = pinned.to("cuda", non_blocking=True)
        with pytest.raises(RuntimeError, match="synchronizing"):
            pinned.to("cuda")
    finally:
        weft.cuda.set_sync_debug_mode("default")
    assert x.tolist() == [1, 1, 1]
