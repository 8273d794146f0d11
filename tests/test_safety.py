"""Misuse raises PyTorch's exceptions; nothing crashes, reads foreign memory or leaves a tensor half written."""

import copy
import gc
import pickle
import subprocess
import sys
import threading
import warnings

import pytest
import torch
from expressions import evaluate, lines
from hypothesis import given, settings
from hypothesis import strategies as st

import weft

# ---- In a process of its own -------------------------------------------------------------------------------------

# What could take the process down: huge sizes, memory that became smaller, indices far outside.
_PROLOGUE = """
import gc, resource
import numpy as np
import weft as torch
F = torch.nn.functional
most = resource.getrlimit(resource.RLIMIT_AS)[1]
resource.setrlimit(resource.RLIMIT_AS, (32 << 30 if most < 0 else min(32 << 30, most), most))

def shrunk(n=100_000):
    t = torch.arange(float(n))
    t.untyped_storage().resize_(0)
    [torch.full((n,), -1.0) for _ in range(3)]
    return t

def outcome(expression):
    try:
        return repr(eval(expression))
    except Exception as error:
        return type(error).__name__
"""


def run_apart(cases: str) -> dict[str, str]:
    """expression -> repr or exception's name, from one child process."""
    program = f"{_PROLOGUE}\nfor line in {lines(cases)!r}:\n    print(line, '##', outcome(line), flush=True)"
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    found = dict(line.split(" ## ", 1) for line in child.stdout.splitlines() if " ## " in line)
    assert child.returncode == 0, f"after {list(found)[-1:]}: {child.stderr[-2000:]}"
    return found


TOO_LARGE = """
torch.empty(2**62)
torch.empty(2**40, 2**40)
torch.zeros(2**45)
torch.ones(2**45)
torch.full((2**45,), 3)
torch.rand(2**45)
torch.arange(2**45)
torch.linspace(0, 1, 2**45)
torch.hann_window(2**50)
torch.eye(2**30)
torch.randperm(2**45)
torch.empty_strided((2,), (2**62,))
torch.empty((2**62, 4), device="meta")
torch.ones(1).expand(2**40, 2**40)
torch.ones(5).as_strided((2**62, 2**62), (0, 0))
torch.ones(1).expand(10**12) + 1
torch.ones(1).expand(10**12).clone()
torch.ones(1).expand(10**12).exp()
torch.ones(1).expand(2**45).sort()
torch.ones(2**22)[:, None] + torch.ones(2**22)
torch.ones(2**22, 1) @ torch.ones(1, 2**22)
torch.cat([torch.ones(1).expand(2**45), torch.ones(1)])
torch.ones(3).repeat(2**62)
torch.ones(3).repeat_interleave(2**45)
torch.repeat_interleave(torch.tensor([2**62, 2**62, 2**62]))
torch.ones(5).resize_(2**62)
torch.ones(5).resize_(2**40, 2**40)
torch.ones(2).set_(torch.ones(5).untyped_storage(), 2**62, (2,), (1,))
torch.ones(2).set_(torch.ones(5).untyped_storage(), 0, (2,), (2**62,))
torch.ones(2).set_(torch.ones(5).untyped_storage(), 0, (2,), (-1,))
torch.UntypedStorage(2**62)
torch.UntypedStorage(4).resize_(2**62)
torch.UntypedStorage(4).resize_(None)
torch.vander(torch.ones(3), 2**50)
torch.bincount(torch.tensor([2**50]))
torch.histc(torch.tensor([1.0, 2.0]), bins=2**50)
torch.combinations(torch.ones(3), 2**40)
torch.multinomial(torch.ones(3), 2**50, replacement=True)
torch.ones(3)[::2**63 - 1][0:1].untyped_storage().resize_(2**62)
torch.fft.fft(torch.ones(3), n=2**50)
F.pad(torch.ones(2), (2**45, 0))
F.one_hot(torch.tensor([2**45]))
shrunk().as_strided((3,), (1,))
torch.lu_solve(torch.ones(2, 1), torch.eye(2), torch.tensor([5, 9], dtype=torch.int32))
torch.lu_unpack(torch.eye(2), torch.tensor([5, 9], dtype=torch.int32))
torch.linalg.ldl_solve(torch.eye(2), torch.tensor([5, -9], dtype=torch.int32), torch.ones(2, 1))
"""

SURVIVES = """
torch.ones(1).expand(10**12)[-1] ## tensor(1.)
torch.ones(1).expand(2**45)[torch.tensor([2**45 - 1, -(2**45)])] ## tensor([1., 1.])
torch.ones(1).expand(2**45)[2**45 - 3:].max(0).indices ## tensor(0)
torch.ones(1).expand(10**12) ## tensor([1., 1., 1.,  ..., 1., 1., 1.])
torch.zeros((2,) * 20).sum() ## tensor(0.)
torch.zeros((2,) * 20).transpose(0, 19).contiguous().sum((0, 2, 4, 6, 8, 10)).shape[13] ## 2
torch.zeros((2,) * 20)[(torch.tensor([0, 1]),) * 20] ## tensor([0., 0.])
torch.zeros((1,) * 64).cumsum(63).dim() ## 64
torch.zeros((1,) * 70).clone().dim() ## 70
(torch.zeros((1,) * 70) + 1)[(0,) * 70] ## tensor(1.)
torch.cat([torch.zeros((1,) * 70)] * 2, 3).shape[3] ## 2
shrunk()[99_999] ## tensor(99999.)
(shrunk() + 1).sum() > 0 ## tensor(True)
shrunk().fill_(3.0)[99_999] ## tensor(3.)
(shrunk().view(100, 1000) @ torch.ones(1000, 1))[0] ## tensor([499500.])
shrunk().numpy()[-1] ## np.float32(99999.0)
shrunk().untyped_storage().resize_(8).nbytes() ## 8
"""


def test_too_large_or_outside_is_a_runtime_error():
    found = run_apart(TOO_LARGE)
    assert {case: found[case] for case in lines(TOO_LARGE)} == dict.fromkeys(lines(TOO_LARGE), "RuntimeError")


def test_large_views_many_dims_and_shrunk_storages_are_safe():
    expected = dict(line.split(" ## ") for line in lines(SURVIVES))
    assert run_apart("\n".join(expected)) == expected


# ---- Storages --------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 40_000), min_size=1, max_size=6), st.integers(0, 9_999))
@settings(max_examples=30, deadline=None)
def test_tensors_outlive_any_resizing_of_their_storage(sizes, probe):
    t = weft.arange(10_000.0)
    for nbytes in sizes:
        t.untyped_storage().resize_(nbytes)
        assert t.untyped_storage().nbytes() == nbytes
        weft.full((10_000,), -1.0)  # would take a block that had been given back
        t[probe] = 7.0
        assert t[probe].item() == 7.0


def test_growing_keeps_what_views_of_any_length_reach():
    t = weft.arange(1000.0)
    t.untyped_storage().resize_(0)
    t[:10].resize_(20)
    assert t.untyped_storage().nbytes() == 80
    assert t[999].item() == 999.0


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
def test_copies_of_a_shrunk_storage_are_refused(copied):
    t = weft.arange(1000.0)
    t.untyped_storage().resize_(8)
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        copied(t)


def test_a_failed_set_or_resize_changes_nothing():
    t = weft.zeros(1000)
    for change in (
        lambda: t.set_(weft.ones(5).untyped_storage(), 0, (2**62,), (1,)),
        lambda: t.set_(weft.ones(5).untyped_storage(), 0, (3,), (-1,)),
        lambda: t.resize_(2**62),
        lambda: t.as_strided_((1001,), (1,)),
    ):
        with pytest.raises(RuntimeError):
            change()
        assert t.shape == (1000,) and t.untyped_storage().nbytes() == 4000


def test_numpy_views_outlive_their_tensors():
    small, large = weft.arange(10.0)[3:].numpy(), weft.arange(100_000.0).numpy()
    gc.collect()
    for count in (7, 10, 100_000):
        weft.full((count,), -1.0)
    assert small.tolist() == list(range(3, 10)) and large[-1] == 99_999


def test_a_storage_that_an_array_shares_does_not_move():
    t = weft.arange(1000.0)
    view = t.numpy()
    with pytest.raises(RuntimeError, match="not resizable"):  # as in PyTorch
        t.untyped_storage().resize_(10**6)
    weft.full((1000,), -1.0)
    assert view[999] == 999 and t[999].item() == 999


def test_cycles_are_collected():
    before = weft.cpu.memory_stats()["allocated_bytes.all.current"]
    for _ in range(100):
        t = weft.zeros(10_000)
        t.itself = t
    del t
    gc.collect()
    assert weft.cpu.memory_stats()["allocated_bytes.all.current"] <= before + 200_000


def test_threads_on_the_same_tensors():
    t, errors = weft.zeros(200_000), []

    def work(k):
        try:
            for _ in range(10):
                t.add_(1)
                t.sum()
                (t * 0.001).exp_()
                t[k::7].sort()
                weft.cat([t[: 100 * k], t[-5:]])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


# ---- An exception leaves targets as they were ----------------------------------------------------------------------

UNCHANGED = """
t.index_put_((torch.tensor([0, 1, 9]),), torch.tensor(5))
t.index_put_((torch.tensor([0, 1, -9]),), torch.tensor(5), accumulate=True)
t.__setitem__(torch.tensor([0, 1, 9]), 5)
t.__setitem__([0, 8], 5)
t.scatter_(0, torch.tensor([0, 1, 9]), 1)
t.scatter_add_(0, torch.tensor([0, 1, 9]), torch.ones(3, dtype=torch.int64))
t.scatter_reduce_(0, torch.tensor([0, 1, 9]), torch.ones(3, dtype=torch.int64), "sum")
t.index_add_(0, torch.tensor([0, 1, 9]), torch.ones(3, dtype=torch.int64))
t.index_copy_(0, torch.tensor([0, 1, 9]), torch.ones(3, dtype=torch.int64))
t.index_fill_(0, torch.tensor([0, 1, 9]), 5)
t.index_reduce_(0, torch.tensor([0, 1, 9]), torch.ones(3, dtype=torch.int64), "prod")
t.put_(torch.tensor([0, 1, 9]), torch.ones(3, dtype=torch.int64))
t.floor_divide_(torch.tensor([1, 1, 1, 0]))
t.remainder_(torch.tensor([1, 1, 1, 0]))
t.fmod_(torch.tensor([1, 1, 1, 0]))
t.pow_(-1)
t.copy_(torch.ones(5))
t.add_(torch.ones(4))
t.add_(torch.ones(2, 4))
t.masked_scatter_(torch.ones(4, dtype=torch.bool), torch.ones(2, dtype=torch.int64))
torch.floor_divide(t, torch.tensor([1, 1, 1, 0]), out=t)
torch.add(t, 1.5, out=t)
torch.sort(torch.tensor([3.0, 1.0, 2.0, 0.0]), out=(torch.empty(4), t.int()))
torch.sort(torch.tensor([3.0, 1.0, 2.0, 0.0]), out=(t, t))
torch.cat([torch.ones(4)], out=t)
torch.cat([t[:3]], out=t[1:])
torch.index_select(t, 0, torch.tensor([0, 9]), out=t)
"""


@pytest.mark.parametrize("expression", lines(UNCHANGED))
def test_failing_writes_leave_the_target(expression):
    t = weft.arange(1, 5)
    error, expected = evaluate(weft, expression, t=t), evaluate(torch, expression, t=torch.arange(1, 5))
    assert isinstance(error, Exception) and type(error) is type(expected), (error, expected)
    assert t.tolist() == [1, 2, 3, 4]


def test_no_result_of_several_is_written_if_one_does_not_fit():
    values = weft.zeros(3)
    with pytest.raises(RuntimeError, match="Expected out tensor"):
        weft.sort(weft.tensor([3.0, 1.0, 2.0]), out=(values, weft.zeros(3)))
    assert values.tolist() == [0, 0, 0]


# ---- Overlapping memory ----------------------------------------------------------------------------------------------

OVERLAPS = """
t[1:].copy_(t[:-1])
t[:-1].copy_(t[1:])
torch.add(t[:-1], 1, out=t[1:])
t.copy_(t.flip(0))
t.div_(t[2])
t.fill_(t[2])
t.masked_fill_(t > 2, t[2])
t.view(2, 3).add_(t.view(2, 3)[:1])
t.view(2, 3)[:, :2].mul_(t.view(2, 3)[:, 1:])
t.view(torch.int32).copy_(t)
t.view(torch.float64)[:3].copy_(t[:3])
t.view(2, 3).t().add_(t.view(3, 2))
t.as_strided((3, 3), (1, 1)).sum(0)
t.as_strided((3, 3), (1, 1)).sort(0)
t.as_strided((3, 3), (1, 1)) @ t.as_strided((3, 3), (1, 1))
t.expand(3, 6).add_(1)
t.expand(3, 6).zero_()
t.expand(3, 6).copy_(t)
t.expand(3, 6).index_put_((torch.tensor([0]),), torch.tensor(1.0))
t[:1].expand(6).cumsum_(0)
torch.cat([t[:3]], out=t[2:5])
torch.gather(t, 0, torch.tensor([5, 4, 3, 2, 1, 0]), out=t)
torch.cumsum(t, 0, out=t)
"""


@pytest.mark.parametrize("expression", lines(OVERLAPS))
def test_overlapping_memory_as_pytorch(expression):
    ours, theirs = weft.arange(6.0), torch.arange(6.0)
    got, expected = evaluate(weft, expression, t=ours), evaluate(torch, expression, t=theirs)
    assert (type(got) if isinstance(got, Exception) else repr(got)) == (
        type(expected) if isinstance(expected, Exception) else repr(expected)
    )
    assert ours.tolist() == theirs.tolist()


# ---- Indices and sizes outside of their ranges -----------------------------------------------------------------------

OUTSIDE = """
torch.ones(3)[{i}]
torch.ones(3)[torch.tensor([{i}])]
torch.ones(3)[None, :, None][0, {i}]
torch.ones(3).select(0, {i})
torch.ones(3).__setitem__({i}, 1)
torch.ones(3).__setitem__(torch.tensor([{i}]), 1)
torch.gather(torch.ones(3), 0, torch.tensor([{i}]))
torch.ones(3).scatter(0, torch.tensor([{i}]), 1.0)
torch.ones(3).scatter_add(0, torch.tensor([{i}]), torch.ones(1))
torch.index_select(torch.ones(3), 0, torch.tensor([{i}]))
torch.take(torch.ones(3), torch.tensor([{i}]))
torch.ones(3).put_(torch.tensor([{i}]), torch.ones(1))
torch.ones(3).index_add_(0, torch.tensor([{i}]), torch.ones(1))
torch.ones(3).index_copy_(0, torch.tensor([{i}]), torch.ones(1))
torch.ones(3).index_fill_(0, torch.tensor([{i}]), 1.0)
torch.take_along_dim(torch.ones(3), torch.tensor([{i}]), 0)
torch.nn.functional.embedding(torch.tensor([{i}]), torch.ones(3, 2))
torch.nn.functional.one_hot(torch.tensor([{i}]), 3)
torch.nn.functional.nll_loss(torch.ones(2, 3), torch.tensor([0, {i}]))
torch.nn.functional.cross_entropy(torch.ones(2, 3), torch.tensor([0, {i}]))
torch.nn.functional.max_unpool1d(torch.ones(1, 1, 2), torch.tensor([[[0, {i}]]]), 2)
torch.ones(3).narrow(0, {i}, 1)
torch.ones(3).sum({i})
torch.ones(3).transpose(0, {i})
torch.ones(3).unsqueeze({i})
torch.ones(3).size({i})
torch.ones(3).unfold(0, {i}, 1)
torch.ones(3).kthvalue({i})
torch.ones(3).topk({i})
"""


@pytest.mark.parametrize("index", [9, -9, 2**40, -(2**63), 2**63 - 1])
def test_indices_outside(index):
    for template in lines(OUTSIDE):
        expression = template.format(i=index)
        got, expected = evaluate(weft, expression), evaluate(torch, expression)
        if isinstance(got, Exception) or isinstance(expected, Exception):
            assert type(got) is type(expected), f"{expression}: {got!r} instead of {expected!r}"
        else:
            assert repr(got) == repr(expected), expression


@given(
    st.integers(-(2**63), 2**63 - 1) | st.integers(-7, 7) | st.none(),
    st.integers(-(2**63), 2**63 - 1) | st.integers(-7, 7) | st.none(),
    st.integers(1, 9),
)
@settings(max_examples=100, deadline=None)
def test_slices_of_any_bounds(start, stop, step):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's, about bounds that it truncates
        expected = torch.arange(5)[start:stop:step].tolist()
    assert weft.arange(5)[start:stop:step].tolist() == expected


BOUNDS_OF_INT64 = """
torch.tensor(2**63)
torch.tensor(-(2**63)).abs()
torch.tensor([-(2**63)]) // -1
torch.tensor([-(2**63)]) % -1
torch.fmod(torch.tensor([-(2**63)]), torch.tensor([-1]))
torch.tensor([1]) // 0
torch.tensor([1]) % torch.tensor([0])
torch.tensor(1) << 64
torch.tensor(1) << -1
torch.tensor(-1) >> 64
torch.tensor(2) ** 64
torch.tensor(2) ** -1
torch.tensor([0, -1, 2]) ** torch.tensor([-1, -3, -3])
torch.tensor([2**63 - 1, 1]).sum()
torch.tensor([2**63 - 1, 1]).cumsum(0)
torch.tensor([2**62, 4]).prod()
torch.gcd(torch.tensor([-(2**63)]), torch.tensor([0]))
torch.arange(2**63 - 2, 2**63 - 1)
torch.arange(2**63)
torch.arange(0, float("inf"))
torch.linspace(-(2**63), 2**63 - 1, 3, dtype=torch.int64)
torch.randint(0, 2**64, (2,))
torch.ones(5).narrow(0, 2**63 - 1, 2**63 - 1)
torch.ones(5).roll(2**62)
torch.ones(5, 5).triu(2**62)
torch.ones(5, 5).tril(-(2**63))
torch.ones(5, 5).diagonal(-(2**63))
torch.ones(2, 3).reshape(2**62, -1)
torch.ones(0).view(-1, 2**40, 2**40)
torch.tensor([nan, inf, -inf, 300.0, -1.0]).to(torch.bool)
torch.tensor([nan, inf, 0.5, -0.5, 1.5, -0.0]).round()
torch.tensor([nan, 1, -0.0, 0.0, -inf]).sort()
torch.tensor([1e-45, 1e39, -0.0]).half()
torch.histc(torch.tensor([nan, 1.0]))
torch.histc(torch.tensor([1.0, nan, inf, 5.0]), bins=4, min=0, max=5)
torch.tensor([1.0, nan]).quantile(0.5)
torch.ones(3).quantile(nan)
torch.multinomial(torch.tensor([nan, 2.0]), 1)
torch.multinomial(torch.tensor([]), 1, replacement=True)
torch.multinomial(torch.tensor([0.0, 0.0]), 1)
torch.bernoulli(torch.tensor([nan]))
torch.poisson(torch.tensor([-1.0]))
torch.bincount(torch.tensor([-1]))
int(torch.tensor(inf))
"""


@pytest.mark.parametrize("expression", lines(BOUNDS_OF_INT64))
def test_limits_of_numbers(expression):
    got, expected = evaluate(weft, expression), evaluate(torch, expression)
    if isinstance(expected, Exception):
        assert type(got) is type(expected), (got, expected)
    else:
        assert repr(got) == repr(expected)


@pytest.mark.parametrize("depth", [129, 2000])
def test_deeply_nested_lists(depth):
    nested = 1
    for _ in range(depth):
        nested = [nested]
    with pytest.raises(ValueError, match="too many dimensions"):
        weft.tensor(nested)


def test_a_list_within_itself():
    nested = []
    nested.append(nested)
    with pytest.raises(ValueError, match="too many dimensions"):
        weft.tensor(nested)


# ---- Wrong types -----------------------------------------------------------------------------------------------------

WRONG = "None 'a' [1.5] {} object() 1.5 -7 2**70 (1,'b') [None] 1j b'a' True".split()

ARGUMENTS = """
torch.{f}(?)  # exp sin abs sqrt sigmoid isnan sign floor clone t numel sum max unique bincount det trace conj real
torch.{f}(?)  # flatten nonzero cumsum square tanh relu argmax mean std var sort topk prod cat stack tensor
torch.{f}(A, ?)  # sum mean amax max argmax std logsumexp cumsum sort argsort topk kthvalue median mode any prod norm
torch.{f}(A, ?)  # unsqueeze squeeze permute reshape tile flip roll flatten split chunk diagonal tril repeat_interleave
torch.{f}(A, ?)  # masked_select take add mul div pow clamp remainder maximum atan2 eq lt fmod isclose matmul mm
torch.{f}(A, ?)  # equal histc quantile diff cdist broadcast_to bucketize kron tensordot unbind tensor_split
torch.{f}(A, 0, ?)  # transpose select movedim swapaxes gather index_select narrow unflatten
torch.{f}(?)  # zeros ones empty eye arange rand randperm zeros_like as_tensor from_numpy can_cast promote_types
torch.{f}(2, dtype=?)  # zeros ones rand arange
torch.{f}(2, out=?)  # zeros eye arange randperm
torch.{f}(A, out=?)  # exp sum sort argmax cumsum tril nonzero
A.{f}(?)  # view expand repeat masked_fill_ copy_ fill_ add_ resize_ set_ size to type index_fill_ new_zeros
A.{f}(0, torch.tensor([0]), ?)  # index_add index_copy index_fill
A.{f}((torch.tensor([0]),), ?)  # index_put
torch.{f}(?, torch.int8)  # promote_types can_cast
"""
_ALLOWED = (TypeError, RuntimeError, IndexError, ValueError, NotImplementedError, OverflowError)


def _calls():
    for line in lines(ARGUMENTS):
        template, names = line.split("#")
        for name in names.split():
            yield template.strip().replace("{f}", name)


@pytest.mark.parametrize("template", list(_calls()))
def test_wrong_types(template):
    for wrong in WRONG:
        expression = template.replace("?", wrong)
        got = evaluate(weft, expression, A=weft.arange(6.0).reshape(2, 3))
        expected = evaluate(torch, expression, A=torch.arange(6.0).reshape(2, 3))
        if isinstance(got, Exception):
            assert isinstance(got, _ALLOWED), f"{expression}: {got!r} instead of {expected!r}"
        if wrong in ("object()", "{}") and isinstance(expected, TypeError):
            assert isinstance(got, TypeError), f"{expression}: {got!r} instead of {expected!r}"


# ---- Messages --------------------------------------------------------------------------------------------------------

MISMATCHES = """
torch.ones(2, 3) + torch.ones(2, 4)
torch.ones(2, 3).add_(torch.ones(7, 3))
torch.ones(2, 3) @ torch.ones(5, 4)
torch.ones(2, 3).mm(torch.ones(5, 4))
torch.ones(7, 2, 3).bmm(torch.ones(7, 5, 4))
torch.ones(2, 3).mv(torch.ones(4))
torch.ones(3).dot(torch.ones(4))
torch.ones(7, 2, 3) @ torch.ones(5, 3, 2)
torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 5))
torch.cat([torch.ones(2, 3), torch.ones(5, 4)])
torch.stack([torch.ones(2), torch.ones(3)])
torch.ones(2, 3).reshape(7)
torch.ones(2, 3).view(4, 5)
torch.ones(2, 3).t().view(6)
torch.ones(2, 3).expand(4, 5)
torch.ones(2, 3)[torch.tensor([0, 1]), torch.tensor([0, 1, 2])]
torch.ones(2, 3)[torch.ones(2, 4) > 0]
torch.where(torch.ones(2) > 0, torch.ones(3), torch.ones(4))
"""


@pytest.mark.parametrize("expression", lines(MISMATCHES))
def test_messages_start_like_pytorchs_and_name_all_sizes(expression):
    got, expected = evaluate(weft, expression), evaluate(torch, expression)
    assert type(got) is type(expected)
    start = str(expected).splitlines()[0][:40]
    assert str(got).startswith(start), (str(got), start)
    sizes = {int(size) for size in expression if size.isdigit() and size not in "01"}
    assert all(str(size) in str(got) for size in sizes), str(got)


def test_the_dimension_that_does_not_fit_is_marked():
    with pytest.raises(RuntimeError) as caught:
        weft.ones(8, 10, 3) * weft.ones(7, 3)
    message = str(caught.value).splitlines()
    assert message[-3:] == ["  a: 8  10  3", "  b:     7  3", "        ^^"]
