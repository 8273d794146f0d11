"""What vmap does around the mapped function: random numbers, Functions, memory, errors, parts of the batch."""

import importlib
import pickle
import traceback
import warnings

import numpy as np
import pytest
import torch
from alike import same

import weft

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


# ---- Random numbers: PyTorch draws once for the batch --------------------------------------------------------------------


@program
def different_numbers(lib):
    return lib.vmap(lambda x: x + lib.rand(3), randomness="different")(lib.ones(4, 3))


@program
def same_numbers(lib):
    return lib.vmap(lambda x: x + lib.randn(3), randomness="same")(lib.ones(4, 3))


@program
def numbers_like_a_sample(lib):
    return lib.vmap(lib.randn_like, randomness="different")(lib.ones(2, 20))


@program
def a_sample_filled_in_place(lib):
    return lib.vmap(lambda x: x.clone().uniform_(), randomness="different")(lib.ones(4, 3))


@program
def dropout(lib):
    return lib.vmap(lambda x: lib.nn.functional.dropout(x, 0.5), randomness="different")(lib.ones(4, 5))


@program
def the_same_dropout(lib):
    return lib.vmap(lambda x: lib.nn.functional.dropout(x, 0.5), randomness="same")(lib.ones(4, 5))


@program
def different_numbers_of_given_probabilities(lib):
    chances = lib.vmap(lib.bernoulli, randomness="different")(lib.full((4, 9), 0.5))
    x, p = lib.ones(3, 9), lib.full((3, 9), 0.5)
    return chances, lib.vmap(lambda x, p: x.bernoulli_(p), randomness="different")(x, p), x


@program
def the_same_numbers_of_given_probabilities(lib):
    p = lib.full((9,), 0.5)
    return lib.vmap(lambda x: lib.bernoulli(p) + x, randomness="same")(lib.zeros(4, 1))


@program
def the_same_numbers_in_each_part_of_the_batch(lib):
    return lib.vmap(lambda x: x + lib.rand(3), randomness="same", chunk_size=2)(lib.zeros(5, 3))


@program
def a_bias_for_each_sample(lib):
    x, w = lib.arange(6.0).view(3, 2), lib.ones(4, 2)
    rows = lib.arange(6.0).view(2, 3)
    return [
        lib.vmap(lambda bias: lib.nn.functional.linear(x, w, bias))(lib.arange(8.0).view(2, 4)),
        lib.vmap(lambda bias: lib.addmm(bias, x, x.t(), beta=2))(rows),
        lib.vmap(lambda bias: lib.addr(bias, x[0], x[1]))(lib.arange(4.0).view(2, 2)),
    ]


@program
def a_bias_for_each_sample_of_one_of_two_batches(lib):
    x, w = lib.arange(6.0).view(3, 2), lib.ones(2, 4, 2)
    rows, linear = lib.arange(6.0).view(2, 3), lib.nn.functional.linear
    biases, vectors = lib.arange(8.0).view(2, 4), lib.arange(4.0).view(2, 2)
    found = [
        lib.vmap(lambda bias: lib.vmap(lambda vector: lib.addmv(bias, x, vector, alpha=3))(vectors))(rows),
        lib.vmap(lambda bias: lib.vmap(lambda vector: lib.addmv(bias, x, w[0, 0]) * vector[1])(vectors))(
            rows
        ),
        lib.vmap(lambda bias: lib.vmap(lambda weight: linear(x, weight, bias))(w))(biases),
        lib.vmap(lambda weight: lib.vmap(lambda bias: linear(x, weight, bias))(biases))(w),
    ]
    return [each.contiguous() for each in found]


@program
def a_recorded_reduction_into_slices_that_is_the_same_for_all_samples(lib):
    x, w = lib.arange(4.0, requires_grad=True), lib.tensor([1.0, 2.0], requires_grad=True)
    place = lib.tensor([0])
    y = lib.vmap(lambda a: lib.index_reduce(x[:1] * 1, 0, place, x[1:2], "mean") * a)(w)
    return y.detach(), *lib.autograd.grad(y.sum(), (x, w))


@program
def second_derivatives_of_a_function_without_a_rule(lib):
    mask, x = lib.tensor([True, False, True]), lib.arange(6.0).view(2, 3).requires_grad_()
    gradient = lib.func.grad(lambda x: (lib.ones(3).masked_scatter(mask, x) ** 3).sum())
    y = lib.vmap(gradient)(x)
    return y.detach(), *lib.autograd.grad(y.sum(), x)


@program
def gradients_around_a_batch_of_extrema(lib):
    x = lib.tensor([[1.0, 5.0, 4.0], [2.0, 0.0, 1.0]], requires_grad=True)
    greatest, least = lib.vmap(lambda x: (x.max(), x.min()))(x)
    weights = lib.tensor([1.0, 2.0])
    return lib.autograd.grad((greatest * weights).sum(), x), lib.autograd.grad((least * weights).sum(), x)


@program
def permutations(lib):
    return lib.vmap(lambda x: x[lib.randperm(3)], randomness="different")(lib.arange(6.0).view(2, 3))


@program
def random_numbers_by_default(lib):
    return lib.vmap(lambda x: lib.bernoulli(x))(lib.ones(2, 3))


# ---- What a batch cannot do --------------------------------------------------------------------------------------------------


@program
def a_batched_result_without_a_dim(lib):
    return lib.vmap(lambda x: x, out_dims=None)(lib.ones(3))


@program
def a_result_that_is_no_tensor(lib):
    return lib.vmap(lambda x: 3)(lib.ones(3))


@program
def a_result_that_is_the_same_for_all(lib):
    return lib.vmap(lambda x: lib.ones(2))(lib.ones(3))


@program
def a_pytree(lib):
    return lib.vmap(lambda d, k: {"sum": d["x"] + d["y"], "k": [k * 2]}, in_dims=({"x": 0, "y": None}, 1))(
        {"x": lib.arange(3.0), "y": lib.tensor(2.0)}, lib.ones(2, 3)
    )


@program
def requires_grad_inside(lib):
    return lib.vmap(lambda x: x.requires_grad, out_dims=None)(lib.ones(3).requires_grad_())


@program
def two_dims_in_and_out(lib):
    f = lib.vmap(lambda x, y: x.unsqueeze(0) * y, in_dims=(1, 2), out_dims=2)
    return f(lib.arange(12.0).view(3, 4), lib.arange(24.0).view(2, 3, 4)[:, :, :])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_in_pytorch(program):
    same(
        program,
        raises=program
        in (random_numbers_by_default, a_batched_result_without_a_dim, a_result_that_is_no_tensor),
    )


@pytest.mark.parametrize(
    "function",
    [lambda x: x.sum().item(), lambda x: x if x.sum() > 0 else -x, lambda x: x.tolist(), lambda x: x.numpy()],
)
def test_values_of_samples(function):
    for lib in (torch, weft):
        with pytest.raises(RuntimeError):
            lib.vmap(function)(lib.ones(3, 2))


def test_the_level_of_a_sample_is_its_depth():
    texts = []
    for _ in range(2):
        weft.vmap(lambda x: weft.vmap(lambda y: texts.append(repr(y)) or y)(x))(weft.ones(2, 2))
    assert texts[0] == texts[1]
    assert texts[0].startswith("BatchedTensor(lvl=2, bdim=0, value=\n    BatchedTensor(lvl=1, bdim=0")


def test_the_gradient_around_a_batch_of_fills():
    x, value = weft.ones(2, 3, requires_grad=True), weft.tensor([3.0, 4.0], requires_grad=True)
    mask = weft.tensor([[True, False, True], [False, False, True]])
    filled = weft.vmap(lambda x, mask, value: x.masked_fill(mask, value))(x, mask, value)
    to_x, to_value = weft.autograd.grad((filled * weft.arange(6.0).view(2, 3)).sum(), (x, value))
    assert to_x.tolist() == [[0.0, 1.0, 0.0], [3.0, 4.0, 0.0]]
    assert to_value.tolist() == [2.0, 5.0]


def test_writes_into_tensors_from_outside():
    for lib in (torch, weft):
        outside = lib.zeros(())
        with pytest.raises(RuntimeError):
            lib.vmap(outside.add_)(lib.ones(3))
        assert outside.item() == 0


def test_writes_into_new_tensors():
    def function(x):
        whole = weft.zeros(2, 2)
        row = whole[1]
        row.copy_(x)
        return whole, row

    x = weft.arange(6.0).view(3, 2)
    whole, row = weft.vmap(function)(x)
    assert weft.equal(whole, weft.stack([weft.zeros(3, 2), x], 1)) and weft.equal(row, x)


def test_writes_into_samples_change_the_batch():
    x = weft.ones(3, 2)
    weft.vmap(lambda x: x.mul_(2))(x)
    assert weft.equal(x, weft.full((3, 2), 2.0))


def test_an_empty_batch():
    assert weft.vmap(lambda x: x.sum(0))(weft.ones(0, 2, 3)).shape == (0, 3)


@pytest.mark.parametrize("chunk_size", [1, 2, 5, 7])
def test_chunks(chunk_size):
    x, y = weft.randn(5, 3), weft.randn(3, 5)
    f = weft.vmap(lambda x, y: (x * y, x.dot(y)), (0, 1), (1, 0), chunk_size=chunk_size)
    products, sums = f(x, y)
    assert weft.equal(products, (x * y.t()).t())
    assert weft.allclose(sums, (x * y.t()).sum(1))


def test_the_function_runs_once():
    calls = []
    weft.vmap(lambda x: calls.append(x.shape) or x.sin())(weft.ones(5, 2))
    assert calls == [(2,)]


def test_what_has_no_rule_says_so_once():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(2):
            weft.vmap(lambda x: x.mode().values)(weft.ones(3, 4))
    assert sum("performance drop" in str(each.message) for each in found) <= 1


def test_each_call_without_a_rule_may_warn():
    warns = weft._C._debug_only_display_vmap_fallback_warnings
    assert not weft._C._debug_only_are_vmap_fallback_warnings_enabled()
    warns(True)
    try:
        for _ in range(2):
            with pytest.warns(UserWarning, match="performance drop"):
                weft.vmap(lambda x: x.histc(3))(weft.ones(3, 4))
    finally:
        warns(False)


def test_calls_without_a_rule_may_be_refused():
    functorch = weft._C._functorch
    functorch._set_vmap_fallback_enabled(False)
    try:
        assert weft.vmap(weft.sin)(weft.zeros(2)).tolist() == [0.0, 0.0]
        with pytest.raises(
            RuntimeError, match="histc has no batching rule, and running it once for each sample"
        ):
            weft.vmap(lambda x: x.histc(3))(weft.ones(3, 4))
    finally:
        functorch._set_vmap_fallback_enabled(True)
    assert functorch._is_vmap_fallback_enabled()


DIMS = {
    "a list of in_dims": lambda lib, x: lib.vmap(lib.add, [0, 0])(x, x),
    "a tuple for a list": lambda lib, x: lib.vmap(lambda both: both[0], ((0, 0),))([x, x]),
    "in_dims of text": lambda lib, x: lib.vmap(lib.sin, ("a",))(x),
    "no tensor": lambda lib, x: lib.vmap(lambda n: n, (None,))(1),
    "out_dims of text": lambda lib, x: lib.vmap(lib.sin, out_dims="a")(x),
    "a list of out_dims": lambda lib, x: lib.vmap(lib.sin, out_dims=[0])(x),
    "a list of out_dims for a tuple": lambda lib, x: lib.vmap(lambda x: (x, x), out_dims=[0, 0])(x),
}


@pytest.mark.parametrize("call", DIMS.values(), ids=DIMS)
def test_dims_that_do_not_fit(call):
    with pytest.raises(ValueError) as theirs:
        call(torch, torch.ones(2, 2))
    with pytest.raises(ValueError) as ours:
        call(weft, weft.ones(2, 2))
    assert str(ours.value).startswith(str(theirs.value)[:60])


# ---- torch.autograd.Function ----------------------------------------------------------------------------------------------


def doubled_gradient(lib, by_rule):
    class Square(lib.autograd.Function):
        generate_vmap_rule = not by_rule

        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, ct):
            (x,) = ctx.saved_tensors
            return ct * 4 * x  # twice the derivative, so that the test can tell it from autograd's own

        if by_rule:

            @staticmethod
            def vmap(info, in_dims, x):
                assert info.batch_size == 3 and info.randomness == "error"
                return Square.apply(x), in_dims[0]

    return Square.apply


@pytest.mark.parametrize("by_rule", [False, True])
def test_functions(by_rule):
    found = []
    for lib in (weft, torch):
        f = doubled_gradient(lib, by_rule)
        x = lib.tensor([1.0, 2.0, 3.0])
        found.append(
            [
                lib.vmap(f)(x),
                lib.vmap(lib.func.grad(lambda x, f=f: f(x) * 2))(x),
                lib.func.grad(lambda x, f=f, lib=lib: lib.vmap(f)(x).sum())(x),
            ]
        )
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy())


def function_with_rule(lib, rule, **attributes):
    methods = {
        "forward": lambda *inputs: inputs[0] * 2,
        "setup_context": lambda ctx, inputs, output: None,
        "vmap": rule,
    }
    return type("F", (lib.autograd.Function,), {k: staticmethod(v) for k, v in methods.items()} | attributes)


RULES = {
    "one return": lambda lib, x: lib.vmap(function_with_rule(lib, lambda info, dims, x: x).apply)(x),
    "four returns": lambda lib, x: lib.vmap(
        function_with_rule(lib, lambda info, dims, x: (x, x, 0, 0)).apply
    )(x),
    "out_dims that do not fit": lambda lib, x: lib.vmap(
        function_with_rule(lib, lambda info, dims, x: (x, (None,))).apply
    )(x),
    "two rules": lambda lib, x: lib.vmap(
        function_with_rule(lib, lambda info, dims, x: (x, 0), generate_vmap_rule=True).apply
    )(x),
}


@pytest.mark.parametrize("call", RULES.values(), ids=RULES)
def test_rules_of_functions_that_are_refused(call):
    with pytest.raises(RuntimeError) as theirs:
        call(torch, torch.ones(2, 3))
    with pytest.raises(RuntimeError) as ours:
        call(weft, weft.ones(2, 3))
    assert str(ours.value)[:80] == str(theirs.value)[:80]


def test_a_rule_of_a_function_gets_arguments_in_lists():
    def program(lib):
        found = []

        def rule(info, dims, x, rest):
            found.append((info.batch_size, dims))
            return [x, *rest], [0, *dims[1]]

        apply = function_with_rule(lib, rule).apply
        found.append([each.tolist() for each in lib.vmap(lambda x: apply(x, [x + 1]))(lib.ones(2))])
        return found

    assert program(weft) == program(torch)


def test_a_function_that_computes_with_numpy():
    class Sine(weft.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return weft.from_numpy(np.sin(x.numpy()))

        @staticmethod
        def backward(ctx, ct):
            return ct * ctx.saved_tensors[0].cos()

    x = weft.randn(3, 2)
    assert weft.allclose(weft.vmap(Sine.apply)(x), x.sin())
    y = x.clone().requires_grad_()
    weft.vmap(Sine.apply)(y).sum().backward()
    assert weft.allclose(y.grad, x.cos())


@pytest.mark.parametrize(
    "call",
    [
        lambda lib: lib.vmap(lambda x: x.requires_grad_())(lib.ones(3)),
        lambda lib: lib.vmap(lambda x: lib.zeros(2).requires_grad_(False))(lib.ones(3)),
        lambda lib: lib.vmap(lambda x: x if x > 0 else -x)(lib.ones(3)),
        lambda lib: lib.vmap(lib.zeros(()).add_)(lib.ones(3)),
    ],
)
def test_errors_of_vmap_are_runtime_errors(call):
    """Tracebacks show the class's module and name, and the error goes through pickle to the parent of a worker."""
    for lib in (torch, weft):
        with pytest.raises(RuntimeError) as caught:
            call(lib)
        shown = traceback.format_exception_only(caught.value)[0]
        assert shown.startswith("RuntimeError: ")
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


# ---- The steps of vmap, and PyTorch's private functions of levels --------------------------------------------------


def test_what_a_sample_is():
    def answers(lib):
        functions, found = lib._C._functorch, []

        def note(*tensors):
            found.append([functions.is_batchedtensor(x) for x in tensors])
            found.append([functions.maybe_get_level(x) for x in tensors])
            found.append([functions.is_functorch_wrapped_tensor(x) for x in tensors])
            found.append((functions.maybe_current_level(), functions.get_unwrapped(tensors[0]).shape))

        def inner(a, b):
            note(a, b)
            return functions._remove_batch_dim(a * b, functions.maybe_current_level(), 3, 1)

        def outer(x, constant):
            note(x, constant, lib.ones(2))
            return lib.vmap(inner, (0, None))(lib.ones(3, 2), x[:2])

        found.append(lib.vmap(outer, (0, None))(lib.arange(10.0).view(5, 2), lib.ones(3)).tolist())
        found.append((functions.maybe_current_level(), functions.maybe_get_bdim(lib.ones(3))))
        return found

    assert answers(weft) == answers(torch)
    with pytest.raises(RuntimeError, match="No wrappers present"):
        weft._C._functorch.get_unwrapped(weft.ones(2))


class _Pair:
    """A container that is no pytree, of two tensors with the samples along one dimension."""

    def __init__(self, first, second):
        self.first, self.second = first, second


@pytest.mark.parametrize("lib", [weft, torch], ids=["weft", "torch"])
def test_libraries_replace_the_steps(lib, monkeypatch):
    steps = importlib.import_module(f"{lib.__name__}._functorch.vmap")

    def process(in_dims, args, func):
        return len(args[0].first), [in_dims], list(args), None

    def create(dims, args, level, spec):
        pair, dim = args[0], dims[0]
        return (
            _Pair(
                steps._add_batch_dim(pair.first, dim, level), steps._add_batch_dim(pair.second, dim, level)
            ),
        )

    def unwrap(result, out_dims, level, size, func):
        name = steps._get_name(func)
        return _Pair(
            steps._maybe_remove_batch_dim(name, result.first, level, size, out_dims),
            steps._maybe_remove_batch_dim(name, result.second, level, size, None),
        )

    monkeypatch.setattr(steps, "_process_batched_inputs", process)
    monkeypatch.setattr(steps, "_create_batched_inputs", create)
    monkeypatch.setattr(steps, "_unwrap_batched", unwrap)
    pair = _Pair(lib.arange(6.0).view(2, 3), lib.ones(2, 3))
    result = lib.vmap(lambda each: _Pair(each.first.cumsum(0) + each.second, lib.ones(())), out_dims=1)(pair)
    assert result.first.tolist() == [[1, 4], [2, 8], [4, 13]]
    assert result.second.item() == 1
    with pytest.raises(ValueError, match="can not return a BatchedTensor when out_dim is None"):
        lib.vmap(lambda each: _Pair(each.first, each.second))(pair)
    with pytest.raises(ValueError, match="must only return Tensors"):
        lib.vmap(lambda each: _Pair(3, each.second))(pair)
