import copy
import importlib
import pickle

import pytest
import torch
from alike import backward, same

import weft
from weft import nn
from weft.nn.utils import parametrizations, parametrize


def module_of(lib, name):
    return importlib.import_module(f"{lib.nn.__name__}.utils.{name}")


def kinds(lib):
    """Parametrizations by name."""

    class Symmetric(lib.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

        def right_inverse(self, x):
            return x.triu()

    class Twice(lib.nn.Module):
        def forward(self, x):
            return x * 2

    class Sum(lib.nn.Module):
        def forward(self, a, b):
            return a + b

        def right_inverse(self, x):
            return x / 2, x / 2

    class Row(lib.nn.Module):
        def forward(self, x):
            return x[0]

    class Wide(lib.nn.Module):
        def forward(self, x):
            return x.double()

    class Number(lib.nn.Module):
        def forward(self, x):
            return 3

    class WrongInverse(Twice):
        def right_inverse(self, x):
            return x[0]

    return {kind.__name__: kind for kind in (Symmetric, Twice, Sum, Row, Wide, Number, WrongInverse)}


def layer(lib, names, unsafe=False):
    """A linear layer whose weight has these parametrizations."""
    result = lib.nn.Linear(3, 3)
    result.weight = lib.nn.Parameter(lib.arange(9.0).reshape(3, 3))
    result.bias = lib.nn.Parameter(lib.ones(3))
    for name in names.split():
        module_of(lib, "parametrize").register_parametrization(
            result, "weight", kinds(lib)[name](), unsafe=unsafe
        )
    return result


def assigned(lib, module):
    module.weight = lib.ones(3, 3)
    return module.weight, dict(module.named_parameters())


def removed(lib, module, **options):
    module_of(lib, "parametrize").remove_parametrizations(module, "weight", **options)
    return module, module.weight, type(module).__name__, list(module.state_dict())


ACTIONS = {
    "itself": lambda lib, m: m,
    "value": lambda lib, m: m.weight,
    "state": lambda lib, m: m.state_dict(),
    "parameters": lambda lib, m: [(name, p.requires_grad) for name, p in m.named_parameters()],
    "call": lambda lib, m: m(lib.ones(1, 3)),
    "assigned": assigned,
    "removed": removed,
    "removed, as it was": lambda lib, m: removed(lib, m, leave_parametrized=False),
    "copied": lambda lib, m: (copy.deepcopy(m), copy.deepcopy(m).weight),
    "converted": lambda lib, m: m.double().weight,
    "loaded": lambda lib, m: m.load_state_dict(m.state_dict()),
    "loaded from a plain one": lambda lib, m: m.load_state_dict(layer(lib, "").state_dict()),
    "listed": lambda lib, m: "weight" in dir(m),
}
COMBINATIONS = ["Symmetric", "Twice", "Sum", "Symmetric Twice", "Twice Twice", "Sum Symmetric", "Sum Twice"]


@pytest.mark.refuses(
    [
        "assigned-Twice", "assigned-Symmetric Twice", "assigned-Twice Twice", "assigned-Sum Twice",
        "removed, as it was-Sum", "removed, as it was-Sum Symmetric", "removed, as it was-Sum Twice",
        "loaded from a plain one-Symmetric", "loaded from a plain one-Twice", "loaded from a plain one-Sum",
        "loaded from a plain one-Symmetric Twice", "loaded from a plain one-Twice Twice",
        "loaded from a plain one-Sum Symmetric", "loaded from a plain one-Sum Twice",
    ]
)  # fmt: skip
@pytest.mark.parametrize("names", COMBINATIONS)
@pytest.mark.parametrize("action", ACTIONS)
def test_parametrized_layers_as_in_torch(action, names):
    same(lambda lib: ACTIONS[action](lib, layer(lib, names)))


@pytest.mark.refuses("all")
@pytest.mark.parametrize(
    "names", ["Row", "Wide", "Number", "Symmetric Row", "Symmetric Wide", "Symmetric Number"]
)
def test_what_does_not_fit_as_in_torch(names):
    same(lambda lib: layer(lib, names))


def test_what_does_not_fit_if_unsafe():
    same(lambda lib: layer(lib, "Row Wide", unsafe=True).weight)


def test_an_inverse_that_does_not_fit():
    for library in (torch, weft):
        with pytest.raises(ValueError, match="right_inverse"):
            layer(library, "Twice WrongInverse")


def test_inverses_of_wrong_types():
    def program(lib, inverse, twice, later=None):
        class Wrong(lib.nn.Module):
            def forward(self, x, *others):
                return x

            def right_inverse(self, x):
                return inverse(x) if later is None or self.training else later(x)

        parametrize = module_of(lib, "parametrize")
        module = layer(lib, "Symmetric" if twice else "")
        parametrize.register_parametrization(module, "weight", Wrong())
        module.eval()
        module.weight = lib.ones(3, 3)

    for inverse in (lambda x: None, lambda x: (None, x), lambda x: (x, 3)):
        same(program, inverse, False, raises=True)
    for inverse in (lambda x: (x, x), lambda x: None):
        same(program, inverse, True, raises=True)
    same(program, lambda x: x, False, lambda x: (x, x), raises=True)


def test_a_failed_registration_changes_nothing():
    module = layer(weft, "")
    with pytest.raises(ValueError):
        parametrize.register_parametrization(module, "weight", kinds(weft)["Row"]())
    assert type(module) is nn.Linear and list(module.state_dict()) == ["weight", "bias"]


OTHERS = {
    "no such tensor": lambda lib, p: p.register_parametrization(layer(lib, ""), "x", kinds(lib)["Twice"]()),
    "not parametrized": lambda lib, p: p.remove_parametrizations(layer(lib, ""), "weight"),
    "is_parametrized": lambda lib, p: [
        p.is_parametrized(layer(lib, names), *which)
        for names in ("", "Twice")
        for which in ((), ("weight",), ("bias",))
    ],
    "type before": lambda lib, p: [
        p.type_before_parametrizations(layer(lib, names)) is lib.nn.Linear for names in ("", "Twice")
    ],
    "transferred": lambda lib, p: (
        p.transfer_parametrizations_and_params(layer(lib, "Symmetric"), lib.nn.Linear(3, 3)),
        p.transfer_parametrizations_and_params(layer(lib, "Symmetric"), lib.nn.Linear(3, 3), "weight").weight,
        p.transfer_parametrizations_and_params(layer(lib, ""), lib.nn.Linear(3, 3)),
    ),
    "pickled": lambda lib, p: pickle.dumps(layer(lib, "Twice")),
}


@pytest.mark.refuses(["no such tensor", "not parametrized", "pickled"])
@pytest.mark.parametrize("name", OTHERS)
def test_others_as_in_torch(name):
    same(lambda lib: OTHERS[name](lib, module_of(lib, "parametrize")))


def test_a_buffer_and_a_second_tensor():
    def program(lib):
        p, module = module_of(lib, "parametrize"), layer(lib, "Symmetric")
        module.register_buffer("scale", lib.ones(2))
        for name in ("bias", "scale"):
            p.register_parametrization(module, name, kinds(lib)["Twice"]())
        states = [list(module.state_dict())]
        for name in ("weight", "scale", "bias"):
            p.remove_parametrizations(module, name)
            states.append((repr(module), list(module.state_dict())))
        return states

    same(program)


def test_gradients_reach_what_it_is_computed_from():
    def program(lib):
        module = layer(lib, "Sum Twice")
        backward(module(lib.ones(1, 3)))
        return [parameter.grad for parameter in module.parameters()]

    same(program)


def test_cached_values_are_computed_once():
    calls = []

    class Counted(nn.Module):
        def forward(self, x):
            calls.append(1)
            return x

    module = nn.Linear(2, 2)
    parametrize.register_parametrization(module, "weight", Counted())
    calls.clear()
    with parametrize.cached():
        assert module.weight is module.weight
        with parametrize.cached():
            module.weight  # noqa: B018
        module.weight  # noqa: B018
    assert len(calls) == 1
    module.weight  # noqa: B018
    assert len(calls) == 2


def test_removing_leaves_copies_as_they_are():
    module = layer(weft, "Symmetric")
    copied = copy.deepcopy(module)
    parametrize.remove_parametrizations(module, "weight")
    assert parametrize.is_parametrized(copied) and weft.equal(copied.weight, copied.weight.mT)


def test_an_optimizer_keeps_its_parameter():
    module = nn.Linear(3, 3)
    weight = module.weight
    parametrize.register_parametrization(module, "weight", kinds(weft)["Symmetric"]())
    assert module.parametrizations.weight.original is weight
    parametrize.remove_parametrizations(module, "weight")
    assert module.weight is weight


# ---- Ready-made ones -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_as_in_torch(dim):
    def program(lib):
        module = module_of(lib, "parametrizations").weight_norm(layer(lib, ""), dim=dim)
        backward(module(lib.ones(1, 3)))
        return module, module.state_dict(), module.weight, [p.grad for p in module.parameters()]

    same(program)


def test_weight_norm_loads_what_the_older_one_saved():
    def program(lib):
        old = module_of(lib, "weight_norm").weight_norm(layer(lib, "")).state_dict()
        module = module_of(lib, "parametrizations").weight_norm(lib.nn.Linear(3, 3))
        return module.load_state_dict(old), module.weight

    same(program)


def test_spectral_norm_as_in_torch():
    def program(lib):
        module = module_of(lib, "parametrizations").spectral_norm(layer(lib, ""), n_power_iterations=2)
        backward(module(lib.ones(1, 3)))
        return module.weight, module.eval().weight, module.state_dict(), [p.grad for p in module.parameters()]

    same(program)


@pytest.mark.refuses(["{'n_power_iterations': 0}", "{'name': 'x'}", "{'dim': 5}"])
@pytest.mark.parametrize(
    "options", [{"n_power_iterations": 0}, {"name": "x"}, {"dim": 5}, {"name": "bias"}], ids=str
)
def test_spectral_norm_of_others_as_in_torch(options):
    same(lambda lib: module_of(lib, "parametrizations").spectral_norm(layer(lib, ""), **options))


def test_spectral_norm_sees_the_outputs_of_transposed_convolutions():
    module = parametrizations.spectral_norm(nn.ConvTranspose2d(3, 5, 2))
    assert module.parametrizations.weight[0]._u.shape == (5,)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2)])
@pytest.mark.parametrize("trivialization", [True, False])
@pytest.mark.parametrize("name", ["matrix_exp", "cayley", "householder", None])
def test_orthogonal_weights(name, trivialization, shape):
    weft.manual_seed(0)
    module = nn.Linear(*shape, dtype=weft.float64)
    options = {"orthogonal_map": name, "use_trivialization": trivialization}
    parametrizations.orthogonal(module, **options)
    n = min(shape)
    for _ in range(2):
        weight = module.weight
        product = weight @ weight.mT if weight.shape[0] == n else weight.mT @ weight
        assert weft.allclose(product, weft.eye(n, dtype=weft.float64), atol=1e-12)
        backward(module(weft.ones(1, shape[0], dtype=weft.float64)))
        with weft.no_grad():
            original = module.parametrizations.weight.original
            original -= 0.1 * original.grad if name != "householder" and n == max(shape) else 0


def test_orthogonal_weights_as_in_torch():
    def program(lib):
        p = module_of(lib, "parametrizations")
        module = p.orthogonal(layer(lib, ""), orthogonal_map="cayley", use_trivialization=False)
        backward(module.weight)
        return module, module.weight.round(decimals=3), list(module.state_dict())

    same(program)


def test_an_orthogonal_weight_can_be_assigned():
    for shape in ((3, 3), (2, 4)):
        module = parametrizations.orthogonal(nn.Linear(*shape))
        wanted = nn.init.orthogonal_(weft.empty(*reversed(shape)))
        module.weight = wanted
        assert weft.allclose(module.weight, wanted, atol=1e-5)


@pytest.mark.refuses("all")
@pytest.mark.parametrize("options", [{"orthogonal_map": "x"}, {"name": "bias"}, {"name": "x"}], ids=str)
def test_orthogonal_weights_of_others_as_in_torch(options):
    same(lambda lib: module_of(lib, "parametrizations").orthogonal(layer(lib, ""), **options))
