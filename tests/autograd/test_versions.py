"""Each write is counted, so that backward refuses to use what was overwritten."""

import pytest
import torch

import weft

# Writes of t, three floats, through t itself, a view of it or its storage.
WRITES = """
t.add_(1)
t.copy_(t + 1)
t.fill_(1)
t.zero_()
t.clamp_(0, 1)
t.lt_(2)
t.cumsum_(0)
t.random_()
t.bernoulli_(0.5)
t.normal_()
t[0] = 1
t[:] = lib.ones(3)
t[True] = 1
t[i] = 2
t[i] = lib.ones(2)
t[t > 1] = 1
t[t > 1] = lib.ones(2)
t[t > 5] = 1
t.view(3, 1)[i] = 1
t.view(3, 1)[t > 1] = 1
t.view(3, 1).add_(1)
t.expand(2, 3)[0].mul_(2)
t.detach().add_(1)
lib.autograd.graph.increment_version(t)
lib.autograd.graph.increment_version([v, t])
t.index_put_((i,), v)
t.index_put_((i,), v, accumulate=True)
t.index_put_((t > 1,), v)
t.index_put_((t > 1,), v[0])
t.index_fill_(0, i, 1.0)
t.index_copy_(0, i, v)
t.index_add_(0, i, v)
t.index_reduce_(0, i, v, "prod")
t.scatter_(0, i, v)
t.scatter_(0, i, 1.0)
t.scatter_(0, i, v, reduce="add")
t.scatter_add_(0, i, v)
t.scatter_reduce_(0, i, v, "amax")
t.put_(i, v)
t.put_(i, v, accumulate=True)
t.masked_fill_(t > 1, 1.0)
t.masked_scatter_(t > 1, v)
t.view(1, 3).fill_diagonal_(1)
t.view(3, 1).tril_()
t.addcmul_(t, t)
lib.add(t, 1, out=t)
lib.exp(lib.ones(3), out=t)
lib.sum(lib.ones(3, 3), 0, out=t)
lib.cat([v, v[:1]], out=t)
lib.matmul(lib.ones(3, 3), v[:1].expand(3), out=t)
lib.take(v, i[:1].expand(3), out=t)
lib.sort(lib.ones(3), out=(t, lib.zeros(3, dtype=lib.int64)))
lib.arange(3.0, out=t)
lib.rand(3, out=t)
lib.zeros(3, out=t)
lib.nn.init.ones_(t)
lib._foreach_add_([t], 1)
lib.nn.functional.relu_(t)
lib.nn.functional.dropout(t, 0.5, True, True)
lib.nn.utils.clip_grad_norm_(owner(lib, t), 0.1)
""".strip().splitlines()


def owner(lib, grad, data=None):
    """Parameters: one with this gradient, on the memory of `data` if that is given."""
    parameter = lib.nn.Parameter(lib.zeros(3) if data is None else data)
    parameter.grad = grad
    return [parameter]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.filterwarnings("ignore")
def test_what_was_saved_may_not_be_overwritten(write):
    for lib in (torch, weft):
        lib.manual_seed(0)
        t, i, v = lib.tensor([1.0, 2.0, 3.0]), lib.tensor([0, 2]), lib.tensor([5.0, 6.0])
        x = lib.ones(3, requires_grad=True)
        y = x * t
        before = t._version
        with lib.no_grad():
            exec(write, {"lib": lib, "t": t, "i": i, "v": v, "owner": owner})
        assert t._version > before, write
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


ONLY_HERE = """
u[0] = 1
u[2:5] = 1
u.fill_(1)
u.copy_(lib.UntypedStorage([1] * 12))
u.byteswap(lib.float32)
t.storage()[0] = 1.0
t.storage()[0:2] = 1.0
t.storage().fill_(1.0)
t.storage().copy_(lib.FloatStorage([1, 2, 3]))
t.data.add_(1)
lib.nn.functional.batch_norm(lib.ones(2, 3), t, lib.ones(3), training=True)
lib.nn.functional.batch_norm(lib.ones(2, 3), lib.ones(3), t, training=True)
lib.optim.SGD(owner(lib, lib.ones(3), t), 0.1).step()
lib.optim.Adam(owner(lib, lib.ones(3), t), 0.1).step()
lib.optim.Adam(owner(lib, lib.ones(3), t), 0.1, foreach=False).step()
""".strip().splitlines()


@pytest.mark.parametrize("write", ONLY_HERE)
@pytest.mark.filterwarnings("ignore")
def test_writes_that_pytorch_does_not_count(write):
    """Versions belong to storages, so a write counts wherever it comes from: an error is better than a wrong gradient."""
    t, x = weft.tensor([1.0, 2.0, 3.0]), weft.ones(3, requires_grad=True)
    y = x * t
    before = t._version
    exec(write, {"lib": weft, "t": t, "u": t.untyped_storage(), "owner": owner})
    assert t._version == t.untyped_storage().version > before
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_reads_do_not_count():
    t = weft.tensor([1.0, 2.0, 3.0])
    mask, index = t > 1, weft.tensor([0, 2])
    for _ in (t[index], t[mask], t.index_select(0, index), t.gather(0, index), t.sort(), t + 1, t.view(3, 1)):
        assert t._version == mask._version == index._version == 0
    weft.zeros(3)[index] = t[:2]
    weft.zeros(3)[mask] = t[:2]
    weft.zeros(3).masked_scatter_(mask, t)
    assert t._version == mask._version == index._version == 0


def test_a_refused_write_does_not_count():
    t = weft.tensor([1.0, 2.0, 3.0])
    with pytest.raises(IndexError):
        t[weft.tensor([0, 3])] = 1
    with pytest.raises(RuntimeError):
        t.add_(weft.ones(2))
    assert t._version == 0 and t.tolist() == [1, 2, 3]


@pytest.mark.parametrize("power", ["x.float_power(t)", "t.float_power(x)", "x.double().float_power(t)"])
def test_float_power_keeps_converted_copies(power):
    gradients = []
    for lib in (torch, weft):
        x, t = lib.tensor([2.0, 3.0], requires_grad=True), lib.tensor([1.5, 0.5])
        result = eval(power, {"x": x, "t": t})
        t.zero_()
        result.sum().backward()
        gradients.append(x.grad.tolist())
    assert gradients[0] == pytest.approx(gradients[1])


def test_float_power_of_doubles_keeps_them_as_they_are():
    for lib in (torch, weft):
        x, t = lib.ones(2, dtype=lib.float64, requires_grad=True), lib.ones(2, dtype=lib.float64)
        result = x.float_power(t)
        t.zero_()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            result.sum().backward()
