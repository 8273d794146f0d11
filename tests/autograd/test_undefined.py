"""Backward passes in which a result gets no cotangent: hooks and Functions are told None or zeros, in both libraries."""

import pytest
import torch
from alike import same

import weft

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def functions(lib, log, materialize=True):
    """Double a tensor, which logs its cotangents, and a sum of two tensors, whose backward has nothing for the first."""

    class Double(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            log.append(("double", grad))
            return None if grad is None else grad * 2

    class Second(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, grad):
            return None, grad

    return Double.apply, Second.apply


def leaves(lib):
    return lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)


def note(log, name):
    return lambda *given: log.append((name, *given))


@program
def a_function_behind_none_gets_zeros(lib):
    log = []
    double, second = functions(lib, log)
    x, y = leaves(lib)
    second(double(x), y).sum().backward()
    return log, x.grad, y.grad


@program
def a_function_behind_none_gets_none_if_it_asks_for_it(lib):
    log = []
    double, second = functions(lib, log, materialize=False)
    x, y = leaves(lib)
    second(double(x), y).sum().backward()
    return log, x.grad, y.grad


@program
def operations_behind_none_do_not_run(lib):
    log = []
    double, second = functions(lib, log)
    x, y = leaves(lib)
    hidden = x * 3
    for hook in (hidden.register_hook, hidden.grad_fn.register_prehook, hidden.grad_fn.register_hook):
        hook(note(log, hook.__name__))
    second(hidden.exp(), y).sum().backward()
    return log, x.grad, y.grad


@program
def hooks_of_leaves_behind_none(lib):
    log = []
    x, y = leaves(lib)
    x.register_hook(note(log, "leaf"))
    x.register_post_accumulate_grad_hook(note(log, "accumulated"))
    node = x.view_as(x).grad_fn.next_functions[0][0]
    node.register_prehook(note(log, "before"))
    node.register_hook(note(log, "after"))
    functions(lib, log)[1](x.sin(), y).sum().backward()
    return log, x.grad


@program
def a_hook_that_gives_a_cotangent_for_none(lib):
    log = []
    x, y = leaves(lib)
    hidden = x * 3
    hidden.register_hook(lambda grad: lib.ones(2))
    functions(lib, log)[1](hidden, y).sum().backward()
    return x.grad


@program
def a_hook_of_a_result_that_nothing_uses(lib):
    log = []
    first, second = lib.ones(2, 3, requires_grad=True).unbind(0)
    first.register_hook(note(log, "first"))
    second.sum().backward()
    return log


@program
def several_gradients_with_one_that_is_none(lib):
    log = []
    double, second = functions(lib, log)
    x, y = leaves(lib)
    handle = lib.autograd.graph.register_multi_grad_hook((x, y), note(log, "all"))
    second(x.exp(), y).sum().backward()
    handle.remove()
    lib.autograd.graph.register_multi_grad_hook((x, y), note(log, "any"), mode="any")
    second(x.exp(), y).sum().backward()
    return log


@program
def only_nodes_on_a_path_to_an_input_run(lib):
    log = []
    double, second = functions(lib, log)
    x, y = leaves(lib)
    result = second(double(x), y).sum()
    found = [
        lib.autograd.grad(result, inputs, allow_unused=True, retain_graph=True) for inputs in ((y,), (x,))
    ]
    return log, found


@program
def undefined_grad(lib):
    log = []
    double, _ = functions(lib, log)
    x, _ = leaves(lib)
    y = lib._C._functions.UndefinedGrad()(double(x))
    y.sum().backward()
    return log, x.grad, y.grad_fn.name()


@program
def results_without_gradient_are_materialized_unless_told(lib):
    log = []

    class Two(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, materialize):
            first, second = x * 2, x * 3
            ctx.mark_non_differentiable(second)
            ctx._materialize_non_diff_grads = materialize
            return first, second

        @staticmethod
        def backward(ctx, first, second):
            log.append(second)
            return first, None

    for materialize in (True, False):
        Two.apply(leaves(lib)[0], materialize)[0].sum().backward()
    return log


@program
def prehooks_of_inputs(lib):
    log = []
    x = lib.ones(2, requires_grad=True)
    y = x.clone()
    y.register_hook(lambda grad: grad * 3)
    y.grad_fn.register_prehook(lambda grads: (log.append("before"), tuple(g * 2 for g in grads))[1])
    y.sum().backward(inputs=(y,))
    return log, y.grad, x.grad


@program
def a_hook_sees_the_gradient_that_later_hooks_change(lib):
    def add_half(x):
        x.grad.add_(0.5)

    x = lib.ones(3, requires_grad=True)
    node = x.view_as(x).grad_fn.next_functions[0][0]
    x.register_hook(lambda grad: grad - 2.0)
    node.register_prehook(lambda grads: (grads[0] / 5.0,))
    x.register_post_accumulate_grad_hook(add_half)
    node.register_hook(lambda given, grads: setattr(x, "grad", grads[0] * 10))
    (x * 2).sum().backward()
    return x.grad


@program
def a_node_is_a_function_of_cotangents(lib):
    x = lib.tensor([1.0, 2.0, 4.0], requires_grad=True)
    y = lib.tensor([3.0, 5.0, 6.0])
    given = lib.ones(3)
    product = x * y
    parts = x.unbind(0)[0].grad_fn(*given.unbind(0))
    return product.grad_fn(given), x.sort().values.grad_fn(given), (x**2).grad_fn(given), parts, x.grad


@program
def a_node_takes_one_cotangent_for_each_result(lib):
    (lib.ones(3, requires_grad=True) ** 2).grad_fn(lib.ones(3), lib.ones(3))


@pytest.mark.refuses(["a_node_takes_one_cotangent_for_each_result", "a_hook_that_gives_a_cotangent_for_none"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_in_pytorch(program):
    same(program)


@pytest.mark.parametrize("lib", [weft, torch], ids=["weft", "torch"])
@pytest.mark.parametrize("fast_mode", [True, False])
def test_gradcheck_asks_for_missing_cotangents(lib, fast_mode):
    def function(x):
        def hook(grad):
            if grad is None:
                raise RuntimeError("there is no cotangent")

        y = x.clone()
        y.register_hook(hook)
        return y

    x = lib.ones(1, dtype=lib.double, requires_grad=True)
    with (
        pytest.warns(UserWarning, match="New undefined gradient support checking feature"),
        pytest.raises(RuntimeError, match="Expected backward function to handle undefined output grads"),
    ):
        lib.autograd.gradcheck(function, (x,), fast_mode=fast_mode)
    assert lib.autograd.gradcheck(function, (x,), fast_mode=fast_mode, check_undefined_grad=False)
