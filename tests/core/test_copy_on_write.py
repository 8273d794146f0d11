"""Lazy clones share memory until one side is written, whichever way it is written."""

import io

import pytest
import torch

import weft

WRITES = {
    "number": lambda t, a: a.add_(1),
    "tensor": lambda t, a: a.mul_(t.full((2, 3), 2.0)),
    "unary": lambda t, a: a.neg_(),
    "copy": lambda t, a: a.copy_(t.ones(2, 3)),
    "fill": lambda t, a: a.fill_(7),
    "zero": lambda t, a: a.zero_(),
    "out": lambda t, a: t.add(t.ones(2, 3), 1, out=a),
    "unary out": lambda t, a: t.exp(t.ones(2, 3), out=a),
    "product": lambda t, a: t.mm(t.ones(2, 2), t.ones(2, 3), out=a),
    "joined": lambda t, a: t.cat([t.ones(1, 3), t.zeros(1, 3)], out=a),
    "view": lambda t, a: a.view(-1)[1:3].sub_(5),
    "index": lambda t, a: a.__setitem__((0, t.tensor([2, 0])), t.tensor([8.0, 9.0])),
    "mask": lambda t, a: a.masked_fill_(a > 2, -1),
    "boolean index": lambda t, a: a.__setitem__(a > 2, -1),
    "scatter": lambda t, a: a.scatter_(1, t.tensor([[1], [2]]), 6.0),
    "index add": lambda t, a: a.index_add_(0, t.tensor([1]), t.ones(1, 3)),
    "update": lambda t, a: t._foreach_add_([a], 3),
    "optimizer": lambda t, a: _step(t, a),
    "norm": lambda t, a: t.nn.functional.batch_norm(t.arange(12.0).view(4, 3), a[0], a[1], training=True),
    "clamp": lambda t, a: t.nn.functional.relu(a.sub_(2), inplace=True),
    "random": lambda t, a: a.uniform_(9, 9.5).trunc_(),
    "resize": lambda t, a: a.resize_(1, 2).add_(1),
    "storage": lambda t, a: a.untyped_storage().fill_(0),
    "byte": lambda t, a: a.untyped_storage().__setitem__(3, 64),
    "array": lambda t, a: a.numpy().fill(4),
    "capsule": lambda t, a: t.from_dlpack(a).add_(1),
    "shared": lambda t, a: a.share_memory_().add_(1),
}


def _step(t, a):
    a.grad = t.ones(2, 3)
    t.optim.SGD([a], lr=0.5).step()


@pytest.mark.parametrize("side", ["original", "clone"])
@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_seen_on_one_side(name, side):
    results = []
    for t in (torch, weft):
        original = t.arange(6.0).view(2, 3)
        clone = original._lazy_clone()
        written, other = (original, clone) if side == "original" else (clone, original)
        WRITES[name](t, written)
        results.append((written.tolist(), other.tolist()))
    assert results[1] == results[0]
    assert results[1][1] == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("name", WRITES)
def test_writes_that_machine_code_or_replays_take(name):
    """A busy process learns calls on ordinary tensors; they must not be repeated on shared memory."""
    for _ in range(40):
        WRITES[name](weft, weft.arange(6.0).view(2, 3))
    original = weft.arange(6.0).view(2, 3)
    clone = original._lazy_clone()
    WRITES[name](weft, clone)
    assert original.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_larger_size():
    """PyTorch stops with an internal error."""
    original = weft.arange(6.0)
    clone = original._lazy_clone()
    original.resize_(8).fill_(2)
    assert (original.tolist(), clone.tolist()) == ([2.0] * 8, [0, 1, 2, 3, 4, 5])


def test_a_compiled_function_that_writes():
    @weft.compile
    def twice(a):
        return a.mul_(2)

    for _ in range(3):
        twice(weft.ones(4))
    original = weft.ones(4)
    clone = original._lazy_clone()
    assert twice(clone).tolist() == [2, 2, 2, 2] and original.tolist() == [1, 1, 1, 1]


def test_memory_and_marks():
    """As in PyTorch: the side that is written first gets new memory, the last one keeps the old memory."""
    for t in (torch, weft):
        a = t.arange(4.0)
        storage, address = t._C._storage_address(a), t._C._data_address(a)
        b = a._lazy_clone()
        c = b._lazy_clone()
        view = a[1:]
        assert all(map(t._C._is_cow_tensor, (a, b, c, view)))
        assert t._C._storage_address(a) == storage != t._C._storage_address(b)
        assert t._C._data_address(a) == t._C._data_address(b) == t._C._data_address(c) == address
        (a + b + c).exp()
        assert all(map(t._C._is_cow_tensor, (a, b, c)))
        view += 1
        assert not t._C._is_cow_tensor(a) and t._C._is_cow_tensor(b)
        assert t._C._data_address(a) != address == t._C._data_address(b)
        del c
        b.add_(1)
        assert not t._C._is_cow_tensor(b) and t._C._data_address(b) == address
        assert (a.tolist(), b.tolist()) == ([0, 2, 3, 4], [1, 2, 3, 4])
        assert b.data_ptr() == address


def test_the_block_lives_as_long_as_one_of_its_storages():
    original = weft.full((1000,), 3.0)
    clone = original._lazy_clone()
    del original
    others = [weft.zeros(1000) for _ in range(10)]
    assert clone.eq(3).all() and not any(each.any() for each in others)
    address = weft._C._data_address(clone)
    del clone, others
    assert any(weft._C._data_address(each) == address for each in [weft.zeros(1000) for _ in range(12)])


def test_strides_and_gradients():
    for t in (torch, weft):
        a = t.arange(6.0, requires_grad=True)
        b = a.view(2, 3)[:, 1:]._lazy_clone()
        assert (b.stride(), b.storage_offset()) == ((3, 1), 1)
        assert type(b.grad_fn).__name__ == "LazyCloneBackward0"
        (b * b).sum().backward()
        assert a.grad.tolist() == [0, 2, 4, 0, 8, 10]
        assert t._lazy_clone(t.ones(2, device="meta")).device.type == "meta"


def test_versions():
    """A saved tensor whose memory becomes another block is still the version that was saved."""
    for t in (torch, weft):
        a = t.ones(2, requires_grad=True)
        b = a * 1
        c = b._lazy_clone()
        d = b * b
        c.add_(1)
        d.sum().backward()
        assert a.grad.tolist() == [2, 2] and (b._version, c._version) == (0, 1)


def test_memory_of_others_is_copied_at_once():
    array = weft.ones(3).numpy()
    tensor = weft.from_numpy(array)
    clone = tensor._lazy_clone()
    array[0] = 5
    assert clone.tolist() == [1, 1, 1] and not weft._C._is_cow_tensor(clone)


def test_waiting_work_and_vmap():
    a = weft.arange(100.0)
    b = (a * 2 + 1).relu()
    c = b._lazy_clone()
    b.mul_(0)
    assert c.tolist() == [2 * k + 1 for k in range(100)]
    assert (
        weft.func.vmap(lambda x: x._lazy_clone().add_(1))(a.view(50, 2)).view(-1).tolist() == (a + 1).tolist()
    )


def test_a_lazy_clone_is_saved():
    file = io.BytesIO()
    a = weft.arange(3.0)
    weft.save([a, a._lazy_clone()], file)
    first, second = weft.load(io.BytesIO(file.getvalue()))
    first.add_(1)
    assert (first.tolist(), second.tolist()) == ([1, 2, 3], [0, 1, 2])
