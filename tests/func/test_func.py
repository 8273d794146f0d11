"""`torch.func`, program by program in both libraries."""

import pytest
import torch
from alike import same

import weft
from weft.core.grad_mode import open_levels

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def x3(lib):
    return lib.tensor([0.3, 0.7, 1.1])


@program
def grad(lib):
    return lib.func.grad(lambda x: x.sin().sum())(x3(lib))


@program
def grad_of_two_arguments(lib):
    return lib.func.grad(lambda x, y: (x * y).sum(), argnums=(0, 1))(x3(lib), x3(lib) + 1)


@program
def grad_of_the_second_argument(lib):
    return lib.func.grad(lambda x, y: (x * y).sum(), argnums=1)(x3(lib), x3(lib) + 1)


@program
def grad_of_a_dictionary(lib):
    return lib.func.grad(lambda d: (d["w"] * d["b"]).sum())({"w": x3(lib), "b": x3(lib) * 2})


@program
def grad_with_keywords(lib):
    return lib.func.grad(lambda x, k=2: (x**k).sum())(x3(lib), k=3)


@program
def grad_and_value(lib):
    return lib.func.grad_and_value(lambda x: (x * x).sum())(x3(lib))


@program
def grad_and_value_with_aux(lib):
    return lib.func.grad_and_value(lambda x: ((x * x).sum(), x), has_aux=True)(x3(lib))


@program
def grad_of_a_vector(lib):
    return lib.func.grad(lambda x: x)(x3(lib))


@program
def grad_of_a_number(lib):
    return lib.func.grad(lambda x: 3)(x3(lib))


@program
def argnum_out_of_range(lib):
    return lib.func.grad(lambda x: x.sum(), argnums=2)(x3(lib))


@program
def argnum_twice(lib):
    return lib.func.grad(lambda x: x.sum(), argnums=(0, 0))(x3(lib))


@program
def transforms_within_no_grad(lib):
    x, w = lib.tensor(1.5, requires_grad=True), lib.ones(2, requires_grad=True)
    func, made = lib.func, x * 1

    def cube(x):
        return x**3

    with lib.no_grad():
        output, push = func.linearize(cube, x)
        found = [
            func.grad(cube)(x),
            func.grad(func.grad(cube))(x),
            *func.vjp(cube, x)[1](lib.tensor(2.0)),
            *func.jvp(func.grad(cube), (x,), (lib.tensor(1.0),)),
            func.jacrev(lambda a: a * w)(w),
            func.jacfwd(cube)(x),
            lib.vmap(func.grad(lambda a: (a * w).sum()))(w),
            lib.vmap(lambda a: func.grad(lambda b: (a * b * x).sin())(a))(w),
            output,
            push(lib.tensor(2.0)),
        ]
        gradient, (same, before) = func.grad(lambda a: (a * x, (x, made)), has_aux=True)(x)
    return found, [each.requires_grad for each in (*found, gradient, before)], same is x


@program
def a_cotangent_pulled_back_within_no_grad(lib):
    x = lib.tensor(3.0, requires_grad=True)
    y, pull = lib.func.vjp(lambda x: x**2, x)
    with lib.no_grad():
        (g,) = pull(lib.tensor(1.0))
    return g, g.requires_grad, lib.autograd.grad(y, x)


@program
def a_transform_within_no_grad_within_a_transform(lib):
    def h(x):
        with lib.no_grad():
            shift = lib.func.grad(lambda x: 0.25 * x**4)(x)
        return x**3 - shift

    x = lib.tensor(1.5, requires_grad=True)
    y = lib.func.grad(h)(x)
    return y, lib.autograd.grad(y, x)


@program
def jvp_while_tangents_are_switched_off(lib):
    with lib.autograd.forward_ad._set_fwd_grad_enabled(False):
        return lib.func.jvp(lib.sin, (lib.tensor(0.0),), (lib.tensor(2.0),))


@program
def hessians_of_a_layer(lib):
    layer = lib.nn.Linear(2, 2)
    with lib.no_grad():
        layer.weight.copy_(lib.tensor([[1.0, 2.0], [3.0, 4.0]]))
        layer.bias.copy_(lib.ones(2))
    hessian = lib.func.hessian(lambda x: layer(x).sin().sum())
    return lib.vmap(hessian)(lib.tensor([[0.1, 0.2], [0.3, 0.4]])).round(decimals=4)


@program
def a_jacobian_in_parts_of_nothing(lib):
    return lib.func.jacrev(lib.sin, chunk_size=0)


@program
def a_jacobian_of_nothing(lib):
    return lib.func.jacrev(lambda x: None)(x3(lib))


@program
def jvp_of_a_number(lib):
    return lib.func.jvp(lambda x: x, (1,), (1,))


@program
def jvp_without_primals(lib):
    return lib.func.jvp(lib.sin, (), ())


@program
def a_list_of_argnums(lib):
    return lib.func.grad(lambda x: x.sum(), argnums=[0])(x3(lib))


@program
def no_argnums(lib):
    return lib.func.grad(lambda x: x.sum(), argnums=())(x3(lib))


@program
def an_argnum_that_is_no_int(lib):
    return lib.func.jacrev(lambda x: x.sum(), argnums=(0.0,))(x3(lib))


@program
def grad_of_a_tuple(lib):
    return lib.func.grad(lambda x: (x.sum(),))(x3(lib))


@program
def aux_missing(lib):
    return lib.func.grad(lambda x: (x.sum(),), has_aux=True)(x3(lib))


@program
def grad_of_a_constant(lib):
    return lib.func.grad(lambda x: lib.tensor(1.0))(x3(lib))


@program
def grad_of_another_dtype(lib):
    return (
        lib.func.grad(lambda x: x.sum().double())(x3(lib)),
        lib.func.grad(lambda n, x: x.sum() * n, argnums=-1)(1, x3(lib)),
    )


@program
def grad_of_grad(lib):
    return lib.func.grad(lib.func.grad(lambda x: x**3))(lib.tensor(2.0))


@program
def grad_keeps_the_outer_graph(lib):
    w = lib.ones(3, requires_grad=True)
    g = lib.func.grad(lambda x: (x * w * w).sum())(x3(lib))
    return (g.requires_grad, lib.autograd.grad(g.sum(), w))


@program
def grad_at_a_leaf(lib):
    w = lib.ones(3, requires_grad=True)
    g = lib.func.grad(lambda x: (x**3).sum())(w)
    return (g.requires_grad, lib.autograd.grad(g.sum(), w))


@program
def no_grad_inside(lib):

    def f(x):
        with lib.no_grad():
            c = x**2
        return (x - c).sum()

    return (lib.func.grad(f)(x3(lib)), lib.func.jvp(f, (x3(lib),), (lib.ones(3),)))


@program
def no_grad_outside(lib):
    with lib.no_grad():
        return lib.func.grad(lambda x: (x**2).sum())(x3(lib))


@program
def detach_inside(lib):
    return lib.func.grad(lambda x: (x.detach() * x).sum())(x3(lib))


@program
def writes_in_place_inside(lib):

    def f(x):
        y = x * 1
        y.mul_(2)
        y[0] = 0
        return (y * y).sum()

    return (lib.func.grad(f)(x3(lib)), lib.func.vmap(lib.func.grad(f))(lib.ones(2, 3)))


@program
def grad_at_a_complex_point(lib):
    return lib.func.grad(lambda x: x.abs().sum())(x3(lib) + 1j)


@program
def grad_with_respect_to_integers(lib):
    return lib.func.grad(lambda x, y: x.sum())(lib.ones(2, dtype=lib.int64), 3)


@program
def vjp_twice(lib):
    y, f = lib.func.vjp(lambda x: x.sin(), x3(lib))
    return (y, f(lib.ones(3)), f(lib.ones(3) * 2))


@program
def vjp_of_a_tree(lib):
    y, f = lib.func.vjp(lambda x, z: (x * z, {"s": x.sum()}), x3(lib), x3(lib))
    return (y, f((lib.ones(3), {"s": lib.tensor(2.0)})))


@program
def vjp_with_aux(lib):
    y, f, a = lib.func.vjp(lambda x: (x.sin(), [x]), x3(lib), has_aux=True)
    return (y, f(lib.ones(3)), a)


@program
def vjp_of_a_dictionary(lib):
    y, f = lib.func.vjp(lambda d: d["a"] * 2, {"a": x3(lib)})
    return f(lib.ones(3))


@program
def a_cotangent_of_another_shape(lib):
    y, f = lib.func.vjp(lambda x: x.sin(), x3(lib))
    return f(lib.ones(2))


@program
def vjp_of_a_number(lib):
    return lib.func.vjp(lambda x: 3, x3(lib))


@program
def vjp_at_a_number(lib):
    return lib.func.vjp(lambda x: x, 3)


@program
def vjp_of_a_tuple(lib):
    y, f = lib.func.vjp(lambda x: (x, x * 2), x3(lib))
    return (f((lib.ones(3), lib.ones(3))),)


@program
def vjp_of_an_unused_argument(lib):
    y, f = lib.func.vjp(lambda x, y: x, x3(lib), x3(lib))
    return f(lib.ones(3))


@program
def jvp_of_two_arguments(lib):
    return lib.func.jvp(lambda x, y: x * y, (x3(lib), x3(lib)), (lib.ones(3), lib.zeros(3)))


@program
def jvp_of_a_tree(lib):
    return lib.func.jvp(lambda x: {"a": x * 2, "b": (x.sum(),)}, (x3(lib),), (lib.ones(3),))


@program
def jvp_of_a_constant(lib):
    return lib.func.jvp(lambda x: lib.ones(2), (x3(lib),), (lib.ones(3),))


@program
def jvp_of_a_constant_strictly(lib):
    return lib.func.jvp(lambda x: lib.ones(2), (x3(lib),), (lib.ones(3),), strict=True)


@program
def a_tangent_of_another_shape(lib):
    return lib.func.jvp(lambda x: x, (x3(lib),), (lib.ones(2),))


@program
def primals_that_are_no_tuple(lib):
    return lib.func.jvp(lambda x: x, x3(lib), lib.ones(3))


@program
def jvp_of_jvp(lib):
    return lib.func.jvp(
        lambda x: lib.func.jvp(lambda y: y**3, (x,), (lib.ones(3),))[1], (x3(lib),), (lib.ones(3),)
    )


@program
def jvp_of_grad(lib):
    return lib.func.jvp(lib.func.grad(lambda x: (x**3).sum()), (x3(lib),), (lib.ones(3),))


@program
def grad_of_jvp(lib):
    return lib.func.grad(lambda x: lib.func.jvp(lambda y: (y**3).sum(), (x,), (lib.ones(3),))[1])(x3(lib))


@program
def jacrev(lib):
    return lib.func.jacrev(lambda x: x.sin())(x3(lib))


@program
def jacrev_of_several_of_several(lib):
    return lib.func.jacrev(lambda x, y: (x * y.sum(), y**2), argnums=(0, 1))(x3(lib), x3(lib)[:2])


@program
def jacrev_with_aux(lib):
    return lib.func.jacrev(lambda x: (x.sin(), x), has_aux=True)(x3(lib))


@program
def jacrev_of_dictionaries(lib):
    return lib.func.jacrev(lambda d: {"o": d["a"] * d["b"]})({"a": x3(lib), "b": x3(lib)})


@program
def jacfwd(lib):
    return lib.func.jacfwd(lambda x: x.sin())(x3(lib))


@program
def jacfwd_of_several_of_several(lib):
    return lib.func.jacfwd(lambda x, y: (x * y.sum(), y**2), argnums=(0, 1))(x3(lib), x3(lib)[:2])


@program
def jacfwd_with_aux(lib):
    return lib.func.jacfwd(lambda x: (x.sin(), x), has_aux=True)(x3(lib))


@program
def jacfwd_of_dictionaries(lib):
    return lib.func.jacfwd(lambda d: {"o": d["a"] * d["b"]})({"a": x3(lib), "b": x3(lib)})


@program
def vmap_of_as_strided(lib):
    functions = (
        lambda x: x.as_strided((2,), (1,), 0),
        lambda x: x.as_strided((2,), (2,), 1),
        lambda x: x[1:].as_strided((2,), (1,)),
    )
    x = lib.arange(12.0).view(3, 4)
    return [lib.vmap(f)(x) for f in functions], lib.vmap(functions[2])(lib.arange(20.0)[4:16].view(3, 4))


@program
def vmap_of_scatters_into_views(lib):
    x, rows = lib.arange(12.0).view(3, 2, 2), lib.zeros(3, 2)
    return (
        lib.vmap(lambda x, row: x.diagonal_scatter(row))(x, rows),
        lib.vmap(lambda x, row: x.select_scatter(row, 0, 1))(x.transpose(1, 2), rows),
    )


@program
def jacobians_of_reductions_into_indexed_elements(lib):
    x, source, index = lib.tensor([1.0, -2.0, 3.0]), lib.tensor([4.0, -5.0, 6.0]), lib.tensor([0, 0, 2])

    def reduced(reduce):
        return lambda x, source: x.scatter_reduce(0, index, source, reduce, include_self=False)

    both = (lib.func.jacrev, lib.func.jacfwd)
    found = [make(reduced(r), argnums=(0, 1))(x, source) for make in both for r in ("amin", "mean")]
    found.append(lib.func.jacrev(reduced("prod"), argnums=(0, 1))(x, source))
    batches = lib.stack([x, x * 2]), lib.stack([source, -source])
    gradient = lib.func.grad(lambda x, source: reduced("amax")(x, source).sin().sum(), argnums=(0, 1))
    return found, lib.vmap(reduced("prod"))(*batches), lib.vmap(gradient)(*batches)


@program
def gradients_of_a_batch_of_reductions_into_indexed_elements(lib):
    source = lib.tensor([[4.0, -5.0, 6.0], [1.0, 2.0, 3.0]], requires_grad=True)
    index = lib.tensor([0, 0, 1])
    found = lib.vmap(lambda source: lib.zeros(2).index_reduce(0, index, source, "prod", include_self=False))(
        source
    )
    found.sum().backward()
    return found, source.grad


@program
def gradient_around_a_write_into_a_part_of_a_new_tensor(lib):
    def shifted(row):
        result = row.new_zeros(3) + row.detach() * 0
        result[:2].copy_(row[1:] * 2)
        return result

    x = lib.arange(6.0).view(2, 3).requires_grad_()
    lib.vmap(shifted)(x).sin().sum().backward()
    return x.grad


@program
def jacobian_of_selected_elements(lib):
    x = x3(lib)
    return lib.func.jacrev(lambda x: lib.masked_select(x * x, lib.tensor([True, False, True])))(x)


@program
def jacobians_of_results_that_are_not_contiguous(lib):
    x = lib.arange(6.0).reshape(2, 3)
    functions = (lambda x: (x * x).t(), lambda x: x.sin().as_strided((2, 2), (1, 2)), lambda x: x.t() ** 3)
    return [
        make(f)(each) for make in (lib.func.jacrev, lib.func.jacfwd) for f in functions for each in (x, x.t())
    ]


@program
def all_ways_to_a_hessian(lib):
    def f(x):
        return (x**3).sum()

    return (
        lib.func.jacfwd(lib.func.jacrev(f))(x3(lib)),
        lib.func.jacrev(lib.func.jacfwd(f))(x3(lib)),
        lib.func.jacrev(lib.func.jacrev(f))(x3(lib)),
        lib.func.jacfwd(lib.func.jacfwd(f))(x3(lib)),
        lib.func.hessian(f)(x3(lib)),
    )


@program
def hessian_of_two_arguments(lib):
    return lib.func.hessian(lambda x, y: (x * x * y).sum(), argnums=(0, 1))(x3(lib), x3(lib))


@program
def jacrev_at_nothing(lib):
    return (lib.func.jacrev(lambda x: x * 2)(lib.ones(0)),)


@program
def shape_of_a_jacobian(lib):
    return lib.func.jacrev(lambda x: x.sum() * 0 + lib.ones(2, 2))(lib.ones(2, 2)).shape


@program
def vmap(lib):
    return (
        lib.vmap(lambda x: x.sum())(lib.ones(3, 2)),
        lib.func.vmap(lambda x, y: x * y, in_dims=(0, None))(lib.ones(3, 2), lib.ones(2)),
        lib.func.vmap(lambda x: x, in_dims=1, out_dims=1)(lib.arange(6.0).view(2, 3)),
    )


@program
def vmap_of_a_dictionary(lib):
    return lib.vmap(lambda d: d["a"] + d["b"], in_dims=({"a": 0, "b": None},))(
        {"a": lib.ones(3, 2), "b": lib.ones(2)}
    )


@program
def vmap_with_out_dims(lib):
    return lib.vmap(lambda x: (x, x.sum()), out_dims=(1, 0))(lib.ones(3, 2))


@program
def vmap_of_vmap(lib):
    return (
        lib.vmap(lambda x: x)(lib.ones(3))[0],
        lib.func.vmap(lib.func.vmap(lambda x: x * 2))(lib.ones(2, 3)),
    )


@program
def vmap_of_different_sizes(lib):
    return lib.vmap(lambda x, y: x)(lib.ones(3), lib.ones(2))


@program
def vmap_without_in_dims(lib):
    return lib.vmap(lambda x: x, in_dims=None)(lib.ones(3))


@program
def vmap_of_a_number(lib):
    return lib.vmap(lambda x: 3)(lib.ones(3))


@program
def vmap_over_a_number(lib):
    return lib.vmap(lambda x: x)(3)


@program
def vmap_over_a_scalar(lib):
    return lib.vmap(lambda x: x)(lib.tensor(3.0))


@program
def vmap_and_random_numbers(lib):
    return lib.vmap(lambda x: x + lib.rand(2))(lib.ones(3, 2))


@program
def vmap_with_the_same_random_numbers(lib):
    r = lib.vmap(lambda x: x + lib.rand(2), randomness="same")(lib.ones(3, 2))
    return bool((r[0] == r[1]).all())


@program
def vmap_with_different_random_numbers(lib):
    r = lib.vmap(lambda x: x + lib.rand(2), randomness="different")(lib.ones(3, 2))
    return bool((r[0] == r[1]).all())


@program
def vmap_with_unknown_randomness(lib):
    return lib.vmap(lambda x: x, randomness="x")(lib.ones(3))


@program
def vmap_over_a_dimension_out_of_range(lib):
    return lib.vmap(lambda x: x, in_dims=3)(lib.ones(3))


@program
def vmap_over_text(lib):
    return lib.vmap(lambda x: x, in_dims="a")(lib.ones(3))


@program
def out_dim_out_of_range(lib):
    return lib.vmap(lambda x: x, out_dims=3)(lib.ones(3))


@program
def keywords_are_not_mapped(lib):
    return lib.vmap(lambda x, k=None: x * k)(lib.ones(3), k=lib.ones(3))


@program
def vmap_in_chunks(lib):
    return (
        lib.vmap(lambda x: x * 2, chunk_size=2)(lib.arange(5.0)),
        lib.func.vmap(lambda x: x * 2, in_dims=-1)(lib.arange(6.0).view(2, 3)),
    )


@program
def vmap_of_none(lib):
    return lib.vmap(lambda x: (x, None))(lib.ones(3))


@program
def vmap_over_nothing(lib):
    return lib.vmap(lambda x: x * 2)(lib.ones(0, 3)).shape


@program
def vmap_of_a_tree(lib):
    return lib.vmap(lambda x: [x, {"a": x}])(lib.ones(2))


@program
def vmap_of_a_constant(lib):
    return (
        lib.vmap(lambda x: lib.ones(2), out_dims=None)(lib.ones(3))
        if 0
        else lib.func.vmap(lambda x: lib.ones(2))(lib.ones(3))
    )


@program
def negative_out_dim(lib):
    return lib.vmap(lambda x: x, out_dims=-1)(lib.arange(6.0).view(2, 3)).shape


@program
def gradients_per_sample(lib):
    lib.manual_seed(0)
    m = lib.nn.Linear(3, 2)
    prm = dict(m.named_parameters())
    prm = {k: q.detach() for k, q in prm.items()}

    def loss(q, x, y):
        return lib.nn.functional.mse_loss(lib.func.functional_call(m, q, (x.unsqueeze(0),)), y.unsqueeze(0))

    return lib.vmap(lib.func.grad(loss), in_dims=(None, 0, 0))(prm, lib.ones(4, 3), lib.ones(4, 2))


@program
def an_ensemble(lib):
    lib.manual_seed(0)
    ms = [lib.nn.Linear(3, 2) for _ in range(3)]
    prm, buf = lib.func.stack_module_state(ms)
    base = lib.nn.Linear(3, 2)

    def f(q, b, x):
        return lib.func.functional_call(base, (q, b), (x,))

    return (
        lib.vmap(f, in_dims=(0, 0, None))(prm, buf, lib.ones(1, 3)),
        {k: q.requires_grad for k, q in prm.items()},
    )


@program
def functional_call(lib):
    m = lib.nn.Linear(2, 2)
    return (
        lib.func.functional_call(m, {"weight": lib.eye(2), "bias": lib.ones(2)}, lib.ones(1, 2)),
        lib.func.functional_call(m, {"weight": lib.eye(2), "bias": lib.zeros(2)}, (lib.ones(1, 2),), {}),
    )


@program
def functional_call_with_an_unknown_name(lib):
    m = lib.nn.Linear(2, 2)
    return lib.func.functional_call(m, {"weightx": lib.eye(2)}, lib.ones(1, 2), strict=True)


@program
def functional_call_with_a_name_twice(lib):
    m = lib.nn.Linear(2, 2)
    return lib.func.functional_call(m, ({"weight": lib.eye(2)}, {"weight": lib.eye(2)}), lib.ones(1, 2))


@program
def no_models_to_stack(lib):
    return lib.func.stack_module_state([])


@program
def models_of_two_classes_to_stack(lib):
    return lib.func.stack_module_state([lib.nn.Linear(1, 1), lib.nn.Bilinear(1, 1, 1)])


@program
def models_of_two_modes_to_stack(lib):
    return lib.func.stack_module_state([lib.nn.Linear(1, 1), lib.nn.Linear(1, 1).eval()])


@program
def linearize(lib):
    y, f = lib.func.linearize(lambda x: x.sin(), x3(lib))
    return (y, f(lib.ones(3)), f(lib.ones(3) * 2))


@program
def linearize_a_tree(lib):
    y, f = lib.func.linearize(lambda x, y: {"o": x * y}, x3(lib), x3(lib))
    return (y, f(lib.ones(3), lib.zeros(3)))


@program
def batch_norms_replaced(lib):
    m = lib.nn.Sequential(lib.nn.BatchNorm1d(2))
    lib.func.replace_all_batch_norm_modules_(m)
    return (m[0].running_mean, m[0].track_running_stats)


@pytest.mark.refuses(
    [
        "grad_of_a_vector", "grad_of_a_number", "argnum_out_of_range", "argnum_twice", "grad_of_a_tuple",
        "aux_missing", "grad_with_respect_to_integers", "a_jacobian_in_parts_of_nothing",
        "a_jacobian_of_nothing", "jvp_of_a_number", "jvp_without_primals", "a_list_of_argnums", "no_argnums",
        "an_argnum_that_is_no_int", "a_cotangent_of_another_shape", "vjp_of_a_number", "vjp_at_a_number",
        "jvp_of_a_constant_strictly", "a_tangent_of_another_shape", "primals_that_are_no_tuple",
        "vmap_of_different_sizes", "vmap_without_in_dims", "vmap_of_a_number", "vmap_over_a_number",
        "vmap_over_a_scalar", "vmap_and_random_numbers", "vmap_with_unknown_randomness",
        "vmap_over_a_dimension_out_of_range", "vmap_over_text", "out_dim_out_of_range", "vmap_of_none",
        "functional_call_with_an_unknown_name", "functional_call_with_a_name_twice", "no_models_to_stack",
        "models_of_two_classes_to_stack", "models_of_two_modes_to_stack",
    ]
)  # fmt: skip
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_in_pytorch(program):
    same(program)


def test_a_function_that_raises_leaves_forward_mode():
    with pytest.raises(ZeroDivisionError):
        weft.func.jvp(lambda x: 1 / 0, (weft.ones(2),), (weft.ones(2),))
    assert not open_levels


def test_functional_call_takes_dicts_only():
    for lib in (torch, weft):
        with pytest.raises(ValueError, match="to be a dict, or a list/tuple of dicts, but got <class 'int'>"):
            lib.func.functional_call(lib.nn.Linear(1, 1), 3, lib.ones(1, 1))


@pytest.mark.parametrize("lib", [torch, weft], ids=["torch", "weft"])
@pytest.mark.parametrize("size, offset", [(5, 0), (12, 0), (2, 3)])
def test_as_strided_under_vmap_stays_within_the_samples(lib, size, offset):
    with pytest.raises(RuntimeError):
        lib.vmap(lambda x: x.as_strided((size,), (1,), offset))(lib.arange(12.0).view(3, 4))
