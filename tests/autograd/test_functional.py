"""`torch.autograd.functional`, program by program in both libraries."""

import pytest
import torch
from alike import same

import weft

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def x3(lib):
    return lib.tensor([0.3, 0.7, 1.1])


def f(x):
    return (x**3).sum()


def g(x, y):
    return x * y, (x * x).sum()


def _refusals(lib):
    """What strict mode says of functions whose results, gradients or second derivatives depend on nothing."""
    functional, x = lib.autograd.functional, lib.ones(2)

    def apart(a):
        return a.long().float().requires_grad_().clone()

    functions = {
        "detached": lambda a: a.detach().sum(),
        "apart": lambda a: apart(a).sum(),
        "linear": lambda a: (3 * a).sum(),
        "two": lambda a: (a.sum(), a.sum()),
        "vector": lambda a: a * a,
    }
    for name, function in functions.items():
        for wanted in ("jacobian", "hessian", "vjp", "jvp", "vhp", "hvp"):
            vectors = () if wanted in ("jacobian", "hessian") else (None,) if wanted == "vjp" else (x,)
            for create_graph in (False, True):
                try:
                    getattr(functional, wanted)(function, x, *vectors, strict=True, create_graph=create_graph)
                    yield name, wanted, create_graph, "accepted"
                except RuntimeError as error:
                    yield name, wanted, create_graph, str(error).splitlines()[0]
    try:
        functional.hessian(f, x, strict=True, vectorize=True)
    except RuntimeError as error:
        yield str(error).partition(":")[2]


def test_strict_mode_refuses_in_pytorchs_words():
    for ours, theirs in zip(_refusals(weft), _refusals(torch), strict=True):
        assert ours == theirs


@program
def vjp_of_two_of_two(lib):
    return lib.autograd.functional.vjp(g, (x3(lib), x3(lib)), (lib.ones(3), lib.tensor(1.0)))


@program
def jvp_of_two_of_two(lib):
    return lib.autograd.functional.jvp(g, (x3(lib), x3(lib)), (lib.ones(3), lib.zeros(3)))


@program
def jacobian_of_two_of_two(lib):
    return lib.autograd.functional.jacobian(g, (x3(lib), x3(lib)))


@program
def jacobian_vectorized(lib):
    return (
        lib.autograd.functional.jacobian(lambda x: x.sin(), x3(lib), vectorize=True),
        lib.autograd.functional.jacobian(lambda x: x.sin(), x3(lib), vectorize=True, strategy="forward-mode"),
    )


@program
def hessian_of_two_arguments(lib):
    return lib.autograd.functional.hessian(lambda x, y: (x * x * y).sum(), (x3(lib), x3(lib)))


@program
def hessian_vectorized(lib):
    return lib.autograd.functional.hessian(f, x3(lib), vectorize=True, outer_jacobian_strategy="forward-mode")


@program
def hessian_recorded(lib):
    x = x3(lib).requires_grad_()
    h = lib.autograd.functional.hessian(f, x, create_graph=True)
    return (h.detach(), lib.autograd.grad(h.sum(), x))


@program
def a_constant_strictly(lib):
    return lib.autograd.functional.jacobian(lambda x: lib.ones(2), x3(lib), strict=True)


@program
def jacobian_of_a_constant(lib):
    return lib.autograd.functional.jacobian(lambda x: lib.ones(2), x3(lib))


@program
def an_unused_input_strictly(lib):
    return lib.autograd.functional.jacobian(lambda x, y: x, (x3(lib), x3(lib)), strict=True)


@program
def hessian_of_a_linear_function(lib):
    return lib.autograd.functional.hessian(lambda x: x.sum(), x3(lib))


@program
def hessian_of_a_linear_function_strictly(lib):
    return lib.autograd.functional.hessian(lambda x: x.sum(), x3(lib), strict=True)


@program
def hessian_of_a_vector(lib):
    return lib.autograd.functional.hessian(lambda x: x, x3(lib))


@program
def vhp_of_a_vector(lib):
    return lib.autograd.functional.vhp(lambda x: x, x3(lib), lib.ones(3))


@program
def vjp_without_v(lib):
    return lib.autograd.functional.vjp(lambda x: x, x3(lib))


@program
def v_of_another_shape(lib):
    return lib.autograd.functional.vjp(lambda x: x, x3(lib), lib.ones(2))


@program
def too_many_v(lib):
    return lib.autograd.functional.vjp(lambda x: x, x3(lib), (lib.ones(3), lib.ones(3)))


@program
def a_number_returned(lib):
    return lib.autograd.functional.vjp(lambda x: 3, x3(lib))


@program
def a_number_given(lib):
    return lib.autograd.functional.vjp(lambda x: x, 3)


@program
def jvp_without_v(lib):
    return lib.autograd.functional.jvp(lambda x: x, x3(lib))


@program
def an_unknown_strategy(lib):
    return lib.autograd.functional.jacobian(f, x3(lib), strategy="x")


@program
def forward_mode_not_vectorized(lib):
    return lib.autograd.functional.jacobian(lambda x: x.sin(), x3(lib), strategy="forward-mode")


@program
def strict_and_vectorized(lib):
    return lib.autograd.functional.jacobian(lambda x: x.sin(), x3(lib), vectorize=True, strict=True)


@program
def vjp_of_a_constant_strictly(lib):
    return lib.autograd.functional.vjp(lambda x: lib.ones(()), x3(lib), strict=True)


@program
def jvp_of_a_constant_strictly(lib):
    return lib.autograd.functional.jvp(lambda x: lib.ones(3), x3(lib), lib.ones(3), strict=True)


@program
def jvp_of_a_constant(lib):
    return lib.autograd.functional.jvp(lambda x: x.detach(), x3(lib), lib.ones(3))


@program
def hvp_of_a_linear_function(lib):
    return (
        lib.autograd.functional.hvp(lambda x: x.sum(), x3(lib), lib.ones(3)),
        lib.autograd.functional.vhp(lambda x: x.sum(), x3(lib), lib.ones(3)),
    )


@program
def hvp_of_a_linear_function_strictly(lib):
    return lib.autograd.functional.hvp(lambda x: x.sum(), x3(lib), lib.ones(3), strict=True)


@program
def a_list_returned(lib):
    return lib.autograd.functional.jacobian(lambda x: [x, x * 2], x3(lib))


@program
def a_list_given(lib):
    return lib.autograd.functional.jacobian(lambda x: x.sum(), [x3(lib)])


@program
def a_number_in_the_inputs(lib):
    return lib.autograd.functional.jacobian(lambda x: x, (x3(lib), 3))


@pytest.mark.refuses(
    [
        "a_constant_strictly",
        "an_unused_input_strictly",
        "hessian_of_a_linear_function_strictly",
        "hessian_of_a_vector",
        "vhp_of_a_vector",
        "vjp_without_v",
        "v_of_another_shape",
        "too_many_v",
        "a_number_returned",
        "a_number_given",
        "jvp_without_v",
        "an_unknown_strategy",
        "forward_mode_not_vectorized",
        "strict_and_vectorized",
        "vjp_of_a_constant_strictly",
        "jvp_of_a_constant_strictly",
        "hvp_of_a_linear_function_strictly",
        "a_list_returned",
        "a_list_given",
        "a_number_in_the_inputs",
    ]
)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_in_pytorch(program):
    same(program)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp"])
def test_products(name, strict, create_graph):
    def program(lib):
        x = x3(lib).requires_grad_(create_graph)
        v = [] if name == "vjp" else [lib.ones(3)]
        function = getattr(lib.autograd.functional, name)
        value, product = function(f, x, *v, create_graph=create_graph, strict=strict)
        again = lib.autograd.grad(product.sum(), x) if product.requires_grad else None
        return value.requires_grad, product.detach(), again

    same(program)
