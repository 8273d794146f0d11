"""Deferred work: a program cannot tell whether an operation has run, except by the clock."""

import _thread
import ast
import gc
import itertools
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch as oracle
from hypothesis import given, settings
from hypothesis import strategies as st

import weft as torch
from weft.core.dtype import when_plans_expire
from weft.core.promised import Promised, Watched
from weft.core.storage import Storage
from weft.engine import background, defer, fusion
from weft.engine.background import Background

ROOT = Path(__file__).resolve().parents[2]


def forget_plans():
    for forget in when_plans_expire:
        forget()


@pytest.fixture(autouse=True)
def deferred(monkeypatch):
    """Results of all sizes are deferred, and a chain has its kernel when it is seen for the first time."""
    torch.synchronize()
    monkeypatch.setattr(defer, "LEAST_ELEMENTS", 1)
    monkeypatch.setattr(fusion, "in_background", False)
    # pytest may have threads.
    monkeypatch.setattr(defer, "has_threads", lambda: False)
    forget_plans()
    yield
    torch.synchronize()
    forget_plans()


@pytest.fixture
def runs(monkeypatch):
    """The chains that ran: for each the names of the operations, and which results were stored."""
    found = []
    run = defer._run

    def noted(chain, alive, turn):
        stored = [each is not None for each in alive]
        found.append(([each.plan.deferred.name for each in chain], stored))
        return run(chain, alive, turn)

    monkeypatch.setattr(defer, "_run", noted)
    return found


def waits(tensor):
    return type(tensor._storage) is Promised


def same_bytes(a, b):
    return a.shape == b.shape and a.numpy().tobytes() == b.numpy().tobytes()


# Nobody may call `numpy()` of these, because memory that NumPy sees is never read late.
a, b, c = (torch.tensor(np.random.default_rng(k).normal(size=(3, 5)), dtype=torch.float32) for k in range(3))


def test_a_chain_is_one_kernel_when_somebody_looks(runs):
    result = torch.relu(a * b + c)
    assert waits(result) and not runs
    values = result.tolist()
    assert runs == [(["mul", "add", "relu"], [False, False, True])]
    assert not waits(result) and type(a._storage) is Storage
    with torch.eager():
        assert torch.relu(a * b + c).tolist() == values


def test_an_intermediate_that_somebody_holds_comes_out_of_the_same_kernel(runs):
    product = a * b
    result = (product + c).exp()
    result.tolist()
    assert runs == [(["mul", "add", "exp"], [True, False, True])]
    assert not waits(product)
    assert product.tolist() == (oracle.tensor(a.tolist()) * oracle.tensor(b.tolist())).tolist()


def test_what_nobody_reads_is_never_computed(runs):
    (a * b).exp()
    torch.synchronize()
    assert not runs


def test_a_result_that_was_computed_is_an_operand_of_what_waits_for_it(runs):
    product = a * b
    total, difference = product + c, product - c
    total.tolist()
    assert not waits(product) and waits(difference) and type(product._storage) is Watched
    product.zero_()
    with torch.eager():
        assert same_bytes(difference, a * b - c)


def test_a_dead_intermediate_serves_all_that_wait_for_it():
    product = a * b
    total, difference = product + c, product - c
    del product
    with torch.eager():
        assert same_bytes(total, a * b + c) and same_bytes(difference, a * b - c)


def test_results_that_share_steps_come_out_of_one_kernel_when_all_are_kept(runs):
    product = a * b
    results = [product + c, product - c, product.double(), a.exp(), b[:1] * 2]
    del product
    torch.synchronize()
    names = [sorted(names) for names, _ in runs]
    assert names == [["add", "clone", "mul", "sub"]]  # the last two share no step with the others
    assert not any(map(waits, results))
    with torch.eager():
        wanted = a * b + c, a * b - c, (a * b).double(), a.exp(), b[:1] * 2
    assert all(map(same_bytes, results, wanted))


def test_results_that_share_steps_are_cut_at_the_bound_of_a_kernel(monkeypatch, runs):
    monkeypatch.setattr(defer, "MOST_STEPS", 4)
    product = a * b
    results = [product + k for k in range(6)]
    del product
    torch.synchronize()
    assert [len(names) for names, _ in runs] == [4, 4]
    with torch.eager():
        assert all(same_bytes(each, a * b + k) for k, each in enumerate(results))


@pytest.mark.parametrize(
    "cast",
    [
        lambda x: x.clone(),
        lambda x: x.double(),
        lambda x: x.to(torch.bfloat16),
        lambda x: x.to(torch.int64, copy=True),
        lambda x: torch.clone(x, memory_format=torch.contiguous_format),
    ],
)
def test_copies_and_casts_are_part_of_a_chain(runs, cast):
    result = cast(a * 3) + 1
    assert waits(result)
    result.tolist()
    assert runs == [(["mul", "clone", "add"], [False, False, True])]
    with torch.eager():
        wanted = cast(a * 3) + 1
    assert result.dtype is wanted.dtype and result.tolist() == wanted.tolist()


def test_a_copy_of_memory_that_numpy_sees_is_made_at_once():
    array = np.ones((3, 5), np.float32)
    copy = torch.from_numpy(array).clone()
    array[:] = 2
    assert copy.tolist() == [[1.0] * 5] * 3


def test_a_write_comes_after_the_promises_that_read_the_old_value():
    x = a.clone()
    before = x + 1
    x.add_(1)
    x.mul_(2)
    with torch.eager():
        assert same_bytes(before, a + 1) and same_bytes(x, (a + 1) * 2)


INPLACE = {
    "numbers": lambda x: x.mul_(2).add_(1),
    "functions": lambda x: x.exp_().neg_(),
    "of what waits": lambda x: x.add_(b * c),
    "operator": lambda x: x.__imul__(b * c),
    "itself": lambda x: x.mul_(x),
    "transposed": lambda x: x[:3, :3].add_(x[:3, :3].t()),
    "another dtype": lambda x: x.add_((b * c).to(torch.float64)),
    "other functions": lambda x: x.clamp_(0, 1).lerp_(b * c, 0.5),
    "row": lambda x: x.sub_((b * c)[0]),
    "out": lambda x: torch.mul(b * c, x, out=x),
    "copy_": lambda x: x.copy_(b * c),
}


@pytest.mark.parametrize("first", ["memory", "waits", "view"])
@pytest.mark.parametrize("name", INPLACE)
def test_operations_in_place_keep_what_others_read(name, first):
    def results():
        x = a.clone()
        if first != "waits":
            x.tolist()
        before, view, flat = x * b, x[1:], x.view(-1) if first == "view" else None
        INPLACE[name](x)
        after = x * c
        INPLACE[name](x)
        found = [each.tolist() for each in (after, before, view, x)]
        return found, None if flat is None else flat.tolist(), x._version

    with torch.eager():
        wanted = results()
    assert results() == wanted


def test_operations_in_place_are_part_of_a_chain(runs):
    x = a.clone()
    x.tolist()
    address = x._storage.ptr
    x.mul_(2).add_(b).relu_()
    assert waits(x) and x._version == 3
    x.tolist()
    assert runs == [(["mul", "add", "relu"], [False, False, True])]
    assert x._storage.ptr == address


def test_operations_in_place_on_operands_with_memory_run_at_once():
    x = a.clone()
    x.tolist()
    x.add_(b)
    assert not waits(x) and type(b._storage) is not Watched


def test_operations_in_place_leave_the_memory_where_other_threads_may_use_it(monkeypatch):
    """Else the sums of a thread whose kernel has the address already would be those of another tensor."""
    monkeypatch.setattr(defer, "has_threads", background.has_threads)
    x = a.clone()
    x.tolist()
    address, stop = x._storage.ptr, threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        c = b * 2  # alive, so that the kernel of the chain would have two results
        x.add_(c)
        assert not waits(x) and x._storage.ptr == address
        x = a + b
        x.add_(c)
        assert waits(x)  # nobody has the address of memory that there is not yet
    finally:
        stop.set()
        thread.join()


def test_sums_of_gradients_are_part_of_the_chain_that_makes_them(runs):
    x = a.clone().requires_grad_()
    x.grad = torch.zeros_like(x)
    (x * x * x * b + x.exp() * x).sum().backward()
    assert not runs and waits(x.grad)
    found = x.grad.tolist()
    assert len(runs) == 1
    with torch.eager():
        y = a.clone().requires_grad_()
        (y * y * y * b + y.exp() * y).sum().backward()
    assert y.grad.tolist() == found


def test_an_interrupt_of_an_operation_in_place_leaves_the_old_or_the_new_value():
    codes = {each.__code__ for each in (defer._promised, defer._exchange)}
    with torch.eager():
        old, new, read = (a * b).tolist(), (a * b * 2).tolist(), (a * b + 1).tolist()
    for pending in (False, True):
        for line in range(200):
            x = a * b
            if not pending:
                x.tolist()
            reader = x + 1
            outer = sys.gettrace()
            sys.settrace(interrupt_at(line, codes))
            try:
                x.mul_(2)
                ended = True
            except Interrupted:
                ended = False
            finally:
                sys.settrace(outer)
            assert x.tolist() in ([new] if ended else [old, new]), line
            assert reader.tolist() == read
            if ended:
                break
        else:
            raise AssertionError("the lines did not end")
        assert line > 10


def test_a_write_comes_after_the_readers_of_a_dead_intermediate():
    x = a.clone()
    x.tolist()
    result = (x * b).exp()
    x.zero_()
    with torch.eager():
        assert same_bytes(result, (a * b).exp())


WRITES = {
    "index": lambda x: x.__setitem__(0, 7.0),
    "mask": lambda x: x.__setitem__(x > 0, 7.0),
    "mask from tensor": lambda x: x.masked_scatter_(x > 0, torch.ones(15)),
    "fill_": lambda x: x.fill_(3),
    "zero_": lambda x: x.zero_(),
    "random": lambda x: x.uniform_(),
    "normal_": lambda x: x.normal_(),
    "bernoulli_": lambda x: x.bernoulli_(),
    "random in order": lambda x: x.t().uniform_(),
    "copy_": lambda x: x.copy_(b),
    "view": lambda x: x[1].add_(1),
    "out": lambda x: torch.add(b, c, out=x),
    "out of a function": lambda x: torch.sqrt(b, out=x),
    "out of a library": lambda x: torch.sort(b, out=(x, torch.empty(3, 5, dtype=torch.int64))),
    "out of a product": lambda x: torch.mm(b, torch.ones(5, 5), out=x),
    "out of cat": lambda x: torch.cat([b[:1], b[1:]], out=x),
    "out of cumsum": lambda x: torch.cumsum(b, 0, out=x),
    "out of where": lambda x: torch.where(b > 0, b, c, out=x),
    "index_add_": lambda x: x.index_add_(0, torch.tensor([0]), b[:1]),
    "scatter_": lambda x: x.scatter_(0, torch.zeros(1, 5, dtype=torch.int64), 2.0),
    "index_fill_": lambda x: x.index_fill_(0, torch.tensor([1]), 2.0),
    "addmm_": lambda x: x.addmm_(torch.ones(3, 3), b),
    "cumsum_": lambda x: x.cumsum_(0),
    "clamp_": lambda x: x.clamp_(0, 1),
    "numpy": lambda x: x.numpy().fill(2.0),
    "array": lambda x: np.asarray(x).fill(2.0),
    "dlpack": lambda x: np.from_dlpack(x.detach()) is not None and x.numpy().__iadd__(1),
    "storage": lambda x: x.untyped_storage().fill_(1),
    "byte": lambda x: x.untyped_storage().__setitem__(3, 1),
    "bytes": lambda x: x.untyped_storage().__setitem__(slice(2, 9), 1),
    "typed storage": lambda x: x.storage().fill_(1.0),
    "storage copy": lambda x: x.untyped_storage().copy_(b.clone().untyped_storage()),
    "byteswap": lambda x: x.untyped_storage().byteswap(torch.float32),
    "shared": lambda x: x.share_memory_().numpy().fill(2.0),
    "set_": lambda x: x.set_(b.clone()).add_(1),
    "resize_": lambda x: x.resize_(40).fill_(2),
    "resize of the storage": lambda x: x.untyped_storage().resize_(4000),
    "shrinking and growing": lambda x: x.untyped_storage().resize_(16).resize_(4000),
    "data": lambda x: x.data.mul_(2),
    "squeeze_": lambda x: x.unsqueeze_(0).mul_(2),
    "optimizer": lambda x: _step(x),
}  # fmt: skip


def _step(x):
    x.grad = b.clone()
    torch.optim.Adam([x]).step()


@pytest.mark.parametrize("name", WRITES)
def test_every_write_comes_after_the_promises_that_read(name):
    with torch.eager():
        x = a.clone()
        wanted = (x * b).sigmoid()
    result = (x * b).sigmoid()
    assert waits(result) and type(x._storage) is Watched
    torch.manual_seed(0)
    WRITES[name](x)
    assert same_bytes(result, wanted)


@pytest.mark.parametrize("name", WRITES)
def test_every_write_sees_the_value_that_was_promised(name):
    with torch.eager():
        wanted = a * b
        torch.manual_seed(0)
        WRITES[name](wanted)
    x = a * b
    torch.manual_seed(0)
    WRITES[name](x)
    assert same_bytes(x, wanted)


LOOKS = {
    "tolist": lambda x: x.tolist(),
    "item": lambda x: x[0, 0].item(),
    "repr": repr,
    "numpy": lambda x: x.numpy().tolist(),
    "sum": lambda x: x.sum().item(),
    "product": lambda x: (x @ x.t()).tolist(),
    "select": lambda x: x[:, 1].tolist(),
    "index": lambda x: x[torch.tensor([2, 0])].tolist(),
    "mask": lambda x: x[x > 0].tolist(),
    "sort": lambda x: x.sort().values.tolist(),
    "cat": lambda x: torch.cat([x, x]).tolist(),
    "contiguous": lambda x: x.t().contiguous().tolist(),
    "pickle": lambda x: pickle.loads(pickle.dumps(x)).tolist(),
    "deepcopy": lambda x: __import__("copy").deepcopy(x).tolist(),
    "storage": lambda x: x.untyped_storage().tolist(),
    "reshape": lambda x: x.reshape(5, 3).exp().tolist(),
    "view of a dtype": lambda x: x.view(torch.int32).tolist(),
    "transposed": lambda x: (x.t() + 1).tolist(),
    "broadcast": lambda x: (x + torch.ones(2, 1, 5)).tolist(),
    "softmax": lambda x: torch.softmax(x, 1).tolist(),
    "equal": lambda x: torch.equal(x, x.clone()),
    "interface": lambda x: np.array(x).tolist(),
    "bytes": lambda x: x.untyped_storage().nbytes(),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOKS)
def test_every_look_sees_the_value(name):
    with torch.eager():
        wanted = LOOKS[name](a * b + 1)
    assert LOOKS[name](a * b + 1) == wanted


def test_memory_that_numpy_sees_is_never_read_late():
    array = np.ones((3, 5), np.float32)
    shared = torch.from_numpy(array)
    result = shared * 2
    assert not waits(result)
    array[:] = 5
    assert result.tolist() == [[2.0] * 5] * 3
    x = a.clone()
    seen = x.numpy()
    result = x * 2
    seen[:] = 0
    with torch.eager():
        assert same_bytes(result, a * 2)


def test_errors_are_raised_at_the_call():
    product = a * b
    with pytest.raises(RuntimeError):
        product + torch.ones(4)
    with pytest.raises(RuntimeError):
        torch.ones(3, dtype=torch.int32) // torch.zeros(3, dtype=torch.int32)
    with pytest.raises((RuntimeError, OverflowError)):
        torch.ones(3, dtype=torch.int32) + 2**70


def test_an_error_while_computing_leaves_the_promise(monkeypatch):
    result = (a * b).exp()
    plan = defer.promise_of(result._storage).plan

    def fail():
        raise RuntimeError("no memory")

    allocate, plan.allocate = plan.allocate, fail
    with pytest.raises(RuntimeError, match="no memory"):
        result.tolist()
    plan.allocate = allocate
    with torch.eager():
        assert same_bytes(result, (a * b).exp())


CHAINS = {
    "product": lambda x, y: x * y,
    "numbers": lambda x, y: x * 2.5 + 1,
    "row": lambda x, y: x * y + y[0],
    "column": lambda x, y: (x - y[:, :1]).square(),
    "exp": lambda x, y: (x * y).exp(),
    "bfloat16": lambda x, y: x.bfloat16() * y.bfloat16() + 0.1,
    "integers": lambda x, y: (x * 10).to(torch.int32) * 3,
    "bytes": lambda x, y: (x * 10).to(torch.int32).to(torch.uint8) - 200,
    "bools": lambda x, y: x < y,
    "transposed": lambda x, y: x.t() * y.t(),
    "complex": lambda x, y: torch.complex(x, y) * 2,
    "centred": lambda x, y: (x - x.mean(1, keepdim=True)) * y,
    "part": lambda x, y: x[:, 3:40] - y[:, 5:42],
    "slow path": lambda x, y: (x * y).sin(),
}
REDUCTIONS = {
    "sum": lambda x: x.sum(),
    "columns": lambda x: x.sum(0),
    "rows": lambda x: x.sum(1, keepdim=True),
    "wide": lambda x: x.sum(dtype=torch.float64),
    "mean": lambda x: x.to(torch.float32).mean(-1),
    "any": lambda x: (x != 0).any(0),
    "largest": lambda x: x.to(torch.float32).max(1),
    "place": lambda x: x.to(torch.float32).argmax(),
    "product": lambda x: x.prod(),
}


@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize("chain", CHAINS)
def test_reductions_of_what_waits_have_the_same_bits(chain):
    values = np.random.default_rng(1).normal(size=(2, 37, 67)).astype(np.float32)
    x, y = torch.tensor(values[0]), torch.tensor(values[1])

    def found():
        results = [reduce(CHAINS[chain](x, y)) for reduce in REDUCTIONS.values()]
        results = [
            each for result in results for each in (result if isinstance(result, tuple) else (result,))
        ]
        return [each.untyped_storage().tolist() for each in results]

    ours = found()
    with torch.eager():
        assert found() == ours


def test_a_reduction_is_the_end_of_a_chain(runs):
    difference = a - b
    total = (difference * difference).mean()
    assert not runs and waits(difference)
    with torch.eager():
        assert total.item() == ((a - b) * (a - b)).mean().item()


def test_a_long_chain_that_is_needed_again_after_a_reduction_is_stored_next_time(runs):
    def normalized():
        x = ((a * b).exp() + (a * c).exp()).tanh().exp()
        total = x.sum()
        return (x / total).tolist()

    with torch.eager():
        wanted = normalized()
    assert normalized() == wanted
    before = len(runs)
    assert normalized() == wanted
    assert runs[before][1][-1]
    assert len(runs) == before + 1


DTYPES = [
    torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int32, torch.uint8, torch.bool,
    torch.complex64,
]  # fmt: skip


@pytest.mark.parametrize("first", DTYPES, ids=str)
@pytest.mark.parametrize("second", DTYPES, ids=str)
def test_each_operation_rounds_as_if_it_ran_alone(first, second):
    def chain():
        x, y = (a * 3).to(first), (b * 3).to(second)
        z = x * y + x
        w = (z == y) | (z != x)
        return z, w, z + w, (z * 0.3 + 2).to(first)

    found = chain()
    with torch.eager():
        wanted = chain()
    for ours, theirs in zip(found, wanted):
        assert (
            ours.dtype is theirs.dtype
            and ours.untyped_storage().tolist() == theirs.untyped_storage().tolist()
        )


def test_gradients_have_the_same_bits():
    def gradients():
        x, y = a.clone().requires_grad_(), b.clone().requires_grad_()
        z = torch.relu(x * y + x.exp()) * torch.sigmoid(y)
        z.sum().backward()
        z = (x.tanh() * y).pow(2)
        z.mean().backward()
        return x.grad, y.grad

    found = gradients()
    with torch.eager():
        wanted = gradients()
    assert all(map(same_bytes, found, wanted))


def test_a_saved_tensor_that_was_overwritten_is_noticed():
    x = a.clone().requires_grad_()
    y = (x * 2).exp()
    z = y * 3
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward(), y.sum().backward()


def test_long_chains_are_cut_and_promises_are_bounded(runs):
    x = a
    for _ in range(3 * defer.MOST_STEPS):
        x = x * 1.01
    with torch.eager():
        wanted = a
        for _ in range(3 * defer.MOST_STEPS):
            wanted = wanted * 1.01
    assert same_bytes(x, wanted)
    assert max(len(names) for names, _ in runs) <= defer.MOST_STEPS
    many = [a * k for k in range(2 * defer.MOST_PROMISES)]
    assert len(defer._waiting) <= defer.MOST_PROMISES
    with torch.eager():
        assert all(same_bytes(each, a * k) for k, each in enumerate(many))


def test_a_step_with_several_readers_counts_once(runs):
    def repeated():
        x = a
        for _ in range(20):
            x = x * 0.5 + x
        return x.tolist()

    with torch.eager():
        wanted = repeated()
    assert repeated() == wanted
    assert [len(names) for names, _ in runs] == [40]


def test_the_bytes_that_promises_hold_are_bounded(monkeypatch):
    monkeypatch.setattr(torch.device("cpu").backend, "most_deferred", 500)
    many = [a.clone() * k for k in range(40)]
    assert sum(map(waits, many)) < 20
    with torch.eager():
        assert all(same_bytes(each, a * k) for k, each in enumerate(many))


@pytest.mark.parametrize("in_one_kernel", [True, False])
def test_a_result_takes_over_the_memory_of_an_operand_that_is_gone(in_one_kernel, monkeypatch):
    if not in_one_kernel:
        monkeypatch.setattr(defer, "kernel_of", lambda key, build: None)

    def finish(x):
        return (x * b + x).exp()

    x = a.clone()
    address = x._storage.ptr
    result = finish(x)
    del x
    values = result.tolist()
    assert result._storage.ptr == address
    kept = a.clone()
    result = finish(kept)
    assert result.tolist() == values and result._storage.ptr != kept._storage.ptr
    with torch.eager():
        assert finish(a).tolist() == values and kept.tolist() == a.tolist()


def test_memory_that_another_promise_reads_is_not_taken_over():
    x = a.clone()
    x._storage.ptr  # noqa: B018
    first, second = x * 2, x * 3
    view = x[1:] * 4
    del x
    with torch.eager():
        assert same_bytes(first, a * 2) and same_bytes(second, a * 3) and same_bytes(view, a[1:] * 4)


def test_memory_that_a_dead_intermediate_reads_again_is_not_taken_over():
    x = a.clone()
    x._storage.ptr  # noqa: B018
    shared = x.sigmoid()
    first, second = shared * b, shared * c
    del x, shared
    with torch.eager():
        assert same_bytes(first, a.sigmoid() * b) and same_bytes(second, a.sigmoid() * c)


@pytest.mark.parametrize("in_one_kernel", [True, False])
def test_the_last_of_several_results_takes_over_memory(in_one_kernel, monkeypatch):
    if not in_one_kernel:
        monkeypatch.setattr(defer, "kernel_of", lambda key, build: None)
    x = a.clone()
    address = x._storage.ptr
    product = x * b
    result = product.exp() - x
    del x
    assert result.tolist() and result._storage.ptr == address != product._storage.ptr
    with torch.eager():
        assert same_bytes(product, a * b) and same_bytes(result, (a * b).exp() - a)


def signal_after_kernels(monkeypatch, handler):
    """Let a signal arrive whenever a kernel of a promise ends."""

    def starmap(entry, arguments):
        return zip(itertools.starmap(entry, arguments), map(_thread.interrupt_main, (signal.SIGUSR1,)))

    outer = signal.signal(signal.SIGUSR1, handler)
    monkeypatch.setattr(defer, "itertools", SimpleNamespace(**vars(itertools) | {"starmap": starmap}))
    return outer


def look_interrupted(monkeypatch, result):
    """Ask for the values of a result, while a signal handler raises an exception after each kernel."""

    def handler(number, frame):
        raise Interrupted

    outer = signal_after_kernels(monkeypatch, handler)
    try:
        with pytest.raises(Interrupted):
            result.tolist()
    finally:
        signal.signal(signal.SIGUSR1, outer)
        monkeypatch.undo()


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="this system has no such signal")
@pytest.mark.parametrize("in_one_kernel", [True, False])
def test_an_exception_of_a_signal_handler_after_a_kernel_leaves_several_results(in_one_kernel, monkeypatch):
    if not in_one_kernel:
        monkeypatch.setattr(defer, "kernel_of", lambda key, build: None)
    x = a.clone()
    x._storage.ptr  # noqa: B018
    product = x * b
    result = product.exp() - x
    del x
    look_interrupted(monkeypatch, result)
    with torch.eager():
        assert same_bytes(product, a * b) and same_bytes(result, (a * b).exp() - a)


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="this system has no such signal")
@pytest.mark.parametrize("in_one_kernel", [True, False])
def test_an_exception_of_a_signal_handler_after_the_kernel_leaves_the_result(in_one_kernel, monkeypatch):
    if not in_one_kernel:
        monkeypatch.setattr(defer, "kernel_of", lambda key, build: None)
    x = a.clone()
    address = x._storage.ptr
    result = (x * b).exp()
    del x
    look_interrupted(monkeypatch, result)
    with torch.eager():
        assert not in_one_kernel or result._storage.ptr == address
        assert same_bytes(result, (a * b).exp())


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="this system has no such signal")
@pytest.mark.parametrize("in_one_kernel", [True, False])
@pytest.mark.parametrize("does", ["asks", "asks for another", "writes", "promises", "exposes"])
def test_a_signal_handler_after_the_kernel_may_do_anything(does, in_one_kernel, monkeypatch):
    seen = []

    def handler(number, frame):
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        if does == "asks":
            seen.append(result.tolist())
        elif does == "asks for another":
            seen.append((other * 1).tolist())
        elif does == "writes":
            other.zero_()
        elif does == "exposes":
            other.numpy()[:] = 0
        else:
            seen.append(result + other)

    if not in_one_kernel:
        monkeypatch.setattr(defer, "kernel_of", lambda key, build: None)
    with torch.eager():
        wanted, wanted_product = ((a * b).exp() - c).tolist(), (a * b).tolist()
        wanted_sum = ((a * b).exp() - c + c).tolist()
    x, other = a.clone(), c.clone()
    x.tolist(), other.tolist()
    product = x * b
    result = product.exp() - other
    reader = product * 1
    del x
    outer = signal_after_kernels(monkeypatch, handler)
    try:
        assert result.tolist() == wanted
        assert signal.getsignal(signal.SIGUSR1) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGUSR1, outer)
    monkeypatch.undo()
    assert result.tolist() == wanted
    assert product.tolist() == wanted_product and reader.tolist() == wanted_product
    if does == "promises":
        assert seen[0].tolist() == wanted_sum


def test_a_write_while_a_result_gets_its_memory_comes_after_its_readers():
    """Another thread may write to a result whose readers still wait, before the thread that computed it has told them."""
    product = a * b
    reader = product * 2
    forget = defer._forget

    def late(chain):
        defer._forget = forget
        product.zero_()
        forget(chain)

    defer._forget = late
    try:
        product.tolist()
    finally:
        defer._forget = forget
    with torch.eager():
        assert same_bytes(reader, a * b * 2)
    assert product.tolist() == [[0.0] * 5] * 3


def test_an_operand_that_is_exposed_while_it_is_promised_is_read_at_once(monkeypatch):
    x = a.clone()
    x.tolist()
    arrays = []
    new = defer.new_promised

    def handled(promise, nbytes):
        monkeypatch.undo()
        arrays.append(x.numpy())
        return new(promise, nbytes)

    monkeypatch.setattr(defer, "new_promised", handled)
    result = x * b
    arrays[0][:] = 0
    with torch.eager():
        assert same_bytes(result, a * b)


def test_a_promise_that_is_made_while_another_is_forgotten_is_kept_before_writes(monkeypatch):
    x = a.clone()
    x.tolist()
    made = []
    first = x * b
    redirect = defer._redirect

    def handled(kept):
        redirect(kept)
        made.append(x + c)

    monkeypatch.setattr(defer, "_redirect", handled)
    first.tolist()
    monkeypatch.undo()
    x.zero_()
    with torch.eager():
        assert same_bytes(made[0], a + c)


class Interrupted(BaseException):
    pass


def interrupt_at(line, codes):
    """A trace function that raises at this line, counted over all lines of these functions."""
    left = [line]

    def local(frame, event, arg):
        if event == "line":
            left[0] -= 1
            if left[0] < 0:
                sys.settrace(None)
                raise Interrupted
        return local

    return lambda frame, event, arg: local if frame.f_code in codes else None


def test_an_interrupt_while_a_promise_is_forgotten_loses_nothing():
    codes = {each.__code__ for each in (defer._forget, getattr(defer, "_redirect", defer._forget))}
    with torch.eager():
        wanted = [each.tolist() for each in (a * b, a * b + c, (a * b + c).exp(), (a * b).tanh() - a)]
    for line in range(200):
        x = a.clone()
        product = x * b
        total = product + c
        readers = [total.exp(), product.tanh() - x]
        outer = sys.gettrace()
        sys.settrace(interrupt_at(line, codes))
        try:
            total.tolist()
            ended = True
        except Interrupted:
            ended = False
        finally:
            sys.settrace(outer)
        x.zero_()
        assert [each.tolist() for each in (product, total, *readers)] == wanted, line
        if ended:
            break
    else:
        raise AssertionError("the lines did not end")
    assert line > 10


def test_an_operand_whose_bytes_a_signal_handler_asks_for_while_it_is_promised(monkeypatch):
    product = a * b
    new = defer.new_promised

    def handled(promise, nbytes):
        monkeypatch.undo()
        product.tolist()
        return new(promise, nbytes)

    monkeypatch.setattr(defer, "new_promised", handled)
    result = product.exp()
    with torch.eager():
        assert same_bytes(result, (a * b).exp())


def test_nothing_stays_alive():
    gc.collect()
    torch.synchronize()
    held = len(defer._waiting)
    x = a.clone()
    import weakref

    memory = weakref.ref(x._storage)
    y = x * 2 + 1
    del x
    y.tolist()
    assert memory() is None and len(defer._waiting) == held
    z = a * y
    del z
    (a + 1).tolist()
    assert len(defer._waiting) <= held + 1


def test_a_chain_is_compiled_in_the_background_when_it_is_seen_again(monkeypatch):
    monkeypatch.setattr(fusion, "in_background", True)

    def chain():
        return ((a * 1.5 - b) * c - 0.25).tolist()

    with torch.eager():
        wanted = chain()
    fusion._kernels.clear()
    assert chain() == wanted and set(fusion._kernels.values()) == {fusion._SEEN}
    assert chain() == wanted
    for _ in range(500):
        if type(next(iter(fusion._kernels.values()))) is fusion.Launch:
            break
        threading.Event().wait(0.01)
    else:
        raise AssertionError("the kernel was never compiled")
    assert chain() == wanted


@pytest.mark.parametrize("end", [torch.clone, torch.sum])
def test_a_chain_with_large_results_is_compiled_when_it_is_first_seen(monkeypatch, end):
    def chain():
        return end((a * 3.5 - b) * c).tolist()

    with torch.eager():
        wanted = chain()
    monkeypatch.setattr(fusion, "in_background", True)
    nbytes = a.nbytes * (4 if end is torch.clone else 3)
    for least, is_compiled in ((nbytes, True), (nbytes + 1, False)):
        monkeypatch.setattr(fusion, "MOST_UNFUSED", least)
        fusion._kernels.clear()
        assert chain() == wanted
        assert (fusion._SEEN not in fusion._kernels.values()) is is_compiled


def test_a_chain_with_large_results_runs_plan_by_plan_if_its_kernel_cannot_be_made(monkeypatch):
    def fail(*arguments):
        raise MemoryError

    monkeypatch.setattr(fusion, "in_background", True)
    monkeypatch.setattr(fusion, "MOST_UNFUSED", 1)
    monkeypatch.setattr(fusion, "fused", fail)
    fusion._kernels.clear()
    result = ((a * 4.5 - b) * c).tolist()
    with torch.eager():
        assert ((a * 4.5 - b) * c).tolist() == result


def test_without_a_thread_that_compiles_a_chain_runs_plan_by_plan(monkeypatch):
    def fail(thread):
        raise RuntimeError("can't start new thread")

    def chain():
        return ((a * 2.5 - b) * c - 0.75).tolist()

    monkeypatch.setattr(fusion, "in_background", True)
    monkeypatch.setattr(fusion, "_compiler", Background("no compiler"))
    monkeypatch.setattr(threading.Thread, "start", fail)
    with torch.eager():
        wanted = chain()
    fusion._kernels.clear()
    assert [chain(), chain(), chain()] == [wanted] * 3
    assert fusion._COMPILING not in fusion._kernels.values()  # `fusion.wait` would wait for ever


def test_another_thread_may_keep_a_promise():
    results = [(a * k + b).exp() for k in range(20)]
    found = [None] * 20

    def look(first):
        for k in range(first, 20, 2):
            found[k] = results[k].tolist()
            (results[k] * a).tolist()

    threads = [threading.Thread(target=look, args=(first,)) for first in (0, 1)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    with torch.eager():
        assert found == [(a * k + b).exp().tolist() for k in range(20)]


def test_storages_in_all_states_are_sent_to_processes_as_shared_memory():
    result = a * b
    assert waits(result) and type(a._storage) is Watched
    for tensor in (a, b, result):
        assert type(tensor._storage) in ForkingPickler._extra_reducers


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_promises_survive_a_fork():
    result = (a * b + c).exp()
    with torch.eager():
        wanted = (a * b + c).exp().tolist()
    child = os.fork()
    if not child:
        os._exit(0 if result.tolist() == wanted else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert result.tolist() == wanted


def test_the_environment_variable_turns_deferral_off():
    program = (
        "import weft as torch\n"
        "from weft.core.promised import Promised\n"
        "x = torch.ones(1 << 20) * 2\n"
        "print(type(x._storage) is Promised)"
    )

    def answer(**variables):
        run = [sys.executable, "-c", program]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
        for name in {"WEFT_EAGER", "WEFT_DEFER"} - variables.keys():
            environment.pop(name, None)
        return subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout

    assert answer(WEFT_EAGER="1") == "False\n"
    assert answer() == "True\n"
    assert answer(WEFT_DEFER=str(1 << 21)) == "False\n"
    with pytest.raises(subprocess.CalledProcessError) as error:
        answer(WEFT_DEFER="lots")
    assert "WEFT_DEFER must be the least number of elements" in error.value.stderr


def test_a_chain_at_exit_is_not_compiled_any_more(monkeypatch):
    monkeypatch.setattr(fusion, "in_background", True)
    monkeypatch.setattr(fusion, "_compiler", Background("ended"))
    fusion._compiler._stop()
    with torch.eager():
        wanted = ((a - 3.5) * b).tolist()
    fusion._kernels.clear()
    assert [((a - 3.5) * b).tolist() for _ in range(3)] == [wanted] * 3
    assert set(fusion._kernels.values()) == {fusion._SEEN}


# The modules of deferral, and the names by which other code would tell deferred results from others.
_MODULES = {
    f"weft.{name}"
    for name in ("core.promised", "engine.defer", "engine.fusion", "engine.habits", "engine.explain")
}
_NAMES = {"Promised", "Watched", "deferred", "habit", "promise_of", "keeper"}
# A source without any of these words need not be parsed.
_WORDS = re.compile("|".join([*_NAMES, *(module.rpartition(".")[2] for module in _MODULES)]))


def _knowledge_of_promises(source, package):
    """What a source names of deferral: module.name for imports, and names, attributes and strings in _NAMES."""
    if not _WORDS.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            parents = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*parents, *filter(None, [node.module])])
            for each in node.names:
                if module in _MODULES or f"{module}.{each.name}" in _MODULES:
                    yield f"{module}.{each.name}"
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in _MODULES)
        else:
            named = [getattr(node, key, None) for key in ("id", "attr", "value")]
            yield from (each for each in named if type(each) is str and each in _NAMES)


def test_nothing_outside_knows_of_promises():
    """Only storages, the families of ops and the engine name what deferral is made of.

    The package publishes two functions of it, the backends that defer keep all promises when they synchronize, profiles and
    counts observe the kernels that do so, records of memory the memory that they get, and pictures show both.
    """
    knowing = {}
    for path in (ROOT / "weft").rglob("*.py"):
        found = set(_knowledge_of_promises(path.read_text(), path.relative_to(ROOT).parent.parts))
        if found:
            knowing[path.relative_to(ROOT / "weft").as_posix()] = found
    inside = ("core/promised.py", "core/storage.py", "engine/", "families/")
    assert {path: found for path, found in knowing.items() if not path.startswith(inside)} == {
        "__init__.py": {"weft.engine.defer.eager", "weft.engine.explain.explain"},
        "accelerator/_memory_history.py": {"weft.engine.explain.is_ours"},
        "autograd/event_recorder.py": {"weft.engine.explain.is_ours"},
        "cli/bench.py": {"weft.engine.defer", "weft.engine.fusion", "deferred"},
        "cli/tour/worker.py": {"weft.engine.explain.is_ours"},
        "compat/torch/cpu/memory.py": {"weft.engine.defer"},
        "devices/_gpu/backend.py": {"weft.engine.defer.keep_all"},
        "devices/_gpu/capture.py": {"weft.engine.defer.keep_all"},
        "devices/cpu/__init__.py": {"weft.engine.defer.keep_all"},
        "devices/observed.py": {"weft.engine.fusion"},
        "profiler/memory_timeline.py": {"weft.core.promised.Promised", "Promised"},
        "profiler/operators.py": {"weft.engine.defer", "deferred"},
        "utils/counting.py": {"weft.core.promised.Promised", "Promised", "weft.engine.defer", "deferred"},
        "viz/calls.py": {
            *("weft.core.promised.Promised", "Promised", "weft.engine.explain.Line"),
            "weft.engine.explain.user_line",
        },
        "viz/formulas.py": {"deferred"},
        "viz/holders.py": {"weft.engine.explain.is_ours"},
        "viz/kernels.py": {
            f"weft.engine.explain.{name}"
            for name in ("Line", "Observer", "Run", "observe", "run_until_compiled")
        },
        "viz/memory.py": {"weft.core.promised.Promised", "Promised", "weft.engine.explain.Line"},
    }
    assert {"core/promised.py", "engine/defer.py", "engine/explain.py", "families/map.py"} < knowing.keys()


@pytest.mark.parametrize(
    "line",
    [
        "from ..engine.defer import keep_all", "from ..engine import fusion", "import weft.core.promised",
        "plan.deferred is None", "getattr(plan, 'deferred', None)", "type(storage) is Promised",
        "promised.Watched",
    ],
)  # fmt: skip
def test_the_search_finds(line):
    assert len(list(_knowledge_of_promises(line, ("weft", "autograd")))) == 1


# ---- Random programs -----------------------------------------------------------------------------------------------------

_VIEWS = {
    "row": lambda x: x[1:3],
    "transposed": lambda x: x.t(),
    "flat": lambda x: x.reshape(-1),
    "detach": lambda x: x.detach(),
    "wide": lambda x: x.double(),
}
_UNARY = ("exp", "sigmoid", "relu", "neg", "abs", "tanh", "clone", "square")
_BINARY = ("add", "sub", "mul", "maximum", "lt")
_step_strategy = st.one_of(
    st.tuples(st.just("unary"), st.sampled_from(_UNARY), st.integers(0, 9)),
    st.tuples(st.just("binary"), st.sampled_from(_BINARY), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("number"), st.sampled_from(_BINARY[:3]), st.integers(0, 9), st.sampled_from([2, 0.5, -1.25])),
    st.tuples(st.just("inplace"), st.sampled_from(("add_", "mul_", "sub_")), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("out"), st.sampled_from(("add", "mul")), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("write"), st.integers(0, 9), st.integers(0, 3)),
    st.tuples(st.just("reduce"), st.sampled_from(("sum", "amax")), st.integers(0, 9), st.integers(0, 1)),
    st.tuples(st.just("where"), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("recorded"), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("view"), st.sampled_from(tuple(_VIEWS)), st.integers(0, 9)),
    st.tuples(st.just("array"), st.integers(0, 9)),
    st.tuples(st.just("look"), st.integers(0, 9)),
    st.tuples(st.just("del"), st.integers(0, 9)),
    st.tuples(st.just("fail"), st.integers(0, 9)),
    st.tuples(st.just("backward"), st.integers(0, 9)),
    st.tuples(st.just("thread"), st.integers(0, 9)),
    st.tuples(st.just("keep all")),
)  # fmt: skip


def run(lib, program):
    """What a program sees. Values and gradients are compared at its end, too."""
    live = [lib.tensor(np.random.default_rng(k).normal(size=(4, 4)).astype(np.float32)) for k in range(3)]
    seen, arrays = [], []

    def pick(number):
        return live[number % len(live)]

    for kind, *rest in program:
        try:
            match kind:
                case "unary":
                    live.append(getattr(lib, rest[0])(pick(rest[1])))
                case "binary":
                    live.append(getattr(lib, rest[0])(pick(rest[1]), pick(rest[2])))
                case "number":
                    live.append(getattr(lib, rest[0])(pick(rest[1]), rest[2]))
                case "inplace":
                    getattr(pick(rest[1]), rest[0])(pick(rest[2]))
                case "out":
                    x, y, out = map(pick, rest[1:])
                    if x.shape == y.shape == out.shape:
                        getattr(lib, rest[0])(x, y, out=out)
                case "write":
                    pick(rest[0])[rest[1] % 2] = 0.5
                case "reduce":
                    live.append(getattr(pick(rest[1]), rest[0])(rest[2], keepdim=True))
                case "where":
                    x, y, z = map(pick, rest)
                    live.append(lib.where(x > y, x, z))
                case "recorded":
                    x, y = pick(rest[0]).detach().requires_grad_(), pick(rest[1])
                    z = (x * y).tanh().mul(y)
                    z.backward(lib.ones_like(z))
                    live += [z, x.grad]
                case "view":
                    live.append(_VIEWS[rest[0]](pick(rest[1])))
                case "array":
                    array = pick(rest[0]).detach().numpy()
                    if array.dtype.kind == "f":
                        arrays.append(array)
                        array *= 0.5
                case "look":
                    seen.append(pick(rest[0]).tolist())
                case "del":
                    if len(live) > 2:
                        del live[rest[0] % len(live)]
                case "fail":
                    pick(rest[0]) + lib.ones(7)
                case "backward":
                    x = pick(rest[0]).detach().clone().requires_grad_()
                    y = (x * pick(rest[0]).detach()).sigmoid() * x
                    y.sum().backward()
                    live.append(x.grad)
                case "thread":
                    thread = threading.Thread(target=lambda x: seen.append(x.tolist()), args=(pick(rest[0]),))
                    thread.start()
                    thread.join()
                case "keep all" if lib is torch:
                    torch.synchronize()
        except (RuntimeError, IndexError) as error:
            seen.append(type(error).__name__)
    return seen, [each.detach().tolist() for each in live], [each.tolist() for each in arrays]


def as_text(value):
    return repr(value).replace("-nan", "nan")


@settings(max_examples=40)
@given(program=st.lists(_step_strategy, max_size=12), least=st.sampled_from([1, 9, 16]))
def test_random_programs(program, least):
    defer.LEAST_ELEMENTS = least
    forget_plans()
    with np.errstate(all="ignore"):
        found = run(torch, program)
        torch.synchronize()
        with torch.eager():
            assert as_text(run(torch, program)) == as_text(found)
        theirs = run(oracle, program)
    np.testing.assert_equal(_close(found), _close(theirs))


def _close(value):
    """Floats in float16 precision, because PyTorch's last bits are others."""
    if isinstance(value, (list, tuple)):
        return [_close(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.2g}") if abs(value) > 1e-3 else 0.0
    return value
