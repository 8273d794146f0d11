import pytest
import torch.nn.utils.prune  # noqa: F401 (torch.nn.utils does not import it)
from alike import same


def layer(lib):
    result = lib.nn.Linear(4, 3)
    values = lib.tensor([0.3, -0.1, 0.9, 0.2, -0.8, 0.4, 0.7, -0.6, 0.5, 1.0, -1.1, 1.2])
    result.load_state_dict({"weight": values.reshape(3, 4), "bias": lib.tensor([0.1, -0.2, 0.3])})
    return result


PRUNINGS = {
    "identity": lambda lib, p, m: p.identity(m, "weight"),
    "random": lambda lib, p, m: p.random_unstructured(m, "weight", 0.4),
    "random, a number": lambda lib, p, m: p.random_unstructured(m, "weight", 5),
    "smallest": lambda lib, p, m: p.l1_unstructured(m, "weight", 0.3),
    "none": lambda lib, p, m: p.l1_unstructured(m, "weight", 0),
    "by scores": lambda lib, p, m: p.l1_unstructured(
        m, "weight", 0.3, importance_scores=lib.arange(12.0).reshape(3, 4)
    ),
    "random rows": lambda lib, p, m: p.random_structured(m, "weight", 1, 0),
    "random columns": lambda lib, p, m: p.random_structured(m, "weight", 0.5, 1),
    "smallest rows": lambda lib, p, m: p.ln_structured(m, "weight", 1, 2, 0),
    "smallest columns": lambda lib, p, m: p.ln_structured(m, "weight", 2, 1, -1),
    "mask": lambda lib, p, m: p.custom_from_mask(m, "weight", lib.eye(3, 4)),
    "twice": lambda lib, p, m: p.l1_unstructured(p.l1_unstructured(m, "weight", 0.3), "weight", 0.5),
    "elements, then rows": lambda lib, p, m: p.ln_structured(p.l1_unstructured(m, "weight", 0.3), "weight", 1, 2, 0),
    "columns, then elements": lambda lib, p, m: p.l1_unstructured(p.ln_structured(m, "weight", 1, 2, 1), "weight", 2),
    "columns twice": lambda lib, p, m: p.ln_structured(p.ln_structured(m, "weight", 1, 2, 1), "weight", 1, 2, 1),
    "elements, then mask": lambda lib, p, m: p.custom_from_mask(
        p.l1_unstructured(m, "weight", 0.3), "weight", lib.eye(3, 4)
    ),
}  # fmt: skip


def facts(lib, module):
    parameters = [name for name, _ in module.named_parameters()]
    return (
        module.state_dict(),
        parameters,
        module.weight,
        module(lib.ones(1, 4)),
        len(module._forward_pre_hooks),
    )


@pytest.mark.parametrize("name", PRUNINGS)
def test_pruning_and_back_as_in_torch(name):
    def program(lib):
        prune = lib.nn.utils.prune
        module = PRUNINGS[name](lib, prune, layer(lib))
        before = facts(lib, module), prune.is_pruned(module)
        prune.remove(module, "weight")
        return before, facts(lib, module), prune.is_pruned(module)

    same(program)


ERRORS = {
    "not pruned": lambda lib, p, m: p.remove(m, "weight"),
    "negative": lambda lib, p, m: p.l1_unstructured(m, "weight", -1),
    "more than all": lambda lib, p, m: p.l1_unstructured(m, "weight", 1.5),
    "too many": lambda lib, p, m: p.l1_unstructured(m, "weight", 100),
    "no number": lambda lib, p, m: p.l1_unstructured(m, "weight", "a"),
    "one dim": lambda lib, p, m: p.ln_structured(m, "bias", 1, 2, 0),
    "no such dim": lambda lib, p, m: p.ln_structured(m, "weight", 1, 2, 7),
    "no such parameter": lambda lib, p, m: p.l1_unstructured(m, "x", 1),
    "other scores": lambda lib, p, m: p.l1_unstructured(m, "weight", 1, importance_scores=lib.ones(1)),
    "global, structured": lambda lib, p, m: p.global_unstructured(
        [(m, "weight")], p.LnStructured, amount=1, n=2
    ),
    "global, no pairs": lambda lib, p, m: p.global_unstructured(3, p.L1Unstructured, amount=1),
}


@pytest.mark.refuses("all")
@pytest.mark.parametrize("name", ERRORS)
def test_errors_as_in_torch(name):
    same(lambda lib: ERRORS[name](lib, lib.nn.utils.prune, layer(lib)))


AMOUNTS = """
_validate_pruning_amount_init(0.5)
_validate_pruning_amount_init(3)
_validate_pruning_amount_init("a")
_validate_pruning_amount_init(1.1)
_validate_pruning_amount_init(-1)
_validate_pruning_amount(20, 19)
_validate_pruning_amount(0.3, 0)
_compute_nparams_toprune(0, 15)
_compute_nparams_toprune(10, 15)
_compute_nparams_toprune(0.5, 15)
""".split("\n")[1:-1]


@pytest.mark.refuses(AMOUNTS[2:6])
@pytest.mark.parametrize("call", AMOUNTS)
def test_amounts(call):
    same(lambda lib: eval(f"prune.{call}", {"prune": lib.nn.utils.prune}))


@pytest.mark.parametrize("before", [0, 1])
def test_a_method_that_fails_leaves_the_module_whole(before):
    def program(lib):
        prune = lib.nn.utils.prune

        class Failing(prune.L1Unstructured):
            def compute_mask(self, t, default_mask):
                raise ValueError("no mask")

        module = layer(lib)
        if before:
            prune.l1_unstructured(module, "weight", 0.5)
        with pytest.raises(ValueError, match="no mask"):
            Failing.apply(module, "weight", 0.5)
        return sorted(module.state_dict()), sorted(dict(module.named_parameters())), module(lib.ones(1, 4))

    same(program)


def test_parameters_compared_with_each_other():
    def program(lib):
        prune, model = lib.nn.utils.prune, lib.nn.Sequential(layer(lib), layer(lib))
        pairs = [(model[0], "weight"), (model[1], "bias")]
        prune.global_unstructured(pairs, pruning_method=prune.L1Unstructured, amount=0.5)
        return model.state_dict()

    same(program)


def test_a_method_of_ones_own():
    def program(lib):
        class Even(lib.nn.utils.prune.BasePruningMethod):
            PRUNING_TYPE = "unstructured"

            def compute_mask(self, t, default_mask):
                mask = default_mask.clone()
                mask.view(-1)[::2] = 0
                return mask

        module = layer(lib)
        Even.apply(module, "weight")
        return facts(lib, module)

    same(program)


def test_pruning_a_tensor():
    same(lambda lib: lib.nn.utils.prune.L1Unstructured(0.5).prune(lib.tensor([1.0, -5.0, 0.1, 2.0])))
