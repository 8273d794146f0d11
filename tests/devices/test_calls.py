"""Ops of each family, copies, files and training on a device: they give the CPU's results.

The device is the reference device, or the one that TESTED_DEVICE names.
"""

import copy
import io
import pickle

import pytest
from on_device import HERE, check

import weft

A = weft.tensor([[3.0, -1.0, 2.0], [0.5, 4.0, -2.5]])
B = weft.tensor([[1.0, 0.0, -3.0], [2.0, 2.0, 7.0]])
INDEX = weft.tensor([[0, 2, 2], [1, 0, 1]])
MASK = A > 0
STACK = weft.linspace(-3, 4, 72).reshape(3, 2, 3, 4)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (lambda a, b: a * b + 2, (A, B)),
        (lambda a, b: a.T.contiguous() - b.T, (A, B)),
        (lambda a: a.to(weft.bfloat16) / 3, (A,)),
        (lambda a: (a * 1j).conj() * a, (A,)),
        (lambda a: (a.int() << 2) ^ 5, (A,)),
        (lambda a: weft.where(a > 0, a, -7.0), (A,)),
        (lambda a: a.clone().mul_(3).add_(a), (A,)),
        (lambda a: a.sum(), (A,)),
        (lambda a: a.mean(0, keepdim=True), (A,)),
        (lambda a: a.max(1), (A,)),
        (lambda a: a.var(1), (A,)),
        (lambda a: a[:0].sum(0), (A,)),
        (lambda a: a.cumsum(1), (A,)),
        (lambda a: a.cummax(0), (A,)),
        (lambda a: weft.where(a > 2, a, -weft.inf).logcumsumexp(1), (A,)),
        (lambda a, i: a.gather(1, i), (A, INDEX)),
        (lambda a, i, b: a.scatter(1, i, b), (A, INDEX, B)),
        (lambda a, i, b: a.scatter_add(1, i, b), (A, INDEX, B)),
        (lambda a, i: a[:, i[0]], (A, INDEX)),
        (lambda a, m: a[m], (A, MASK)),
        (lambda a, m, b: a.masked_scatter(m, b), (A, MASK, B)),
        (lambda m: m.nonzero(), (MASK,)),
        (lambda a, b: a @ b.T, (A, B)),
        (lambda a, b: a.long() @ b.T.long(), (A, B)),
        (lambda a, b: a.bfloat16() @ b.T.bfloat16(), (A, B)),
        (lambda a, b: weft.cat([a, b], 1), (A, B)),
        (lambda a: a.softmax(1), (A,)),
        (lambda a, b: weft.nn.functional.linear(a, b), (A, B)),
        (
            lambda a, b: weft.native_batch_norm(a, b, b.neg(), b.clone(), b.abs(), True, 0.1, 0.5),
            (STACK, A[:, 1]),
        ),
        (lambda a: a.sort(1), (A,)),
        (lambda a: weft.linalg.svdvals(a), (A,)),
        (lambda a: weft.special.zeta(a.abs() + 2, 1.5), (A,)),
        (lambda a: weft.fft.rfft(a), (A,)),
    ],
)
def test_ops_give_the_results_of_the_cpu(function, arguments):
    check(function, *arguments)


def test_gradients():
    def gradients(a, b):
        a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
        (a @ b.T).tanh().cumsum(0).gather(
            1, weft.zeros(2, 1, dtype=weft.int64, device=a.device)
        ).sum().backward()
        return a.grad, b.grad

    check(gradients, A, B)


def test_indices_out_of_range_are_reported():
    with pytest.raises(RuntimeError, match="index 5 is out of bounds"):
        A.to(HERE).gather(1, (INDEX + 5).to(HERE))
    there = A.to(HERE)
    with pytest.raises(RuntimeError, match="index 5 is out of bounds"):
        there.scatter_(1, (INDEX + 5).to(HERE), 1.0)
    assert weft.equal(there.cpu(), A)
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        there[weft.tensor([0, 9], device=HERE)]


def test_copies_between_devices():
    there = A.T.to(HERE)
    assert there.stride() == A.T.stride() and weft.equal(there.cpu(), A.T)
    assert there.to(HERE) is there
    assert weft.equal(weft.zeros(2, 3).copy_(there.T), A)
    assert there[1, 1].item() == 4 and there.tolist() == A.T.tolist()
    assert repr(there[0]) == f"tensor([3.0000, 0.5000], device='{HERE}')"
    leaf = A.clone().requires_grad_()
    (leaf.to(HERE) * 2).sum().backward()
    assert leaf.grad.device.type == "cpu" and weft.equal(leaf.grad, weft.full((2, 3), 2.0))


def test_elements_of_the_cpu_join_tensors_of_a_device():
    scale = weft.tensor(3.0)
    assert weft.equal((scale * A.to(HERE)).cpu(), scale * A)
    weft.testing.assert_close(A.to(HERE).div_(scale).cpu(), A / scale)  # XLA multiplies by 1 / scale
    assert weft.equal(weft.where(MASK.to(HERE), A.to(HERE), scale).cpu(), weft.where(MASK, A, scale))
    leaf = scale.clone().requires_grad_()
    (leaf * A.to(HERE)).sum().backward()
    assert leaf.grad.device.type == "cpu" and leaf.grad.item() == A.sum().item()
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        scale.add_(weft.tensor(1.0, device=HERE))


def test_indices_may_be_on_the_cpu():
    there, rows = A.to(HERE).requires_grad_(), weft.tensor([1, 0, 1])
    taken = there[rows]
    assert weft.equal(taken.cpu(), A[rows])
    taken.sum().backward()
    assert weft.equal(there.grad.cpu(), weft.tensor([[1.0] * 3, [2.0] * 3]))
    put = A.to(HERE)
    put[rows[:2]] = weft.tensor(5.0)
    assert weft.equal(put.cpu(), weft.full((2, 3), 5.0))
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        there[weft.tensor([9])]
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        there.detach().index_select(0, rows)


def test_devices_do_not_mix():
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        A + B.to(HERE)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        A.to(HERE) @ B.T


def test_storages():
    storage = weft.UntypedStorage([1, 2, 3, 4], device=HERE)
    storage[1:3] = 9
    storage[0] = 7
    assert storage.tolist() == [7, 9, 9, 4] == storage.cpu().tolist()
    assert storage.clone().device == weft.device(HERE)
    storage.resize_(100)
    assert storage[:4].tolist() == [7, 9, 9, 4]


def test_files():
    file = io.BytesIO()
    there = A.to(HERE)
    weft.save({"whole": there, "row": there[1]}, file)
    file.seek(0)
    found = weft.load(file)
    assert found["row"].device == weft.device(HERE) and weft.equal(found["row"].cpu(), A[1])
    assert found["row"].untyped_storage().data_ptr() == found["whole"].untyped_storage().data_ptr()
    file.seek(0)
    assert weft.load(file, map_location="cpu")["row"].device.type == "cpu"
    assert weft.equal(copy.deepcopy(there).cpu(), A) and weft.equal(
        pickle.loads(pickle.dumps(there)).cpu(), A
    )


def test_a_step_of_training_is_that_of_the_cpu():
    weft.manual_seed(0)
    net = weft.nn.Sequential(weft.nn.Linear(3, 4), weft.nn.ReLU(), weft.nn.LSTM(4, 2))
    losses = []
    for where in ("cpu", HERE):
        weft.manual_seed(1)
        model = copy.deepcopy(net).to(where)
        optimizer = weft.optim.AdamW(model.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            loss = (model(A.to(where))[0] ** 2).sum()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
