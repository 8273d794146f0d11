"""The package `functorch`, and `torch._functorch`."""

import functorch as theirs
import pytest
import torch

import weft
import weft._functorch.apis
import weft._functorch.eager_transforms
import weft.functorch as ours


def both(program):
    return program(weft, ours), program(torch, theirs)


def values(lib, tensor):
    return pytest.approx(tensor.tolist())


def test_a_function_that_runs_within_a_transform_is_told():
    def program(lib, functorch):
        is_active, found = lib._C._are_functorch_transforms_active, []

        def f(x):
            found.append(is_active())
            return x.sum()

        x = lib.ones(2)
        lib.vmap(f)(x)
        for transform in (lib.func.grad, lib.func.jacrev, lib.func.jacfwd, lib.func.functionalize):
            transform(f)(x)
        lib.func.vjp(f, x)
        lib.func.jvp(f, (x,), (x,))
        lib.func.grad(lambda x: f(lib.func.grad(f)(x)))(x)
        with pytest.raises(ZeroDivisionError):
            lib.func.grad(lambda x: 1 / 0)(x)
        f(x)
        return found

    found, expected = both(program)
    assert found == expected and found.count(False) == 1


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_modules_as_functions():
    def program(lib, functorch):
        model = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.BatchNorm1d(3), lib.nn.Linear(3, 1)).eval()
        for each in model.parameters():
            lib.nn.init.constant_(each, 0.5)
        function, params, buffers = functorch.make_functional_with_buffers(model)
        x = lib.ones(4, 2)
        found = function(params, buffers, x)
        slope = functorch.grad(lambda params: function(params, buffers, x).sum())(params)
        linear, weights = functorch.make_functional(lib.nn.Linear(2, 1), disable_autograd_tracking=True)
        assert type(linear).__name__ == "FunctionalModule"
        assert not any(each.requires_grad for each in weights)
        assert all(mine is not own for mine, own in zip(params, model.parameters(), strict=True))
        with pytest.raises(RuntimeError):
            functorch.make_functional(model)
        return found.tolist(), [each.tolist() for each in slope], function.param_names, function.buffer_names

    (found, slope, *names), (expected, wanted, *theirs) = both(program)
    assert names == theirs
    torch.testing.assert_close(torch.tensor(found), torch.tensor(expected))
    for mine, its in zip(slope, wanted, strict=True):
        torch.testing.assert_close(torch.tensor(mine), torch.tensor(its))


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_names_of_shared_parameters():
    def program(lib, functorch):
        model = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.BatchNorm1d(2), lib.nn.Linear(2, 2))
        model[2].weight = model[0].weight
        function, params, _ = functorch.make_functional_with_buffers(model)
        return function.all_names_map, function.param_names, len(params)

    found, expected = both(program)
    assert found == expected


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_ensembles():
    def program(lib, functorch):
        models = [lib.nn.Linear(2, 1) for _ in range(3)]
        for index, model in enumerate(models):
            for each in model.parameters():
                lib.nn.init.constant_(each, float(index))
        function, params, buffers = functorch.combine_state_for_ensemble(models)
        return functorch.vmap(function, in_dims=(0, 0, None))(params, buffers, lib.ones(4, 2)).tolist()

    found, expected = both(program)
    assert found == expected


@pytest.mark.parametrize(
    "pattern, lengths",
    [
        ("a b c d -> d c b a", {}),
        ("a b c d -> (a b) c d", {}),
        ("(x a) b c d -> x b c d a", {"x": 2}),
        ("a ... -> ... a", {}),
        ("a b ... -> a (b ...)", {}),
        ("a b c d -> a 1 b c d", {}),
        ("a b (h w) d -> a h w b d", {"w": 2}),
    ],
)
def test_rearrange(pattern, lengths):
    def program(lib, _):
        x = lib.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
        return lib.func.rearrange(x, pattern, **lengths).tolist()

    found, expected = both(program)
    assert found == expected


@pytest.mark.parametrize(
    "pattern", ["a b -> a", "a b", "a b c -> a b c", "(a b -> a b", "a a -> a", "a -b -> b a"]
)
def test_patterns_that_do_not_fit(pattern):
    for lib in (weft, torch):
        with pytest.raises(ValueError):
            lib.func.rearrange(lib.zeros(2, 3), pattern)


def test_functions_are_the_public_ones():
    assert weft._functorch.apis.vmap is weft.func.vmap
    assert weft._functorch.eager_transforms.jacrev is weft.func.jacrev
    assert ours.grad is weft.func.grad


def test_functionalize():
    def program(lib, functorch):
        def add(x):
            y = x.clone()
            y.add_(1)
            return y

        with pytest.raises(RuntimeError, match="Valid options"):
            functorch.functionalize(add, remove="all")(lib.zeros(2))
        assert lib.func.debug_unwrap(lib.ones(1)).item() == 1
        return functorch.functionalize(add)(lib.zeros(2)).tolist()

    found, expected = both(program)
    assert found == expected


def test_functorch_under_weft_run(run_weft):
    code = """
import functorch, torch
from functorch.experimental import control_flow
assert functorch.vmap is torch.func.vmap
print(functorch.__name__, functorch.make_functional.__module__, control_flow.__name__)
for statement in ("import functorch.nosuch", "from functorch import nosuch", "from functorch.nosuch import x"):
    try:
        exec(statement)
    except ImportError as error:
        print(error)
"""
    done = run_weft("run", "-c", code)
    assert done.stdout.splitlines() == [
        "functorch torch._functorch.make_functional functorch.experimental.control_flow",
        "No module named 'functorch.nosuch': weft does not have it",
        "cannot import name 'nosuch' from 'functorch': weft does not have it",
        "No module named 'functorch.nosuch': weft does not have it",
    ], done.stderr


def test_all_missing_modules_are_import_errors(run_weft):
    code = """
for statement in (
    "import torch.nosuch", "import torch.nosuch.deeper as x", "from torch.nn.nosuch import x", "from torch.nn import nosuch",
    "import torch.nn.functional.nosuch", "from torch._C._nosuch import x", "import torch.Tensor",
):
    try:
        exec(statement)
    except ImportError:
        continue
    print(statement)
from torch.ops import nosuch_  # as in PyTorch: a namespace of operators, empty so far
"""
    done = run_weft("run", "-c", code)
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("chunks", [1, 2, 3, 7])
def test_batches_in_chunks(chunks):
    def program(lib, _):
        from importlib import import_module

        chunk_vmap = import_module(f"{lib.__name__}._functorch.apis").chunk_vmap
        x, y = lib.arange(10.0).reshape(2, 5), lib.ones(2)
        return chunk_vmap(lib.dot, in_dims=(1, None), chunks=chunks)(x, y).tolist()

    found, expected = both(program)
    assert found == expected


def test_arguments_by_their_positions():
    def program(lib, _):
        from importlib import import_module

        of = import_module(f"{lib.__name__}._functorch.eager_transforms")._slice_argnums
        args = (1, 2, 3)
        return of(args, 1), of(args, -1, as_tuple=False), of(args, (0, -1)), of(args, (2,), as_tuple=False)

    found, expected = both(program)
    assert found == expected


def test_graphs():
    def program(lib, functorch):
        graph = functorch.make_fx(lambda x: x.sin().cos())(lib.ones(2))
        return graph(lib.zeros(2)).tolist()

    found, expected = both(program)
    assert found == expected == [1.0, 1.0]
