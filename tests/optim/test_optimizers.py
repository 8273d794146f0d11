"""Every optimizer against the oracle: the same parameters and gradients, ten steps, parameters and state compared."""

import copy
import pickle

import numpy as np
import pytest
import torch
from alike import same
from hypothesis import given
from hypothesis import strategies as st
from oracle import assert_same, to_torch, to_weft

import weft
from weft.families.update import FusedUpdate
from weft.optim.elementwise import Elementwise
from weft.optim.per_parameter import PerParameter

# What the oracle computes with float arithmetic of another accuracy (its vector square root is some ulp off).
TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 1e-2, "bfloat16": 4e-2, "complex64": 2e-5}

CONFIGURATIONS = [
    ("SGD", {}),
    ("SGD", {"lr": 1, "weight_decay": 0.1}),
    ("SGD", {"momentum": 0.9}),
    ("SGD", {"momentum": 0.9, "dampening": 0.3, "maximize": True}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("Adam", {}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1}),
    ("Adam", {"betas": (0.5, 0.6), "eps": 1e-3, "maximize": True, "decoupled_weight_decay": True}),
    ("Adam", {"fused": True}),
    ("AdamW", {}),
    ("AdamW", {"amsgrad": True, "maximize": True, "foreach": True}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5, "maximize": True}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.3, "rho": 0.5, "weight_decay": 0.1, "maximize": True}),
    ("Adamax", {}),
    ("Adamax", {"weight_decay": 0.1, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("NAdam", {"weight_decay": 0.1, "momentum_decay": 0.1}),
    ("RAdam", {}),
    ("RAdam", {"betas": (0.5, 0.7), "weight_decay": 0.1, "maximize": True}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {"centered": True, "momentum": 0.9}),
    ("Rprop", {}),
    ("Rprop", {"etas": (0.3, 1.5), "step_sizes": (1e-3, 0.05), "maximize": True}),
    ("ASGD", {}),
    ("ASGD", {"t0": 3, "lambd": 0.01, "weight_decay": 0.1, "maximize": True}),
    ("Adafactor", {}),
    ("Adafactor", {"eps": (1e-6, 1e-2), "d": 1.5, "weight_decay": 0.1, "maximize": True}),
]
MUON = [{}, {"nesterov": False}, {"adjust_lr_fn": "match_rms_adamw", "weight_decay": 0.5, "ns_steps": 3}]


def values(shape, generator, dtype):
    wide = torch.complex64 if dtype.is_complex else torch.float32
    return torch.randn(shape, generator=generator, dtype=wide).to(dtype)


def pair(name, options, dtype, shapes=((7, 5), (33,), ()), seed=0):
    """The oracle's optimizer and ours over equal parameters, and a function that gives them equal gradients."""
    generator = torch.Generator().manual_seed(seed)
    theirs = [values(shape, generator, dtype).requires_grad_() for shape in shapes]
    ours = [to_weft(param.detach()).requires_grad_() for param in theirs]
    reference = getattr(torch.optim, name)(theirs, **options)
    optimizer = getattr(weft.optim, name)(ours, **options)

    def backward():
        for one, other in zip(ours, theirs, strict=True):
            other.grad = values(other.shape, generator, dtype)
            one.grad = to_weft(other.grad)

    return optimizer, reference, backward


def assert_state_equal(optimizer, reference):
    ours, theirs = optimizer.state_dict(), reference.state_dict()
    assert list(ours["state"]) == list(theirs["state"])
    assert [list(group) for group in ours["param_groups"]] == [
        list(group) for group in theirs["param_groups"]
    ]
    for key, state in theirs["state"].items():
        assert list(ours["state"][key]) == list(state)
        for name, value in state.items():
            assert_close(ours["state"][key][name], value, name)
    for one, other in zip(optimizer.param_groups, reference.param_groups, strict=True):
        for mine, param in zip(one["params"], other["params"], strict=True):
            assert_close(mine.detach(), param.detach(), "param")


def assert_close(got, expected, what):
    if not isinstance(expected, torch.Tensor):
        assert got == expected
        return
    got = to_torch(got)
    assert got.dtype == expected.dtype and got.shape == expected.shape, what
    bound = TOLERANCE[str(expected.dtype).removeprefix("torch.")]
    torch.testing.assert_close(got, expected, rtol=bound, atol=bound, msg=lambda text: f"{what}: {text}")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name, options", CONFIGURATIONS, ids=lambda value: str(value))
def test_ten_steps(name, options, dtype):
    optimizer, reference, backward = pair(name, options, dtype)
    for _ in range(10):
        backward()
        assert optimizer.step() is None
        reference.step()
    assert_state_equal(optimizer, reference)


WITHOUT_ROOTS = [each for each in CONFIGURATIONS if each[0] in ("SGD", "Rprop", "ASGD")]


@pytest.mark.parametrize("name, options", WITHOUT_ROOTS, ids=str)
def test_bit_equal_without_square_roots(name, options):
    optimizer, reference, backward = pair(name, options, torch.float32, [(64, 5)])
    for _ in range(10):
        backward()
        optimizer.step()
        reference.step()
    assert np.array_equal(optimizer.param_groups[0]["params"][0].detach().numpy(), reference_array(reference))


def reference_array(reference):
    return reference.param_groups[0]["params"][0].detach().numpy()


@pytest.mark.parametrize("options", MUON, ids=str)
def test_muon(options):
    optimizer, reference, backward = pair("Muon", options, torch.float32, [(6, 9), (9, 4)])
    for _ in range(3):
        backward()
        optimizer.step()
        reference.step()
    for mine, param in zip(
        optimizer.param_groups[0]["params"], reference.param_groups[0]["params"], strict=True
    ):
        torch.testing.assert_close(to_torch(mine.detach()), param.detach(), rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize(
    "name, options",
    [each for each in CONFIGURATIONS if each[0] != "Adafactor" and "fused" not in each[1]][::2],
    ids=str,
)
def test_complex_parameters_count_as_pairs(name, options):
    optimizer, reference, backward = pair(name, options, torch.complex64, [(3, 4)])
    for _ in range(5):
        backward()
        optimizer.step()
        reference.step()
    assert_state_equal(optimizer, reference)


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad", "RAdam"])
def test_strided_parameters_and_gradients(name):
    options = {"momentum": 0.9} if name == "SGD" else {}
    generator = torch.Generator().manual_seed(0)
    base, grad = (torch.randn(8, 12, generator=generator) for _ in range(2))
    theirs = base.clone()[1::2, ::3].t().requires_grad_()
    ours_base = to_weft(base)
    ours = ours_base[1::2, ::3].t().detach().requires_grad_()
    reference = getattr(torch.optim, name)([theirs], **options)
    optimizer = getattr(weft.optim, name)([ours], **options)
    for k in range(4):
        theirs.grad = grad[k:, :4].t()[:, :4] if k else grad[:1, :1].expand(4, 4)
        ours.grad = to_weft(grad)[k:, :4].t()[:, :4] if k else to_weft(grad)[:1, :1].expand(4, 4)
        optimizer.step()
        reference.step()
    assert_state_equal(optimizer, reference)
    assert np.array_equal(ours_base.numpy()[::2], base.numpy()[::2])  # what lies between is not touched


@given(
    name=st.sampled_from(["SGD", "Adam", "AdamW", "NAdam", "RMSprop", "Adadelta"]),
    decay=st.sampled_from([0, 0.01, 1.0]),
    maximize=st.booleans(),
    lr=st.floats(1e-5, 1.0),
    shape=st.lists(st.integers(0, 6), max_size=3),
    seed=st.integers(0, 1000),
)
def test_any_shape_and_rate(name, decay, maximize, lr, shape, seed):
    options = {"lr": lr, "weight_decay": decay, "maximize": maximize}
    optimizer, reference, backward = pair(name, options, torch.float64, [tuple(shape)], seed)
    for _ in range(3):
        backward()
        optimizer.step()
        reference.step()
    assert_state_equal(optimizer, reference)


@pytest.mark.parametrize(
    "name", ["SGD", "Adam", "AdamW", "Adagrad", "Adamax", "NAdam", "RAdam", "RMSprop", "ASGD"]
)
def test_rate_as_tensor(name):
    optimizer, reference, backward = pair(name, {}, torch.float32)
    optimizer.param_groups[0]["lr"], reference.param_groups[0]["lr"] = weft.tensor(0.03), torch.tensor(0.03)
    for _ in range(3):
        backward()
        optimizer.step()
        reference.step()
    for mine, param in zip(
        optimizer.param_groups[0]["params"], reference.param_groups[0]["params"], strict=True
    ):
        assert_same(mine.detach(), param.detach())


@pytest.mark.parametrize("name, options", CONFIGURATIONS[::2], ids=str)
def test_state_travels_both_ways(name, options):
    """Half of the steps by one library, then its state loaded into the other, and the rest there."""
    optimizer, reference, backward = pair(name, options, torch.float32)
    for _ in range(3):
        backward()
        optimizer.step()
        reference.step()
    ours, theirs = optimizer.state_dict(), reference.state_dict()
    optimizer.load_state_dict(translated(theirs, to_weft))
    reference.load_state_dict(translated(ours, to_torch))
    for _ in range(3):
        backward()
        optimizer.step()
        reference.step()
    assert_state_equal(optimizer, reference)


def translated(value, convert):
    if isinstance(value, dict):
        return {key: translated(each, convert) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(translated(each, convert) for each in value)
    return convert(value) if isinstance(value, (torch.Tensor, weft.Tensor)) else value


@pytest.mark.parametrize("name, options", CONFIGURATIONS[::3], ids=str)
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_copies_go_on_alike(name, options, duplicate):
    optimizer, _, backward = pair(name, options, torch.float32)
    backward()
    optimizer.step()
    twin = duplicate(optimizer)
    params, twins = optimizer.param_groups[0]["params"], twin.param_groups[0]["params"]
    backward()
    for param, other in zip(params, twins, strict=True):
        assert param is not other
        other.grad = param.grad
    optimizer.step()
    twin.step()
    for param, other in zip(params, twins, strict=True):
        assert np.array_equal(param.detach().numpy(), other.detach().numpy())


@pytest.mark.parametrize("name", ["SGD", "Adam", "NAdam", "RMSprop", "ASGD", "Adamax"])
def test_ops_give_the_same_values_as_the_kernel(name):
    optimizer, _, backward = pair(name, {"weight_decay": 0.1}, torch.float32)
    params = [param.detach().clone() for param in optimizer.param_groups[0]["params"]]
    composed = getattr(weft.optim, name)(params, weight_decay=0.1)
    composed.update = composed.update.compose
    for _ in range(3):
        backward()
        for param, other in zip(params, optimizer.param_groups[0]["params"], strict=True):
            param.grad = other.grad
        optimizer.step()
        composed.step()
    for param, other in zip(params, optimizer.param_groups[0]["params"], strict=True):
        assert np.array_equal(param.numpy(), other.detach().numpy())


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "NAdam", "RMSprop", "ASGD", "Adamax"])
def test_differentiable_steps_round_as_the_oracle(name):
    """The scales of a differentiable step of Adam are float32 tensors, even if the parameters are float64."""

    def program(lib, betas):
        weight = lib.tensor([1.0, -2.0], dtype=lib.float64)
        weight.grad = lib.tensor([0.3, 0.7], dtype=lib.float64)
        # sqrt(1 - 0.75) is exact, so this does not depend on how a library rounds square roots.
        options = {"betas": (0.5, 0.75)} if betas else {}
        optimizer = getattr(lib.optim, name)([weight], lr=0.1, differentiable=True, **options)
        optimizer.step()
        return weight.tolist()

    betas = name.startswith(("Ada", "NAd"))
    np.testing.assert_allclose(program(weft, betas), program(torch, betas), rtol=1e-13)


def test_loaded_asgd_rounds_its_step_size_to_float32():
    """Loading converts "eta" to the dtype of the parameter; a new "eta" is still a float32 number, as in PyTorch."""

    def program(lib):
        weight = lib.ones(2, dtype=lib.float64)
        optimizer = lib.optim.ASGD([weight], lr=0.1, lambd=0.3)
        for _ in range(3):
            weight.grad = lib.ones(2, dtype=lib.float64)
            optimizer.step()
            optimizer.load_state_dict(optimizer.state_dict())
        state = optimizer.state[weight]
        return state["eta"].dtype, state["eta"].item(), state["mu"].item(), weight.tolist()

    same(program)


@pytest.mark.parametrize(
    "name, options",
    [
        ("SGD", {"weight_decay": 0.1}),
        ("SGD", {"momentum": 0.9, "nesterov": True}),
        ("Adam", {"weight_decay": 0.1, "eps": 1.0}),
        ("AdamW", {"amsgrad": True, "eps": 1.0}),
        ("NAdam", {"eps": 1.0}),
        ("RAdam", {"betas": (0.5, 0.7), "eps": 1.0}),
        ("RMSprop", {"centered": True, "momentum": 0.5}),
        ("Adagrad", {"initial_accumulator_value": 1.0}),
        ("Adadelta", {}),
        ("ASGD", {"t0": 1}),
    ],
    ids=str,
)
def test_differentiable_steps_have_gradients(name, options):
    """Of the parameters after some steps, by those at the beginning and by what the gradients depend on."""
    # The oracle overwrites what its own second step needs for backward.
    steps = 1 if name in ("Adam", "AdamW", "NAdam", "RMSprop") else 3
    results = []
    for library in (weft, torch):
        start = library.tensor([1.0, 2.0, 3.0], dtype=library.float64, requires_grad=True)
        scale = library.tensor([0.5, -1.0, 2.0], dtype=library.float64, requires_grad=True)
        param = start * 1.0
        optimizer = getattr(library.optim, name)([param], lr=0.1, differentiable=True, **options)
        for factor in (1.0, -0.5, 2.0)[:steps]:
            param.grad = scale * start * factor
            optimizer.step()
        total = (param * library.tensor([1.0, 10.0, 100.0], dtype=library.float64)).sum()
        results.append([each.tolist() for each in library.autograd.grad(total, (start, scale))])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-4)  # the oracle counts steps in float32


@pytest.mark.parametrize(
    "name",
    ["SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta", "ASGD", "Rprop"],
)
def test_derivatives_of_several_steps(name):
    options = {
        "SGD": {"momentum": 0.9},
        "AdamW": {"amsgrad": True, "eps": 0.1},
        "RMSprop": {"centered": True},
    }

    def train(start, scale):
        param = start * 1.0
        optimizer = getattr(weft.optim, name)([param], lr=0.1, differentiable=True, **options.get(name, {}))
        for factor in (1.0, 0.5, 2.0):
            param.grad = scale * scale * factor
            optimizer.step()
        return param

    inputs = [weft.tensor(values, dtype=weft.float64) for values in ([1.0, 2.0, 3.0], [0.5, -1.0, 2.0])]
    for number, each in enumerate(inputs):
        if name == "SGD" and number == 1:
            continue  # as the oracle's, the first gradient has no part in the derivative of the momentum
        each.requires_grad_()
        (slope,) = weft.autograd.grad(train(*inputs).sum(), each)
        each.requires_grad_(False)
        for element in range(3):
            step = weft.zeros(3, dtype=weft.float64)
            step[element] = 1e-6
            high, low = (
                train(*(other + sign * step if other is each else other for other in inputs)).sum().item()
                for sign in (1, -1)
            )
            assert slope[element].item() == pytest.approx((high - low) / 2e-6, rel=1e-4, abs=1e-7)


def test_parameters_without_gradient_stay():
    with_grad, without = weft.ones(2), weft.ones(2)
    with_grad.grad = weft.ones(2)
    optimizer = weft.optim.Adam([with_grad, without], lr=0.5)
    optimizer.step()
    assert without.tolist() == [1.0, 1.0]
    assert with_grad.tolist() == pytest.approx([0.5, 0.5])
    assert list(optimizer.state_dict()["state"]) == [0]


def test_a_step_counts_as_a_write():
    weight = weft.ones(2, requires_grad=True)
    weight.grad = weft.ones(2)
    before = weight._version
    weft.optim.SGD([weight]).step()
    assert weight._version == before + 1


def test_gradient_that_is_part_of_the_parameters_memory():
    memory = weft.arange(6.0)
    weight = memory[:4].detach()
    weight.grad = memory[2:]
    weft.optim.SGD([weight], lr=1.0).step()
    assert memory.tolist() == [-2.0, -2.0, -2.0, -2.0, 4.0, 5.0]


def test_meta_parameters_get_state_without_bytes():
    weight = weft.empty(3, 2, device="meta")
    weight.grad = weft.empty(3, 2, device="meta")
    optimizer = weft.optim.Adam([weight])
    optimizer.step()
    state = optimizer.state[weight]
    assert state["step"].item() == 1 and state["exp_avg"].device.type == "meta"


def test_repeated_elements_cannot_be_written():
    weight = weft.ones(1).expand(3)
    weight.grad = weft.ones(3)
    with pytest.raises(RuntimeError, match="more than one element"):
        weft.optim.SGD([weight]).step()


BAD = {
    "lr": [-1.0, "tensor"],
    "momentum": [-1.0],
    "weight_decay": [-1.0],
    "eps": [-1.0, float("nan")],
    "betas": [(1.0, 0.9), (0.9, 1.0), (-0.1, 0.9)],
    "rho": [1.5],
    "lr_decay": [-1.0],
    "initial_accumulator_value": [-1.0],
    "alpha": [-1.0],
    "etas": [(1.5, 1.2)],
    "momentum_decay": [-1.0],
    "d": [0.5],
    "beta2_decay": [0.5],
    "nesterov": [True],
    "adjust_lr_fn": ["x"],
}
NAMES = [
    "Adafactor", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "LBFGS", "Muon", "NAdam", "RAdam",
]  # fmt: skip
NAMES += ["RMSprop", "Rprop", "SGD", "SparseAdam"]


@pytest.mark.parametrize("name", NAMES)
def test_bad_options_raise_the_same(name):
    tried = 0
    for option, wrong in BAD.items():
        for value in wrong:
            results = []
            for library in (weft, torch):
                cls = getattr(library.optim, name)
                given = library.tensor([1.0, 2.0]) if value == "tensor" else value
                try:
                    cls([library.ones(3, 2)], **{option: given})
                except Exception as error:
                    results.append((type(error).__name__, str(error)))
                else:
                    results.append(None)
            if results[1] is not None and "unexpected keyword" not in results[1][1]:
                assert results[0] == results[1]
                tried += 1
    assert tried > 0


@pytest.mark.parametrize("name", NAMES)
def test_defaults_and_printing(name):
    ours = getattr(weft.optim, name)([weft.ones(3, 2)])
    theirs = getattr(torch.optim, name)([torch.ones(3, 2)])
    assert ours.defaults == theirs.defaults and list(ours.defaults) == list(theirs.defaults)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()["param_groups"][0]) == list(theirs.state_dict()["param_groups"][0])


@pytest.mark.parametrize("name", [each for each in NAMES if each not in ("LBFGS", "SparseAdam")])
def test_state_of_older_versions(name):
    """Options that are missing get what they had then, numbers become tensors."""
    results = []
    for library in (weft, torch):
        weight = library.ones(3, 2)
        weight.grad = library.ones(3, 2)
        optimizer = getattr(library.optim, name)([weight])
        optimizer.step()
        saved = optimizer.state_dict()
        group = saved["param_groups"][0]
        saved["param_groups"] = [{"lr": group["lr"], "params": group["params"]}]
        for state in saved["state"].values():
            for key in ("step", "eta", "mu", "mu_product"):
                if key in state:
                    state[key] = 0.5
        optimizer.load_state_dict(saved)
        loaded = optimizer.state_dict()
        scalars = {
            key: value.item()
            for state in loaded["state"].values()
            for key, value in state.items()
            if value.dim() == 0
        }
        results.append((loaded["param_groups"], scalars))
    assert results[0] == results[1]


def test_options_that_exclude_each_other():
    weight = weft.ones(2)
    with pytest.raises(RuntimeError, match="`fused` does not support `differentiable`"):
        weft.optim.Adam([weight], fused=True, differentiable=True)
    with pytest.raises(RuntimeError, match="`fused` and `foreach` cannot be `True` together."):
        weft.optim.SGD([weight], fused=True, foreach=True)
    with pytest.raises(ValueError, match="lr as a Tensor is not supported"):
        weft.optim.Adam([weight], lr=weft.tensor(0.1), foreach=True)
    with pytest.raises(ValueError, match="betas must be either both floats or both Tensors"):
        weft.optim.Adam([weight], betas=(weft.tensor(0.9), 0.99))
    weight.grad = weft.ones(2)
    with pytest.raises(AssertionError, match="If capturable=True"):
        weft.optim.Adam([weight], capturable=True).step()


def test_muon_and_sparse_adam_refuse():
    with pytest.raises(ValueError, match="Muon only supports 2D parameters"):
        weft.optim.Muon([weft.ones(3)])
    weight = weft.ones(3)
    weight.grad = weft.ones(3)
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        weft.optim.SparseAdam([weight]).step()
    with pytest.raises(ValueError, match=r"Complex params at indices \[\[0, 0\]\]"):
        weft.optim.SparseAdam([weft.ones(3, dtype=weft.complex64)])


class Descent(Elementwise):
    """An optimizer of a program. Its defaults lack `differentiable`."""

    update = FusedUpdate(lambda options, grad, param, total, lr: (param + lr * grad, total + grad))

    def __init__(self, params):
        self.steps = []
        super().__init__(params, {"lr": 0.5})

    def _slots(self, group):
        return ("total",)

    def _next(self, group, state, param, step):
        self.steps.append(step)
        return (), (-group["lr"],)


def test_the_base_counts_the_steps_of_each_parameter():
    first, second = weft.ones(2, requires_grad=True), weft.ones(2, requires_grad=True)
    optimizer = Descent([first, second])
    for params in ([first], [first, second]):
        optimizer.zero_grad()
        sum(each.sum() for each in params).backward()
        optimizer.step()
    assert optimizer.steps == [1, 2, 1]
    assert optimizer.state[first]["step"] == 2 and optimizer.state[first]["total"].tolist() == [2, 2]


@pytest.mark.parametrize("base, method", [(Elementwise, "_next"), (PerParameter, "_update")])
def test_a_method_that_an_optimizer_lacks_is_named(base, method):
    weight = weft.ones(2, requires_grad=True)
    weight.sum().backward()
    optimizer = type("Mine", (base,), {"update": Descent.update})([weight], {"lr": 0.5})
    with pytest.raises(NotImplementedError, match=f"Mine must define {method}"):
        optimizer.step()
