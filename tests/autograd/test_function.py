"""`torch.autograd.Function`, program by program in both libraries."""

import pytest
from alike import same

import weft
from weft.core.grad_mode import mode

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def leaf(lib, size=3):
    return lib.tensor([1.0 + k for k in range(size)], requires_grad=True)


def F(lib, forward, backward=None, **others):  # noqa: N802
    """A Function of these static methods."""
    methods = {"forward": forward, **({"backward": backward} if backward else {}), **others}
    return type("F", (lib.autograd.Function,), {name: staticmethod(each) for name, each in methods.items()})


@program
def setup_context_gets_default_arguments(lib):
    def setup_context(ctx, inputs, output):
        x, power = inputs
        ctx.save_for_backward(x)
        ctx.power = power

    def backward(ctx, gradient):
        return gradient * ctx.power * ctx.saved_tensors[0] ** (ctx.power - 1), None

    function = F(lib, lambda x, power=3: x**power, backward, setup_context=setup_context)
    gradients = []
    for given, named in ((), {}), ((2,), {}), ((), {"power": 4}):
        x = leaf(lib)
        function.apply(x, *given, **named).sum().backward()
        gradients.append(x.grad)
    return gradients


def written_through_data(lib, marked=False, nested=False):
    """The steps of a solver, each in a column of one tensor: earlier columns are saved when the next one is written."""

    def forward(ctx, table, value, column):
        ctx.column = column
        if marked:
            ctx.mark_dirty(table)
        if nested:
            F(lib, lambda ctx, x: x * 1, lambda ctx, grad: grad).apply(value)
        table.data[:, column] = value
        return table

    def backward(ctx, grad):
        return grad, grad[:, ctx.column], None

    write = F(lib, forward, backward).apply
    x, table = leaf(lib), lib.zeros(3, 4)
    step, weights = x, lib.arange(1.0, 5.0)
    for column in range(4):
        table = write(table, step, column)
        step = x + (table[:, : column + 1] * weights[: column + 1] * table[:, : column + 1]).sum(1)
    step.sum().backward()
    return x.grad, table._version


@program
def writes_through_data_in_forward_are_not_counted(lib):
    return written_through_data(lib), written_through_data(lib, nested=True)


@program
def writes_through_data_that_are_marked_are_counted(lib):
    try:
        return written_through_data(lib, marked=True)
    except RuntimeError:
        raise RuntimeError("modified by an inplace operation") from None  # the libraries say other versions


@program
def marked_writes_into_a_constant_are_counted(lib):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.data.add_(1)
        return x

    constant = lib.ones(3)
    product = leaf(lib) * constant
    F(lib, forward, lambda ctx, grad: grad).apply(constant)
    return product.sum().backward()


@program
def other_writes_in_forward_are_counted(lib):
    def forward(ctx, x, other):
        other.add_(1)
        return x * 1

    x = leaf(lib)
    y = x * 1
    z = y * y
    F(lib, forward, lambda ctx, grad: (grad, None)).apply(x, y)
    return z.sum().backward()


@program
def attributes_of_ctx_do_not_meet_those_of_the_node(lib):
    names = "op edges specs static saved result order hooks extra function pushing output pull release finish".split()

    def forward(ctx, x):
        for name in names:
            setattr(ctx, name, name)
        ctx.save_for_backward(x, out := x * x)
        return out

    def backward(ctx, grad):
        assert [getattr(ctx, name) for name in names] == names
        x, out = ctx.saved_tensors
        return grad * 2 * x + 0 * out

    x = leaf(lib)
    F(lib, forward, backward).apply(x).sum().backward()
    return x.grad


@program
def first_and_second_derivatives(lib):
    f = F(
        lib,
        lambda ctx, x: (ctx.save_for_backward(x), x.exp())[1],
        lambda ctx, g: g * ctx.saved_tensors[0].exp(),
    )
    x = leaf(lib)
    y = f.apply(x)
    (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    return (y.grad_fn.name(), y.requires_grad, g, lib.autograd.grad(g.sum(), x), type(y.grad_fn).__name__, y)


@program
def without_backward(lib):
    f = F(lib, lambda ctx, x: x * 2)
    return f.apply(leaf(lib)).sum().backward()


@program
def one_gradient_too_few(lib):
    f = F(lib, lambda ctx, x, y: x * 2, lambda ctx, g: g)
    return f.apply(leaf(lib), 3).sum().backward()


@program
def surplus_gradient(lib):
    f = F(lib, lambda ctx, x: x * 2, lambda ctx, g: (g, g))
    return f.apply(leaf(lib)).sum().backward()


@program
def a_gradient_for_a_number(lib):
    f = F(lib, lambda ctx, x, y: x * y, lambda ctx, g: (g, g))
    return f.apply(leaf(lib), 3).sum().backward()


@program
def none_for_a_number(lib):
    f = F(lib, lambda ctx, x, y: x * y, lambda ctx, g: (g, None))
    x = leaf(lib)
    f.apply(x, 3).sum().backward()
    return x.grad


@program
def a_number_as_gradient(lib):
    f = F(lib, lambda ctx, x: x * 2, lambda ctx, g: 3)
    f.apply(leaf(lib)).sum().backward()


@program
def a_gradient_of_another_shape(lib):
    f = F(lib, lambda ctx, x: x * 2, lambda ctx, g: lib.ones(2))
    f.apply(leaf(lib)).sum().backward()


@program
def a_gradient_that_was_broadcast(lib):
    f = F(lib, lambda ctx, x: x * 2, lambda ctx, g: lib.ones(2, 3))
    x = leaf(lib)
    f.apply(x).sum().backward()
    return x.grad


@program
def a_gradient_of_another_dtype(lib):
    f = F(lib, lambda ctx, x: x * 2, lambda ctx, g: g.double())
    x = leaf(lib)
    f.apply(x).sum().backward()
    return x.grad


@program
def without_forward(lib):

    class A(lib.autograd.Function):
        pass

    return A.apply(leaf(lib))


@program
def called_like_a_module(lib):

    class A(lib.autograd.Function):
        pass

    return A()(leaf(lib))


@program
def several_results(lib):
    f = F(lib, lambda ctx, x: (x * 2, x * 3), lambda ctx, a, b: (log.append((a, b)), a + b)[1])
    log = []
    x = leaf(lib)
    a, b = f.apply(x)
    a.sum().backward()
    return (log, x.grad, type(f.apply(x)), a, b.output_nr)


@program
def grads_not_materialized(lib):

    def fw(ctx, x):
        ctx.set_materialize_grads(False)
        return (x * 2, x * 3)

    f = F(lib, fw, lambda ctx, a, b: (log.append((a, b)), a)[1])
    log = []
    x = leaf(lib)
    a, b = f.apply(x)
    a.sum().backward()
    return (log, x.grad)


@program
def constant_results(lib):

    def fw(ctx, x):
        y = (x * 2).int()
        z = x * 3
        ctx.mark_non_differentiable(z)
        return (y, z, x * 5)

    f = F(lib, fw, lambda ctx, a, b, c: (log.append((a, b, c)), c)[1])
    log = []
    x = leaf(lib)
    a, b, c = f.apply(x)
    r = (a.requires_grad, b.requires_grad, c.requires_grad, b.is_leaf)
    c.sum().backward()
    return (r, log, x.grad)


@program
def an_input_written_in_place(lib):

    def fw(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    f = F(lib, fw, lambda ctx, g: g * 2)
    x = leaf(lib)
    y = x * 1
    z = f.apply(y)
    (z * z).sum().backward()
    return (z is y, z, x.grad, y._version)


@program
def a_dirty_input_not_returned(lib):

    def fw(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x * 1

    f = F(lib, fw, lambda ctx, g: g * 2)
    x = leaf(lib) * 1
    return f.apply(x)


@program
def an_input_returned(lib):

    def fw(ctx, x):
        return x

    f = F(lib, fw, lambda ctx, g: g * 2)
    x = leaf(lib)
    y = f.apply(x)
    y.sum().backward()
    return (y is x, y, x.grad, y._is_view())


@program
def a_view_of_an_input_returned(lib):

    def fw(ctx, x):
        return x.view(3)

    f = F(lib, fw, lambda ctx, g: g * 2)
    x = leaf(lib) * 1
    y = f.apply(x)
    return y.add_(1)


@program
def a_view_among_several_results(lib):

    def fw(ctx, x):
        return (x.view(3), x * 2)

    f = F(lib, fw, lambda ctx, g, h: g * 2)
    x = leaf(lib) * 1
    y, _ = f.apply(x)
    return y.add_(1)


@program
def a_list_returned(lib):
    f = F(lib, lambda ctx, x: [x * 2, x], lambda ctx, a, b: a + b)
    x = leaf(lib)
    return (type(f.apply(x)), f.apply(x))


@program
def other_things_among_the_results(lib):
    f = F(lib, lambda ctx, x: (x * 2, "s", None, 3), lambda ctx, a, b, c, d: (log.append((a, b, c, d)), a)[1])
    log = []
    x = leaf(lib)
    r = f.apply(x)
    r[0].sum().backward()
    return (r, log)


@program
def text_returned(lib):
    f = F(lib, lambda ctx, x: "s", lambda ctx, a: a)
    x = leaf(lib)
    return f.apply(x)


@program
def nothing_returned(lib):
    f = F(lib, lambda ctx, x: None, lambda ctx, a: a)
    x = leaf(lib)
    return f.apply(x)


@program
def save_for_backward_of_a_number(lib):
    f = F(lib, lambda ctx, x: (x.double(), ctx.save_for_backward(3)), lambda ctx, a: a)
    return f.apply(leaf(lib))


@program
def none_is_saved(lib):
    f = F(
        lib,
        lambda ctx, x: (ctx.save_for_backward(x, None), x * 2)[1],
        lambda ctx, g: (log.append(ctx.saved_tensors), g)[1],
    )
    log = []
    f.apply(leaf(lib)).sum().backward()
    return log


@program
def setup_context(lib):

    def setup(ctx, inputs, output):
        ctx.k = inputs[1]
        ctx.save_for_backward(inputs[0], output)

    f = F(
        lib,
        lambda x, k: x**k,
        lambda ctx, g: (g * ctx.k * ctx.saved_tensors[0] ** (ctx.k - 1), None),
        setup_context=setup,
    )
    x = leaf(lib)
    f.apply(x, 3).sum().backward()
    return x.grad


@program
def needs_input_grad(lib):
    f = F(lib, lambda ctx, x: (log.append((ctx.needs_input_grad,)), x * 2)[1], lambda ctx, g: g)
    log = []
    f.apply(leaf(lib))
    f.apply(lib.ones(1))
    with lib.no_grad():
        y = f.apply(leaf(lib))
    return (log, y.requires_grad)


@program
def when_recording_is_on(lib):
    f = F(
        lib,
        lambda ctx, x: (log.append(lib.is_grad_enabled()), x * 2)[1],
        lambda ctx, g: (log.append(lib.is_grad_enabled()), g)[1],
    )
    log = []
    f.apply(leaf(lib)).sum().backward()
    f.apply(leaf(lib)).sum().backward(create_graph=True)
    return log


@program
def saved_tensors_are_freed(lib):
    f = F(
        lib, lambda ctx, x: (ctx.save_for_backward(x), x * x)[1], lambda ctx, g: g * 2 * ctx.saved_tensors[0]
    )
    x = leaf(lib)
    y = f.apply(x).sum()
    y.backward()
    y.backward()


@program
def once_differentiable(lib):
    bw = lib.autograd.function.once_differentiable(lambda ctx, g: g * 2)
    f = F(lib, lambda ctx, x: x * 2, bw)
    x = leaf(lib)
    y = f.apply(x)
    (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    return (g, lib.autograd.grad((x * 2).sum(), x))


@program
def defaults_of_forward(lib):

    class A(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, k=2):
            ctx.k = k
            return x * k

        @staticmethod
        def backward(ctx, g):
            return (g * ctx.k, None)

    x = leaf(lib)
    A.apply(x).sum().backward()
    return x.grad


@program
def vjp_in_place_of_backward(lib):

    class A(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, k=2):
            ctx.k = k
            return x * k

        @staticmethod
        def vjp(ctx, g):
            return (g * ctx.k, None)

    x = leaf(lib)
    A.apply(x, 5).sum().backward()
    return x.grad


@program
def both_vjp_and_backward(lib):

    class A(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, g):
            return g

        @staticmethod
        def backward(ctx, g):
            return g

    x = leaf(lib)
    A.apply(x).sum().backward()


@program
def jvp(lib):
    fA = lib.autograd.forward_ad

    class A(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_forward(x, y)
            return x * y

        @staticmethod
        def jvp(ctx, tx, ty):
            x, y = ctx.saved_tensors
            log.append((tx, ty))
            return tx * y + x * (ty if ty is not None else 0)

    log = []
    with fA.dual_level():
        x = fA.make_dual(lib.tensor([1.0, 2.0]), lib.tensor([1.0, 0.0]))
        z = A.apply(x, lib.tensor([3.0, 4.0]))
        return (fA.unpack_dual(z), log)


@program
def without_jvp(lib):
    fA = lib.autograd.forward_ad

    class A(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with fA.dual_level():
        x = fA.make_dual(lib.tensor([1.0, 2.0]), lib.tensor([1.0, 0.0]))
        return A.apply(x)


@program
def nested_transforms(lib):

    class A(lib.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x**2

        @staticmethod
        def setup_context(ctx, i, o):
            ctx.save_for_backward(i[0])

        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0]

    return (
        lib.func.vmap(A.apply)(lib.ones(2, 3)),
        lib.func.vmap(lib.func.grad(lambda x: A.apply(x).sum()))(lib.ones(2, 3)),
        lib.func.grad(lib.func.grad(lambda x: A.apply(x)))(lib.tensor(3.0)),
    )


@program
def graph_goes_on_behind_it(lib):
    f = F(lib, lambda ctx, x: x * 2, lambda ctx, g: g)
    y = f.apply(leaf(lib))
    y.mul_(2)
    return (y.grad_fn.name(), y.grad_fn.next_functions[0][0].name())


@program
def a_detached_input_returned(lib):
    f = F(lib, lambda ctx, x: x.detach(), lambda ctx, g: g * 3)
    x = leaf(lib)
    y = f.apply(x)
    y.sum().backward()
    return x.grad


@program
def a_new_leaf_returned(lib):
    f = F(lib, lambda ctx, x: lib.ones(3, requires_grad=True), lambda ctx, g: g * 3)
    x = leaf(lib)
    y = f.apply(x)
    y.sum().backward()
    return x.grad


@program
def a_dictionary_as_argument(lib):
    f = F(lib, lambda ctx, x, d: x * d["k"], lambda ctx, g: (g * 3, None))
    x = leaf(lib)
    y = f.apply(x, {"k": 2})
    y.sum().backward()
    return x.grad


@program
def a_tensor_in_a_list_is_a_constant(lib):
    f = F(lib, lambda ctx, x, y: x[0] * y, lambda ctx, g: (None, g))
    x = leaf(lib)
    y = f.apply([x], x)
    y.sum().backward()
    return x.grad


@program
def saved_results(lib):

    def fw(ctx, x):
        y = x * 2
        z = y * 2
        ctx.mark_non_differentiable(y)
        ctx.save_for_backward(y, z)
        return (y, z)

    f = F(lib, fw, lambda ctx, a, b: (log.append([t.requires_grad for t in ctx.saved_tensors]), b * 4)[1])
    log = []
    x = leaf(lib)
    y, z = f.apply(x)
    z.sum().backward(create_graph=True)
    return (log, x.grad)


@program
def a_saved_result_differentiated_twice(lib):

    def fw(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    f = F(lib, fw, lambda ctx, g: g * ctx.saved_tensors[0])
    x = leaf(lib)
    y = f.apply(x)
    (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = lib.autograd.grad(g.sum(), x, create_graph=True)
    return (g, h)


@program
def a_view_marked_dirty(lib):
    f = F(lib, lambda ctx, x: (ctx.mark_dirty(x), x)[1], lambda ctx, g: g)
    x = leaf(lib) * 1
    v = x[:2]
    y = f.apply(v)
    return (y is v, y, x)


@program
def a_view_written_in_place(lib):

    def fw(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    f = F(lib, fw, lambda ctx, g: g * 2)
    x = leaf(lib)
    y = x * 1
    v = y[:2]
    f.apply(v)
    y.sum().backward()
    return (x.grad, y)


@program
def several_results_one_in_place(lib):

    def fw(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return (x, x * 3)

    f = F(lib, fw, lambda ctx, g, h: g * 2 + h * 6)
    x = leaf(lib)
    y = x * 1
    z, w = f.apply(y)
    (z + w).sum().backward()
    return (x.grad, z is y, z.output_nr, w)


@program
def anomaly_mode(lib):
    x = leaf(lib)
    with lib.autograd.detect_anomaly(check_nan=True):
        f = F(lib, lambda ctx, x: x * 2, lambda ctx, g: g * float("nan"))
        f.apply(x).sum().backward()


@program
def an_array_as_gradient(lib):
    f = F(lib, lambda ctx, x: x * 2, lambda ctx, g: g.numpy())
    f.apply(leaf(lib)).sum().backward()


@program
def under_no_grad(lib):
    f = F(lib, lambda ctx, x: x * 2, lambda ctx, g: g)
    y = f.apply(leaf(lib))
    with lib.no_grad():
        z = f.apply(y)
    return (z.requires_grad, repr(f), f.__name__, f.apply.__name__)


@program
def a_saved_leaf_is_the_leaf(lib):
    f = F(
        lib,
        lambda ctx, x: (ctx.save_for_backward(x), x * 2)[1],
        lambda ctx, g: (log.append(ctx.saved_tensors[0] is x), g)[1],
    )
    log = []
    x = leaf(lib)
    f.apply(x).sum().backward()
    return log


@pytest.mark.refuses(
    [
        "without_backward",
        "one_gradient_too_few",
        "surplus_gradient",
        "a_gradient_for_a_number",
        "a_number_as_gradient",
        "a_gradient_of_another_shape",
        "without_forward",
        "called_like_a_module",
        "a_dirty_input_not_returned",
        "a_view_of_an_input_returned",
        "a_view_among_several_results",
        "save_for_backward_of_a_number",
        "saved_tensors_are_freed",
        "both_vjp_and_backward",
        "without_jvp",
        "anomaly_mode",
        "an_array_as_gradient",
        "writes_through_data_that_are_marked_are_counted",
        "marked_writes_into_a_constant_are_counted",
        "other_writes_in_forward_are_counted",
    ]
)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_in_pytorch(program):
    same(program)


def test_names():
    for name in (
        "Function",
        "FunctionCtx",
        "FunctionMeta",
        "InplaceFunction",
        "BackwardCFunction",
        "once_differentiable",
    ):
        assert hasattr(weft.autograd.function, name)


def test_once_differentiable_refuses_a_second_time():
    backward = weft.autograd.function.once_differentiable(lambda ctx, grad: grad * 2)
    x = leaf(weft)
    y = F(weft, lambda ctx, x: x * 2, backward).apply(x)
    (first,) = weft.autograd.grad((y * y).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was marked"):
        first.sum().backward()


def test_forward_over_reverse():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x**3

    cube = F(
        weft,
        forward,
        lambda ctx, grad: grad * 3 * ctx.saved_tensors[0] ** 2,
        jvp=lambda ctx, tangent: tangent * 3 * ctx.saved_tensors[0] ** 2,
    ).apply
    x = weft.tensor([1.0, 2.0])
    hessian = weft.func.jacfwd(weft.func.jacrev(lambda x: cube(x).sum()))(x)
    assert hessian.tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert weft.func.jacfwd(weft.func.jacfwd(cube))(x)[1, 1].tolist() == [0.0, 12.0]


def test_jvp_of_several_results_counts_them():
    f = F(weft, lambda ctx, x: (x * 2, x * 3), jvp=lambda ctx, t: t * 2)
    with pytest.raises(RuntimeError, match=r"expected 2, got 1"):
        weft.func.jvp(f.apply, (weft.ones(2),), (weft.ones(2),))


def test_writes_through_data_count_again_after_a_forward():
    def forward(ctx, x):
        assert mode.forward is not None
        raise KeyError

    y = leaf(weft) * 1
    z = y * y
    with pytest.raises(KeyError):
        F(weft, forward).apply(y)
    assert mode.forward is None
    y.data.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_mark_dirty_counts_as_a_write():
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x

    y = leaf(weft) * 1
    z = y.exp()
    F(weft, forward, lambda ctx, grad: grad).apply(z)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_a_large_gradient_reaches_a_function_that_nobody_else_holds():
    class Doubled(weft.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = weft.ones(600, 600, requires_grad=True)
    (Doubled.apply(x * 2) * 3).exp().sum().backward()  # the gradient that exp makes could be overwritten
    assert x.grad[0, 0] == pytest.approx(12 * 2.718281828**12)
