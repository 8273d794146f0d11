"""What programs ask of the backward pass that runs: callbacks, its number, and which nodes run."""

import gc

import pytest
import torch

import weft


def _hooked(t, hook, **options):
    """Run backward with a hook in the middle."""
    x = t.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda gradient: hook(t))
    y.sum().backward(**options)
    return x, y


def _engine(t):
    return t.autograd.Variable._execution_engine


def test_callbacks_run_when_the_pass_has_ended():
    for t in (torch, weft):
        order = []
        x = t.ones(2, requires_grad=True)

        def last(t=t, order=order, x=x):
            order.append(("last", x.grad.tolist(), t.is_grad_enabled()))

        def first(t=t, order=order, x=x, last=last):
            order.append(("first", x.grad.tolist()))
            _engine(t).queue_callback(last)

        y = x * 2
        y.register_hook(lambda gradient, t=t, first=first: _engine(t).queue_callback(first))
        y.sum().backward()
        assert order == [("first", [2, 2]), ("last", [2, 2], False)]
        with pytest.raises(RuntimeError, match="during backward pass"):
            _engine(t).queue_callback(last)


def test_callbacks_belong_to_the_innermost_pass():
    for t in (torch, weft):
        order = []

        def inner(t, order=order):
            _engine(t).queue_callback(lambda: order.append("inner"))

        def outer(t, order=order):
            _engine(t).queue_callback(lambda: order.append("outer"))
            with t.enable_grad():
                _hooked(t, inner)
            order.append("after")

        _hooked(t, outer)
        assert order == ["inner", "after", "outer"]


def test_an_error_of_a_callback_and_of_the_pass():
    for t in (torch, weft):
        called = []

        def failing():
            raise ValueError("of a callback")

        with pytest.raises(ValueError, match="of a callback"):
            _hooked(t, lambda t: _engine(t).queue_callback(failing))

        def queue_and_fail(t, called=called):
            _engine(t).queue_callback(lambda: called.append(1))
            raise ValueError("of a hook")

        with pytest.raises(ValueError, match="of a hook"):
            _hooked(t, queue_and_fail)
        assert not called
        _hooked(t, lambda t: None)
        assert not called


def test_numbers_of_passes():
    for t in (torch, weft):
        numbers = []
        for _ in range(3):
            _hooked(t, lambda t, numbers=numbers: numbers.append(t._C._current_graph_task_id()))
        assert [each - numbers[0] for each in numbers] == [0, 1, 2]
        assert t._C._current_graph_task_id() == -1


def test_whether_the_graph_is_kept():
    for t in (torch, weft):
        found = []
        for keep in (True, False):
            _hooked(
                t,
                lambda t, found=found: found.append(t._C._autograd._get_current_graph_task_keep_graph()),
                retain_graph=keep,
            )
        assert found == [True, False]


def test_which_nodes_run():
    for t in (torch, weft):
        a, b = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
        c = a * b
        other = c.cos()
        out = c.exp()
        leaves = [function for function, _ in c.grad_fn.next_functions]
        found = []

        def hook(gradient, t=t, found=found, c=c, other=other, leaves=leaves):
            runs = t._C._will_engine_execute_node
            found.append([runs(each) for each in (c.grad_fn, other.grad_fn, *leaves)])

        out.register_hook(hook)
        t.autograd.backward(out.sum(), inputs=(a,), retain_graph=True)
        out.sum().backward(retain_graph=True)
        assert found == [[True, False, True, False], [True, False, True, True]]
        with pytest.raises(RuntimeError, match="currently running autograd.grad"):
            t.autograd.grad(out.sum(), (a,))
        with pytest.raises(RuntimeError, match="during the backward pass"):
            t._C._will_engine_execute_node(out.grad_fn)
        with pytest.raises(RuntimeError, match="expects an grad_fn, but got"):
            t._C._will_engine_execute_node(out)


def test_errors_that_wait_for_backward():
    for t in (torch, weft):
        x, y = t.ones(2, requires_grad=True), t.ones(2)
        a, b = t._C._functions.DelayedError("Boom", 2)(x, y)
        assert type(a.grad_fn).__name__ == "Error" and a.tolist() == b.tolist() == [1, 1]
        with pytest.raises(TypeError, match="expected 2 arguments, got 1"):
            t._C._functions.DelayedError("Boom", 2)(x)
        with pytest.raises(RuntimeError, match="Boom"):
            a.sum().backward()
        c = t._C._functions.DelayedError(b"Boom", 1)(x)
        other = t.ones(2, requires_grad=True)
        assert t.autograd.grad((c * other).sum(), other)[0].tolist() == [1, 1]
        assert type(x.exp().grad_fn.next_functions[0][0]) is t._C._functions.AccumulateGrad


def test_weak_references():
    for t in (torch, weft):
        x = t.ones(2)
        reference = t._C._WeakTensorRef(x)
        assert not reference.expired()
        del x
        gc.collect()
        assert reference.expired()


def test_hooks_can_be_disabled():
    for t in (torch, weft):
        names = t._C._autograd
        assert names._saved_tensors_hooks_is_enabled()
        assert names._saved_tensors_hooks_get_disabled_error_message() is None
        names._saved_tensors_hooks_disable("not here")
        try:
            assert not names._saved_tensors_hooks_is_enabled()
            assert names._saved_tensors_hooks_get_disabled_error_message() == "not here"
            with (
                pytest.raises(RuntimeError, match="not here"),
                t.autograd.graph.saved_tensors_hooks(abs, abs),
            ):
                pass
        finally:
            names._saved_tensors_hooks_enable()
        assert names._saved_tensors_hooks_is_enabled()
        with (
            t.autograd.graph.saved_tensors_hooks(abs, abs),
            pytest.raises(RuntimeError, match="in use"),
            t.autograd.graph.disable_saved_tensors_hooks("in use"),
        ):
            pass
        assert names._saved_tensors_hooks_is_enabled()


def test_metadata_of_leaves():
    for t in (torch, weft):
        leaf = t.ones(2, requires_grad=True).exp().grad_fn.next_functions[0][0]
        leaf.metadata["note"] = 1
        assert leaf.metadata == {"note": 1}


def test_versions_that_are_kept():
    for t in (torch, weft):
        x, y = t.ones(2).add_(1), t.ones(2)
        with t.autograd._unsafe_preserve_version_counter((x, y)):
            x.mul_(2)
            y.mul_(3)
        assert (x._version, y._version) == (1, 0)
        t._C._autograd._unsafe_set_version_counter((x,), (0,))
        assert x._version == 0
        with pytest.raises(RuntimeError, match="below 0"):
            t._C._autograd._unsafe_set_version_counter((x,), (-1,))


def test_saved_tensors_have_a_public_class():
    for t in (torch, weft):
        x = t.ones(2, requires_grad=True)
        assert type((x * x).grad_fn._raw_saved_self) is t.autograd.SavedTensor is t._C._autograd.SavedTensor
        with pytest.raises(RuntimeError, match="forbidden"):
            t.autograd.SavedTensor()
