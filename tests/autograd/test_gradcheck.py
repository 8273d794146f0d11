"""`gradcheck` finds wrong derivatives, and only those."""

import pytest
import torch

import weft

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def xd(lib):
    return lib.tensor([0.3, 0.7, 1.1], dtype=lib.float64, requires_grad=True)


def bad(lib):
    """The square, with a wrong derivative."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0] * 3

    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Bad", (lib.autograd.Function,), methods).apply


@program
def a_wrong_derivative(lib):
    return lib.autograd.gradcheck(bad(lib), (xd(lib),))


@program
def a_wrong_derivative_reported(lib):
    return (
        lib.autograd.gradcheck(bad(lib), (xd(lib),), raise_exception=False),
        lib.autograd.gradcheck(bad(lib), (xd(lib),), raise_exception=False, fast_mode=True),
    )


@program
def nothing_requires_grad(lib):
    return lib.autograd.gradcheck(lambda x: x.sin(), (lib.ones(2),))


@program
def single_precision(lib):
    return lib.autograd.gradcheck(
        lambda x: x.sin(), (lib.ones(2, requires_grad=True),), raise_exception=False
    )


@program
def forward_mode_too(lib):
    return (
        lib.autograd.gradcheck(lambda x: x.sin(), xd(lib), check_forward_ad=True),
        lib.autograd.gradcheck(lambda x: x.sin(), xd(lib), fast_mode=True, check_forward_ad=True),
        lib.autograd.gradgradcheck(lambda x: x.sin(), xd(lib), check_fwd_over_rev=True),
    )


@program
def random_numbers(lib):
    return lib.autograd.gradcheck(lambda x: x * lib.rand(3, dtype=lib.float64), xd(lib))


@program
def complex_matrices(lib):
    return lib.autograd.gradcheck(
        lambda x, y: x @ y,
        (
            lib.randn(2, 3, dtype=lib.complex128, requires_grad=True),
            lib.randn(3, 2, dtype=lib.float64, requires_grad=True).to(lib.complex128)
            if 0
            else lib.randn(3, 2, dtype=lib.complex128, requires_grad=True),
        ),
        check_forward_ad=True,
        check_batched_grad=True,
    )


@program
def a_detached_result(lib):
    return lib.autograd.gradcheck(lambda x: x.detach(), xd(lib))


@program
def a_wrong_second_derivative(lib):
    return lib.autograd.gradgradcheck(bad(lib), xd(lib), raise_exception=False)


@program
def an_expanded_input(lib):
    return lib.autograd.gradcheck(
        lambda x: x.sum(),
        lib.ones(3, dtype=lib.float64).expand(3).requires_grad_()
        if 0
        else lib.ones(1, dtype=lib.float64).expand(3).requires_grad_(),
    )


def test_as_in_pytorch_whatever_the_message():
    for program in PROGRAMS:
        theirs, ours = outcome(program, torch), outcome(program, weft)
        assert ours == theirs, program.__name__


def test_the_same_random_numbers_are_used_up():
    """A program with a seed goes on with the same numbers after its checks."""
    for name, options in [
        ("gradcheck", {"fast_mode": True, "check_forward_ad": True}),
        ("gradcheck", {"check_batched_grad": True}),
        ("gradgradcheck", {}),
        ("gradgradcheck", {"check_fwd_over_rev": True, "gen_non_contig_grad_outputs": True}),
    ]:
        following = []
        for lib in (torch, weft):
            x = lib.arange(1, 6, dtype=lib.float64).requires_grad_()
            lib.manual_seed(0)
            assert getattr(lib.autograd, name)(lambda x: (x * x).sin(), (x,), **options)
            following.append(lib.rand(1).item())
        assert following[0] == following[1], (name, options)


def shifted(lib, by=1e-2):
    """A copy whose cotangent a hook changes."""

    def function(x):
        y = x.clone()
        y.register_hook(lambda cotangent: cotangent + by)
        return y

    return function


@program
def a_cotangent_that_is_not_multiplied(lib):
    return lib.autograd.gradcheck(shifted(lib), xd(lib), atol=1e-1)


@program
def neither_direction(lib):
    return lib.autograd.gradcheck(lambda x: x.sin(), xd(lib), check_backward_ad=False)


@program
def batches_forward_without_forward(lib):
    return lib.autograd.gradcheck(lambda x: x.sin(), xd(lib), check_batched_forward_grad=True)


@program
def batches_without_backward(lib):
    return lib.autograd.gradcheck(
        lambda x: x.sin(), xd(lib), check_batched_grad=True, check_forward_ad=True, check_backward_ad=False
    )


@program
def all_checks(lib):
    options = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}
    return [
        lib.autograd.gradcheck(function, inputs, fast_mode=fast, **options)
        for fast in (False, True)
        for function, inputs in (
            (lambda x: x.sin() * x, (xd(lib),)),
            (lambda x, y: (x * y, x + 2), (xd(lib), xd(lib))),
            (lambda x, y: (x * y).sum(), (xd(lib), lib.ones(3, dtype=lib.float64))),
        )
    ]


@program
def shapes_that_follow_values(lib):
    return lib.autograd.gradcheck(
        lambda x: lib.cat([x, x]) if (x >= 1).all() else x,
        lib.ones(1, dtype=lib.float64, requires_grad=True),
    )


@program
def dtypes_that_follow_values(lib):
    return lib.autograd.gradcheck(
        lambda x: x.to(lib.float32) if (x >= 1).all() else x,
        lib.ones(1, dtype=lib.float64, requires_grad=True),
    )


def two_results(lib, pull):
    methods = {
        "forward": staticmethod(lambda ctx, x: (ctx.set_materialize_grads(False), (x * 2, x * 3))[1]),
        "backward": staticmethod(pull),
    }
    return type("Two", (lib.autograd.Function,), methods).apply


@program
def a_missing_cotangent(lib):
    """`backward` does not expect None."""
    return lib.autograd.gradcheck(two_results(lib, lambda ctx, a, b: 2 * a + 3 * b), xd(lib))


@program
def a_missing_cotangent_that_is_not_asked_for(lib):
    def pull(ctx, a, b):
        parts = [factor * each for factor, each in ((2, a), (3, b)) if each is not None]
        return sum(parts) if parts else None

    return (
        lib.autograd.gradcheck(two_results(lib, pull), xd(lib)),
        lib.autograd.gradcheck(lambda x: x.sin(), xd(lib), check_undefined_grad=False),
    )


@program
def forward_mode_alone(lib):
    """No backward is needed, the inputs do not require grad, and `jvp` is called as often as in PyTorch."""
    calls, seen = [], []

    def forward(ctx, x, y):
        seen.append((x.requires_grad, y.requires_grad))
        return x.clone(), y.clone()

    def push(ctx, a, b):
        calls.append(1)
        return a, b

    methods = {"forward": staticmethod(forward), "jvp": staticmethod(push)}
    function = type("Forward", (lib.autograd.Function,), methods).apply
    one = lib.ones(1, dtype=lib.float64, requires_grad=True)
    counts = []
    for missing, batched, fast in ((False, False, False), (True, False, True), (True, True, False)):
        del calls[:]
        lib.autograd.gradcheck(
            function,
            (one, one.detach().clone().requires_grad_()),
            check_backward_ad=False,
            check_forward_ad=True,
            check_undefined_grad=missing,
            check_batched_forward_grad=batched,
            fast_mode=fast,
        )
        counts.append(len(calls))
    return counts, set(seen)


@program
def a_missing_tangent(lib):
    """A rule that gives something else for a missing tangent than for zeros."""

    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        return x + y

    def push(ctx, a, b):
        return b if a is None else 2 * a if b is None else a + b

    methods = {"forward": staticmethod(forward), "jvp": staticmethod(push)}
    function = type("Wrong", (lib.autograd.Function,), methods).apply
    return [
        lib.autograd.gradcheck(
            function,
            (xd(lib), xd(lib)),
            check_backward_ad=False,
            check_forward_ad=True,
            check_undefined_grad=missing,
            raise_exception=False,
        )
        for missing in (False, True)
    ]


def outcome(program, lib):
    try:
        return program(lib)
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize("fast", [False, True])
def test_tensors_of_a_device_whose_memory_the_host_cannot_read(fast):
    for dtype in (weft.float64, weft.complex128):
        x = weft.tensor([0.3, 0.7, 1.1], dtype=dtype, device="reference", requires_grad=True)
        assert weft.autograd.gradcheck(
            weft.sin, x, check_forward_ad=True, check_batched_grad=True, fast_mode=fast
        )
        assert weft.autograd.gradgradcheck(weft.sin, x, fast_mode=fast)


def test_wrong_forward_mode_is_found():
    methods = {
        "forward": staticmethod(lambda ctx, x: x * 2),
        "backward": staticmethod(lambda ctx, grad: grad * 2),
        "jvp": staticmethod(lambda ctx, tangent: tangent * 3),
    }
    f = type("F", (weft.autograd.Function,), methods).apply
    assert weft.autograd.gradcheck(f, xd(weft))
    for fast in (False, True):
        with pytest.raises(weft.autograd.GradcheckError, match="forward mode"):
            weft.autograd.gradcheck(f, xd(weft), check_forward_ad=True, fast_mode=fast)


def _refuse_zeros(ctx, a, b):
    if a is None and (b is None or not b.any()):
        raise RuntimeError("nothing to do")
    parts = [factor * each for factor, each in ((2, a), (3, b)) if each is not None]
    return sum(parts)


MESSAGES = {
    "Jacobian mismatch for output 0 with respect to input 0": lambda lib, fast: lib.autograd.gradcheck(
        shifted(lib), xd(lib), fast_mode=fast
    ),
    "backward not multiplied by grad_output": lambda lib, fast: lib.autograd.gradcheck(
        shifted(lib), xd(lib), atol=1e-1, fast_mode=fast
    ),
    "Expected at least one of": lambda lib, fast: lib.autograd.gradcheck(
        shifted(lib), xd(lib), check_backward_ad=False, fast_mode=fast
    ),
    "the same shape when inputs are perturbed": lambda lib, fast: shapes_that_follow_values(lib),
    "the same dtype when inputs are perturbed": lambda lib, fast: dtypes_that_follow_values(lib),
    "Expected backward function to handle undefined output grads": lambda lib, fast: lib.autograd.gradcheck(
        two_results(lib, _refuse_zeros), xd(lib), fast_mode=fast
    ),
}


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.filterwarnings("ignore:Backwards compatibility")
def test_messages(message, fast):
    for lib in (torch, weft):
        with pytest.raises((RuntimeError, AssertionError), match=message):
            MESSAGES[message](lib, fast)


@pytest.mark.parametrize(
    "function",
    [lambda lib, x: shifted(lib)(x), lambda lib, x: shifted(lib)(lib.complex(x.real, x.real))],
    ids=["complex to complex", "real to complex"],
)
def test_the_part_of_a_complex_output_is_said(function):
    for lib in (torch, weft):
        x = lib.ones(2, dtype=lib.complex128, requires_grad=True)
        with pytest.raises(
            RuntimeError, match="the (imaginary|real) part of complex outputs only, Jacobian mismatch"
        ):
            lib.autograd.gradcheck(lambda x, lib=lib: function(lib, x), x)


def test_a_batch_that_differs():
    """`vmap` gives something else than one sample after the other. PyTorch's gradcheck uses a `vmap` that does not ask the Function."""

    class Wrong(weft.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, cotangent):
            return Pull.apply(cotangent)

    class Pull(weft.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x):
            return x * 3, in_dims[0]

    assert weft.autograd.gradcheck(Wrong.apply, xd(weft))
    with pytest.raises(RuntimeError, match="failed while testing batched gradient"):
        weft.autograd.gradcheck(Wrong.apply, xd(weft), check_batched_grad=True)
