"""Checkpoints: both forms, random numbers, errors."""

import functools
import gc
import importlib
import weakref

import pytest
import torch
from alike import same

import weft
from weft.utils.checkpoint import CheckpointError, checkpoint, set_checkpoint_early_stop

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def x3(lib):
    return lib.tensor([0.3, 0.7, 1.1])


def ck(lib):
    return importlib.import_module(f"{lib.__name__}.utils.checkpoint").checkpoint


def in_both_forms(function):
    """A program for each value of `use_reentrant`."""
    for reentrant in (True, False):
        complete = functools.partial(function, reentrant=reentrant)
        complete.__name__ = f"{function.__name__}-{'reentrant' if reentrant else 'not reentrant'}"
        PROGRAMS.append(complete)
    return function


@in_both_forms
def the_second_run_has_the_autocast_of_the_first(lib, reentrant):
    dtypes = []

    def product(x):
        dtypes.append((x @ x).dtype == lib.float16)
        return (x @ x).sin()

    x = lib.ones(2, 2, requires_grad=True)
    with lib.autocast("cpu", lib.float16):
        y = ck(lib)(product, x, use_reentrant=reentrant)
    y.float().sum().backward()
    return dtypes, x.grad


@in_both_forms
def random_numbers_go_on_after_backward(lib, reentrant):
    x = x3(lib).requires_grad_()
    y = ck(lib)(lambda a: lib.nn.functional.dropout(a, 0.5), x, use_reentrant=reentrant)
    first = lib.rand(2)
    y.sum().backward()
    return first, lib.rand(2)


@in_both_forms
def runs_twice(lib, reentrant):
    x = x3(lib).requires_grad_()
    log = []

    def fn(x):
        log.append(1)
        return (x * x).exp()

    y = ck(lib)(fn, x, use_reentrant=reentrant)
    n = len(log)
    y.sum().backward()
    return (n, len(log), x.grad, y)


@in_both_forms
def random_numbers(lib, reentrant):
    x = x3(lib).requires_grad_()

    def fn(x):
        return lib.nn.functional.dropout(x, 0.5) * x

    lib.manual_seed(3)
    y = ck(lib)(fn, x, use_reentrant=reentrant)
    y.sum().backward()
    return (y.detach(), x.grad, (y.detach() == 0).tolist() == (x.grad == 0).tolist())


@in_both_forms
def other_arguments(lib, reentrant):
    x = x3(lib).requires_grad_()
    y = ck(lib)(lambda a, b: (a * 2, b, 3), x, "s", use_reentrant=reentrant)
    y[0].sum().backward()
    return (y[1:], x.grad)


@in_both_forms
def keywords(lib, reentrant):
    x = x3(lib).requires_grad_()
    y = ck(lib)(lambda a, k=1: a * k, x, use_reentrant=reentrant, k=3)
    y.sum().backward()
    return x.grad


@in_both_forms
def nothing_requires_grad(lib, reentrant):
    x = x3(lib)
    y = ck(lib)(lambda a: a * 2, x, use_reentrant=reentrant)
    return y.requires_grad


@in_both_forms
def a_weight_from_outside(lib, reentrant):
    w = x3(lib).requires_grad_()
    x = x3(lib)
    y = ck(lib)(lambda a: a * w, x, use_reentrant=reentrant)
    if y.requires_grad:
        y.sum().backward()
    return (y.requires_grad, w.grad)


@in_both_forms
def grad_instead_of_backward(lib, reentrant):
    x = x3(lib).requires_grad_()
    y = ck(lib)(lambda a: a.sin().exp(), x, use_reentrant=reentrant)
    return lib.autograd.grad(y.sum(), x)


@in_both_forms
def backward_twice(lib, reentrant):
    x = x3(lib).requires_grad_()
    y = ck(lib)(lambda a: a.sin().exp(), x, use_reentrant=reentrant)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    return x.grad


@in_both_forms
def nested(lib, reentrant):
    x = x3(lib).requires_grad_()
    y = ck(lib)(
        lambda a: ck(lib)(lambda b: b.sin(), a, use_reentrant=reentrant).exp(), x, use_reentrant=reentrant
    )
    y.sum().backward()
    return x.grad


@in_both_forms
def a_detached_result(lib, reentrant):
    x = x3(lib).requires_grad_()
    y = ck(lib)(lambda a: a.detach(), x, use_reentrant=reentrant)
    y.sum().backward()


@in_both_forms
def a_chain(lib, reentrant):
    m = lib.nn.Sequential(*[lib.nn.Linear(2, 2) for _ in range(4)])
    x = lib.ones(1, 2, requires_grad=True)
    y = importlib.import_module(f"{lib.__name__}.utils.checkpoint").checkpoint_sequential(
        m, 2, x, use_reentrant=reentrant
    )
    y.sum().backward()
    return (y, x.grad, m[0].weight.grad)


@in_both_forms
def without_the_random_state(lib, reentrant):
    x = x3(lib).requires_grad_()
    y = ck(lib)(lambda a: a.sin() * a, x, use_reentrant=reentrant, preserve_rng_state=False)
    y.sum().backward()
    return x.grad


@in_both_forms
def under_no_grad(lib, reentrant):
    x = x3(lib).requires_grad_()
    with lib.no_grad():
        y = ck(lib)(lambda a: a.sin(), x, use_reentrant=reentrant)
    return y


@in_both_forms
def second_derivatives(lib, reentrant):
    x = x3(lib).requires_grad_()
    y = ck(lib)(lambda a: a.sin().exp(), x, use_reentrant=reentrant)
    (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    return lib.autograd.grad(g.sum(), x)


@in_both_forms
def a_dictionary_returned(lib, reentrant):
    x = x3(lib).requires_grad_()
    y = ck(lib)(lambda a: {"k": a * 2}, x, use_reentrant=reentrant)
    return type(y)


@program
def another_dtype_or_number_the_second_time(lib):
    x = x3(lib).requires_grad_()
    n = [0]

    def fn(a):
        n[0] += 1
        return a.exp().sin() if n[0] == 1 else a * 2

    y = ck(lib)(fn, x, use_reentrant=False)
    y.sum().backward()


@program
def another_shape_the_second_time(lib):
    x = x3(lib).requires_grad_()
    n = [0]

    def fn(a):
        n[0] += 1
        return (a if n[0] == 1 else a[:2]).exp().sum()

    y = ck(lib)(fn, x, use_reentrant=False)
    y.sum().backward()


@program
def another_shape_unchecked(lib):
    x = x3(lib).requires_grad_()
    n = [0]

    def fn(a):
        n[0] += 1
        return (a if n[0] == 1 else a[:2]).exp().sum()

    y = ck(lib)(fn, x, use_reentrant=False, determinism_check="none")
    y.sum().backward()


@program
def keywords_in_the_reentrant_form(lib):
    x = x3(lib).requires_grad_()
    ck(lib)(lambda a: a.exp(), x, use_reentrant=True, k=3)


@program
def an_unknown_check(lib):
    x = x3(lib).requires_grad_()
    y = ck(lib)(lambda a: a.exp(), x, use_reentrant=False, determinism_check="x")
    y.sum().backward()


@program
def the_second_run_stops_early(lib):
    x = x3(lib).requires_grad_()
    log = []

    def fn(a):
        log.append("a")
        b = a.exp()
        log.append("b")
        c = b + 1
        log.append("c")
        return c

    y = ck(lib)(fn, x, use_reentrant=False)
    y.sum().backward()
    return log


@program
def contexts_of_both_runs(lib):
    import contextlib

    x = x3(lib).requires_grad_()
    log = []

    @contextlib.contextmanager
    def ctx(n):
        log.append(n)
        yield
        log.append("-" + n)

    y = ck(lib)(lambda a: a.exp() * a, x, use_reentrant=False, context_fn=lambda: (ctx("f"), ctx("r")))
    y.sum().backward()
    return log


@pytest.mark.refuses(
    [
        "keywords-reentrant",
        "grad_instead_of_backward-reentrant",
        "a_detached_result-reentrant",
        "a_detached_result-not reentrant",
        "second_derivatives-reentrant",
        "another_dtype_or_number_the_second_time",
        "another_shape_the_second_time",
        "another_shape_unchecked",
        "keywords_in_the_reentrant_form",
        "an_unknown_check",
    ]
)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_in_pytorch(program):
    same(program)


def test_the_second_run_goes_on_if_asked_to():
    log = []

    def function(x):
        y = x.exp()
        log.append("exp")
        return y

    x = x3(weft).requires_grad_()
    checkpoint(function, x, use_reentrant=False).sum().backward()
    with set_checkpoint_early_stop(False):
        y = checkpoint(function, x, use_reentrant=False)
    y.sum().backward()
    assert log == ["exp", "exp", "exp"]
    with set_checkpoint_early_stop(False):
        with set_checkpoint_early_stop(True):
            pass
        y = checkpoint(function, x, use_reentrant=False)
    y.sum().backward()
    assert log == ["exp"] * 5


def test_use_reentrant_should_be_given():
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(weft.exp, x3(weft).requires_grad_())


def test_more_tensors_the_second_time():
    runs = []

    def function(x):
        runs.append(x)
        return x.exp() if len(runs) == 1 else x.exp().exp() * x

    y = checkpoint(function, x3(weft).requires_grad_(), use_reentrant=False, early_stop=False)
    with pytest.raises(CheckpointError, match="different number of tensors"):
        y.sum().backward()


def test_the_memory_of_a_checkpointed_part_is_freed():
    x = weft.ones(1000, requires_grad=True)
    with weft.no_grad():
        x.exp()
    before = weft.cpu.memory_stats()["allocated_bytes.all.current"]
    y = checkpoint(lambda x: x.exp().sin().exp().sin(), x, use_reentrant=False)
    kept = weft.cpu.memory_stats()["allocated_bytes.all.current"] - before
    assert kept < 3 * 4096  # y and the generator's state, and none of the three that backward needs
    y.sum().backward()


@pytest.mark.parametrize("lib", [torch, weft], ids=["torch", "weft"])
def test_graphs_within_checkpointed_functions_die(lib):
    """Nothing that a recomputation keeps refers to its graph, which refers to the recomputation."""

    def gradient(function):
        def wrapper(x):
            with lib.enable_grad():
                return lib.autograd.grad(function(x), x, create_graph=True)[0]

        return wrapper

    def once_more(function):
        return lambda x: ck(lib)(function, x, use_reentrant=False)

    def waves(x):
        return x.sin().exp().sin()

    gc.collect()
    gc.disable()
    try:
        for function in (gradient(once_more(waves)), once_more(gradient(gradient(once_more(waves))))):
            y = function(lib.tensor(0.5, requires_grad=True))
            y.grad_fn.metadata["mark"] = mark = Mark()
            gone = weakref.ref(mark)
            del y, mark
            assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("early_stop", [True, False])
@pytest.mark.parametrize("lib", [torch, weft], ids=["torch", "weft"])
def test_backward_passes_within_checkpointed_functions(lib, early_stop):
    def function(x):
        first, second = x.sin().exp().sin(), x.sin().exp().sin()
        (found,) = lib.autograd.grad(first, x, retain_graph=True)
        return x.sin() * found.detach() + second

    def checkpointed(x):
        return ck(lib)(lambda x: ck(lib)(function, x, use_reentrant=False), x, use_reentrant=False)

    with importlib.import_module(f"{lib.__name__}.utils.checkpoint").set_checkpoint_early_stop(early_stop):
        gradients = []
        for run in (function, checkpointed):
            x = lib.tensor(0.5, requires_grad=True)
            run(x).backward()
            gradients.append(x.grad.item())
    assert gradients[0] == gradients[1]


class Mark:
    """An object that a node keeps."""
