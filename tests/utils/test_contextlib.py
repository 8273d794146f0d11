"""Managers that decorate, side by side with PyTorch's."""

import contextlib

import pytest
import torch.utils._contextlib

import weft.utils._contextlib

LIBRARIES = pytest.mark.parametrize("lib", [weft.utils._contextlib, torch.utils._contextlib])


def manager(lib, log):
    class Manager(lib._DecoratorContextManager):
        def __enter__(self):
            log.append("in")

        def __exit__(self, *exception):
            log.append("out")

    return Manager


@LIBRARIES
def test_functions_run_within_a_context(lib):
    log = []

    @manager(lib, log)()
    def double(x):
        log.append(x)
        return 2 * x

    assert double(3) == 6 and log == ["in", 3, "out"]
    assert double.__name__ == "double"
    with pytest.raises(RuntimeError, match="Cannot decorate classes"):
        lib.context_decorator(contextlib.nullcontext(), type("C", (), {}))
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):
        made = manager(lib, log)()(dict)
    assert made(a=1) == {"a": 1}
    with pytest.raises(AssertionError, match="ambiguous which"):
        lib.context_decorator(manager(lib, log)(), double)


@LIBRARIES
def test_each_step_of_a_generator_runs_within_a_context(lib):
    log = []

    @manager(lib, log)()
    def numbers():
        try:
            log.append((yield 1))
        except ValueError:
            log.append("caught")
        yield 2
        return 3

    steps = numbers()
    assert next(steps) == 1 and log == ["in", "out"]
    assert steps.send("sent") == 2 and log == ["in", "out", "in", "sent", "out"]
    with contextlib.suppress(StopIteration):
        next(steps)
    steps = numbers()
    next(steps)
    assert steps.throw(ValueError()) == 2 and log[-2:] == ["caught", "out"]
    steps.close()
    assert log.count("in") == log.count("out")


@LIBRARIES
def test_decorating_without_brackets(lib):
    log = []

    class Manager(lib._NoParamDecoratorContextManager):
        def __enter__(self):
            log.append("in")

        def __exit__(self, *exception):
            log.append("out")

    @Manager
    def one():
        return 1

    assert one() == 1 and Manager()(one)() == 1 and log == ["in", "out"] + ["in", "in", "out", "out"]
