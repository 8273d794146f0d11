"""Modes: recording, inference, anomaly detection; and who takes part in autograd, program by program in both libraries."""

import contextlib
import threading
from pathlib import Path

import pytest
import torch
from alike import same

import weft

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def leaf(lib, size=3):
    return lib.tensor([1.0 + k for k in range(size)], requires_grad=True)


@program
def modes_as_decorators(lib):

    @lib.no_grad()
    def f():
        return lib.is_grad_enabled()

    @lib.no_grad
    def g():
        return lib.is_grad_enabled()

    @lib.inference_mode()
    def h():
        return (lib.is_grad_enabled(), lib.is_inference_mode_enabled())

    @lib.enable_grad()
    def k():
        return lib.is_grad_enabled()

    @lib.set_grad_enabled(False)
    def s():
        return lib.is_grad_enabled()

    a = lib.is_grad_enabled()
    with lib.no_grad():
        kk = k()
    return (f(), g(), h(), kk, s(), a)


@program
def no_grad_around_a_generator(lib):

    @lib.no_grad()
    def gen():
        for _ in range(3):
            yield lib.is_grad_enabled()

    r = []
    for v in gen():
        r.append((v, lib.is_grad_enabled()))
    return r


@program
def a_generator_that_is_sent_to(lib):

    @lib.no_grad()
    def gen():
        got = yield 1
        r = [got, lib.is_grad_enabled()]
        try:
            yield 2
        except ValueError:
            r.append(lib.is_grad_enabled())
        try:
            yield 3
        finally:
            r.append(lib.is_grad_enabled())
            log.extend(r)

    log = []
    g = gen()
    a = next(g)
    b = g.send("s")
    c = g.throw(ValueError)
    g.close()
    return (a, b, c, log, lib.is_grad_enabled())


@program
def a_generator_that_returns(lib):

    @lib.no_grad()
    def gen():
        yield 1
        return 7

    def outer():
        r = yield from gen()
        log.append(r)

    log = []
    return (list(outer()), log)


@program
def set_grad_enabled_as_function_and_context(lib):
    lib.set_grad_enabled(False)
    a = lib.is_grad_enabled()
    with lib.set_grad_enabled(True):
        b = lib.is_grad_enabled()
    c = lib.is_grad_enabled()
    lib.set_grad_enabled(True)
    return (a, b, c)


@program
def a_decorated_class(lib):

    @lib.no_grad()
    class A:
        def __init__(self):
            self.g = lib.is_grad_enabled()

    return A().g


@program
def inference_mode_off(lib):
    with lib.inference_mode(False):
        return (lib.is_inference_mode_enabled(), lib.is_grad_enabled())


@program
def inference_mode_off_within_no_grad(lib):
    with lib.no_grad():
        with lib.inference_mode(False):
            return (lib.is_inference_mode_enabled(), lib.is_grad_enabled())


@program
def a_recursive_decorated_function(lib):

    @lib.no_grad()
    def f(n):
        return lib.is_grad_enabled() if n == 0 else (f(n - 1), lib.is_grad_enabled())

    return (f(2), lib.is_grad_enabled())


@program
def multithreading_is_kept(lib):
    ask, switch = lib.autograd.is_multithreading_enabled, lib.autograd.set_multithreading_enabled
    found = [ask()]
    with switch(False):
        found.append(ask())
        with switch(True).clone():
            found.append(ask())
        found.append(ask())
        switch(True)
        found.append(ask())
    found.append(ask())
    switch(False)
    found.append(ask())
    switch(True)
    return found, lib.autograd.grad_mode.no_grad is lib.no_grad


@program
def who_is_an_inference_tensor(lib):
    with lib.inference_mode():
        x = lib.ones(3)
    return (
        x.is_inference(),
        lib.is_inference(x),
        lib.ones(3).is_inference(),
        (x + 1).is_inference(),
        x[0].is_inference(),
        x.view(3).is_inference(),
        x.clone().is_inference(),
        x.detach().is_inference(),
    )


@program
def inference_tensors_are_not_saved(lib):
    with lib.inference_mode():
        x = lib.ones(3)
    w = leaf(lib)
    return x * w


@program
def inference_tensors_that_need_not_be_saved(lib):
    with lib.inference_mode():
        x = lib.ones(3)
    w = leaf(lib)
    return x + w


@program
def inference_tensors_are_not_written_outside(lib):
    with lib.inference_mode():
        x = lib.ones(3)
    x.add_(1)
    return x


@program
def inference_tensors_never_require_grad(lib):
    with lib.inference_mode():
        x = lib.ones(3)
    x.requires_grad_()


@program
def inference_tensors_have_no_version(lib):
    with lib.inference_mode():
        x = lib.ones(3)
    return x._version


@program
def a_normal_tensor_in_inference_mode(lib):
    x = lib.ones(3)
    with lib.inference_mode():
        x.add_(1)
        v = x[0]
        return (x.is_inference(), v.is_inference(), x)


@program
def results_in_inference_mode(lib):
    w = leaf(lib)
    with lib.inference_mode():
        y = w * 2
        return (y.requires_grad, y.is_inference(), y.grad_fn, w.requires_grad)


@program
def writes_in_inference_mode(lib):
    w = leaf(lib)
    y = w * 2
    with lib.inference_mode():
        y.add_(1)
    (y * y).sum().backward()
    return w.grad


@program
def inference_tensors_compute(lib):
    with lib.inference_mode():
        x = lib.ones(3)
    return (x * 2).sum()


@program
def inference_tensors_are_written_inside(lib):
    with lib.inference_mode():
        x = lib.ones(3)
        x.add_(1)
        x[0] = 2
        return x


@program
def results_under_no_grad_are_normal(lib):
    with lib.inference_mode():
        x = lib.ones(3)
    w = leaf(lib)
    with lib.no_grad():
        return (x * w).is_inference()


@program
def inference_tensors_are_not_indexed_into_outside(lib):
    with lib.inference_mode():
        x = lib.ones(3)
    x[0] = 3
    return x


@program
def inference_tensors_are_copied_from(lib):
    with lib.inference_mode():
        x = lib.ones(3)
    y = lib.zeros(3)
    y.copy_(x)
    return (y, y.is_inference())


@program
def inference_tensors_are_not_written_under_no_grad(lib):
    with lib.inference_mode():
        x = lib.ones(3)
    with lib.no_grad():
        x.add_(1)
        return x


@program
def requires_grad_in_inference_mode(lib):
    with lib.inference_mode():
        x = lib.ones(3, requires_grad=True)
        return (x.requires_grad, x.is_inference())


@program
def a_view_made_in_inference_mode(lib):
    w = leaf(lib)
    with lib.inference_mode():
        v = w[:2]
    return (v.is_inference(), v.requires_grad)


@program
def a_view_made_in_inference_mode_written_outside(lib):
    w = leaf(lib)
    with lib.inference_mode():
        v = w[:2]
    v.add_(1)
    return v


@program
def inference_tensors_are_not_saved_by_writes(lib):
    with lib.inference_mode():
        x = lib.ones(3)
    w = leaf(lib) * 1
    w.mul_(x)
    return w


@program
def inference_tensors_are_not_saved_by_functions(lib):
    with lib.inference_mode():
        x = lib.ones(3)
    w = leaf(lib)
    class_ = type(
        "F",
        (lib.autograd.Function,),
        {
            "forward": staticmethod(lambda ctx, a, b: (ctx.save_for_backward(a, b), a * b)[1]),
            "backward": staticmethod(lambda ctx, g: (g, g)),
        },
    )
    return class_.apply(x, w)


@program
def anomaly_finds_nan(lib):
    x = lib.tensor([-1.0], requires_grad=True)
    with lib.autograd.detect_anomaly():
        y = x.sqrt().sum()
        y.backward()


@program
def anomaly_without_traceback(lib):
    x = lib.tensor([-1.0], requires_grad=True)
    y = x.sqrt().sum()
    with lib.autograd.set_detect_anomaly(True):
        y.backward()


@program
def anomaly_modes(lib):
    with lib.autograd.set_detect_anomaly(True):
        a = (lib.is_anomaly_enabled(), lib.is_anomaly_check_nan_enabled())
    with lib.autograd.detect_anomaly(check_nan=False):
        b = (lib.is_anomaly_enabled(), lib.is_anomaly_check_nan_enabled())
    return (a, b, lib.is_anomaly_enabled())


@program
def anomaly_mode_as_function(lib):
    lib.autograd.set_detect_anomaly(True)
    a = lib.is_anomaly_enabled()
    lib.autograd.set_detect_anomaly(False)
    return (a, lib.is_anomaly_enabled())


@program
def anomaly_and_an_overwritten_value(lib):
    with lib.autograd.set_detect_anomaly(True):
        x = leaf(lib)
        y = x.exp()
        z = y * 2
        y.add_(1)
        z = y.exp()
        y.mul_(2)
        z.sum().backward()


@program
def a_view_made_under_no_grad(lib):
    x = leaf(lib)
    with lib.no_grad():
        v = x[:2]
    v.add_(1)


@program
def one_of_several_views(lib):
    x = leaf(lib) * 1
    a, b, c = x.unbind()
    a.add_(1)


@program
def one_of_several_chunks(lib):
    x = leaf(lib) * 1
    a = x.chunk(3)[0]
    a.add_(1)


@program
def a_leaf_written_to(lib):
    x = leaf(lib)
    x.add_(1)


@program
def part_of_a_leaf_written_to(lib):
    x = leaf(lib)
    x[0] = 1


@program
def a_view_of_a_leaf_written_to(lib):
    x = leaf(lib)
    x[:1].mul_(2)


@program
def out_with_an_input_that_requires_grad(lib):
    x = leaf(lib)
    lib.add(x, 1, out=lib.empty(3))


@program
def out_that_requires_grad(lib):
    x = leaf(lib)
    lib.add(lib.ones(3), 1, out=x)


@program
def numpy_of_a_leaf(lib):
    return leaf(lib).numpy()


@program
def numpy_of_a_result(lib):
    return (leaf(lib) * 2).numpy()


@program
def values_of_a_leaf(lib):
    return (leaf(lib).tolist(), lib.tensor(leaf(lib)))


@program
def variable(lib):
    return lib.autograd.Variable(lib.ones(2), requires_grad=True)


@program
def who_inherits_requires_grad(lib):
    x = leaf(lib)
    return (
        lib.as_tensor(x) is x,
        lib.tensor(x.detach()).requires_grad,
        x.new_tensor([1.0]).requires_grad,
        lib.zeros_like(x).requires_grad,
        lib.zeros_like(x, requires_grad=True).requires_grad,
    )


@program
def resize_of_a_leaf(lib):
    x = leaf(lib)
    x.resize_(2)


@program
def set_of_a_leaf(lib):
    x = leaf(lib)
    x.set_(lib.ones(2))


@program
def conversions(lib):
    x = leaf(lib)
    return (x.to(lib.float64), x.double().sum(), x.to(lib.int64), x.bool(), x.half())


@program
def integers_of_a_leaf(lib):
    x = leaf(lib)
    y = x.int()
    return (y.requires_grad, y.grad_fn)


@program
def extrema(lib):
    x = leaf(lib)
    return (x.max(), x.argmax(), x > 0, x.max(0))


@program
def detach(lib):
    x = leaf(lib)
    return (
        x.detach(),
        x.detach().requires_grad,
        x.detach().is_leaf,
        lib.detach(x).data_ptr() == x.data_ptr(),
    )


@program
def a_leaf_that_requires_grad_no_more(lib):
    x = leaf(lib)
    y = x * 2
    x.requires_grad_(False)
    y.sum().backward()
    return x.grad


@pytest.mark.refuses(
    [
        "inference_tensors_are_not_saved",
        "inference_tensors_are_not_written_outside",
        "inference_tensors_never_require_grad",
        "inference_tensors_have_no_version",
        "inference_tensors_are_not_indexed_into_outside",
        "inference_tensors_are_not_written_under_no_grad",
        "a_view_made_in_inference_mode_written_outside",
        "inference_tensors_are_not_saved_by_writes",
        "inference_tensors_are_not_saved_by_functions",
        "anomaly_finds_nan",
        "anomaly_without_traceback",
        "anomaly_and_an_overwritten_value",
        "a_view_made_under_no_grad",
        "one_of_several_views",
        "one_of_several_chunks",
        "a_leaf_written_to",
        "part_of_a_leaf_written_to",
        "a_view_of_a_leaf_written_to",
        "out_with_an_input_that_requires_grad",
        "out_that_requires_grad",
        "numpy_of_a_leaf",
        "numpy_of_a_result",
        "resize_of_a_leaf",
        "set_of_a_leaf",
    ]
)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_in_pytorch(program):
    same(program)


@pytest.mark.parametrize("lib", [torch, weft], ids=["torch", "weft"])
def test_warnings_point_to_the_line_of_the_user(lib):
    linear = lib.nn.Linear(2, 2)
    linear.register_full_backward_hook(lambda *arguments: None)
    with pytest.warns(UserWarning, match="Full backward hook is firing") as found:
        linear(lib.ones(1, 2)).sum().backward()
    assert [Path(each.filename).name for each in found] == ["test_modes.py"]


def test_nothing_is_recorded_in_inference_mode():
    with weft.inference_mode(), weft.enable_grad():
        assert not weft.is_grad_enabled()
        assert not (leaf(weft) * 2).requires_grad
    enabled, x = weft.set_grad_enabled(True), leaf(weft)
    with weft.inference_mode(), enabled:
        assert not weft.is_grad_enabled()
        assert not (x * 2).requires_grad
    assert weft.is_grad_enabled() and not weft.is_inference_mode_enabled()


def test_inference_mode_of_one_thread_is_no_matter_of_others():
    found = []
    with weft.inference_mode():
        worker = threading.Thread(target=lambda: found.append(weft.ones(2).is_inference()))
        worker.start()
        worker.join()
        found.append(weft.ones(2).is_inference())
    assert found == [False, True]


# Calls that compute in several steps, none of which is recorded.
IN_STEPS = {
    "a product of bfloat16": lambda t: t.bfloat16() @ t.bfloat16(),
    "a product of conjugates": lambda t: t.cfloat().conj() @ t.cfloat(),
    "a product of integers": lambda t: t.long() @ t.long(),
    "a write": lambda t: (t * 1).index_put_((weft.tensor([0]),), weft.ones(4)),
    "a write into a view": lambda t: (t * 1)[0].mul_(2),
    "a copy": lambda t: (t * 1).copy_(t.double()),
    "a sort": lambda t: t.sort(),
    "a factorization": lambda t: weft.linalg.qr(t),
    "a bad index": lambda t: (t * 1).index_put_((weft.tensor([9]),), weft.ones(4)),
    "a bad size": lambda t: (t * 1).copy_(weft.ones(3)),
    "a bad product": lambda t: t.bfloat16() @ weft.ones(3, 3).bfloat16(),
}


@pytest.mark.parametrize("call", IN_STEPS.values(), ids=IN_STEPS)
@pytest.mark.parametrize("enabled", [True, False])
def test_calls_leave_the_mode_as_it_was(enabled, call):
    t = weft.randn(4, 4, requires_grad=True)
    with weft.set_grad_enabled(enabled):
        with contextlib.suppress(IndexError, RuntimeError):
            call(t)
        assert weft.is_grad_enabled() == enabled
        assert (t * 2).requires_grad == enabled


INTO = [
    "torch.matmul(m, m, out=o)",
    "torch.cumsum(m, 0, out=o)",
    "torch.linalg.inv(m, out=o)",
    "torch.sort(m, out=(o, i))",
    "torch.gather(m, 0, i, out=o)",
    "torch.cat([m[:1], m[1:]], out=o)",
    "torch.sum(m[None], 0, out=o)",
    "torch.where(m > 0, m, m, out=o)",
    "torch.tril(m, out=o)",
    "torch.stack([m[0], m[1]], out=o)",
    "torch.cat([m[:1].clone().requires_grad_(), m[1:]], out=torch.ones(2, 2))",
    "torch.hstack([m[:, :1], m[:, 1:]], out=o)",
    "torch.rand(2, 2, out=o)",
    "torch.zeros(2, 2, out=o)",
    "torch.full((2, 2), 1.0, out=o)",
    "torch.eye(2, out=o)",
    "torch.arange(4.0, out=o.view(4))",
    "torch.linspace(0, 1, 4, out=o.view(4))",
    "torch.normal(m, 1.0, out=o)",
    "torch.normal(0.0, 1.0, (2, 2), out=o)",
    "torch.bernoulli(m, out=o)",
]


@pytest.mark.parametrize("expression", INTO)
def test_out_must_not_require_grad(expression):
    for lib in (torch, weft):
        names = {
            "m": lib.eye(2),
            "i": lib.zeros(2, 2, dtype=lib.int64),
            "o": lib.ones(2, 2, requires_grad=True),
        }
        with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
            eval(expression, {"torch": lib, **names})
        assert names["o"].tolist() == [[1, 1], [1, 1]]
        with lib.no_grad():
            eval(expression, {"torch": lib, **names})
