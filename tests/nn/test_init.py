"""weft.nn.init draws the numbers of torch.nn.init."""

import warnings

import oracle
import pytest
import torch

import weft
from weft import nn

SHAPES = [(3, 5), (5, 3), (4, 6, 3), (6, 2, 3, 2), (20, 30)]
DTYPES = ["float32", "float64", "bfloat16", "float16"]

RANDOM = [
    ("uniform_", {}),
    ("uniform_", {"a": -3.0, "b": 2.0}),
    ("normal_", {"mean": 1.0, "std": 0.5}),
    ("trunc_normal_", {}),
    ("trunc_normal_", {"std": 0.02}),
    ("trunc_normal_", {"std": 3.0}),
    ("trunc_normal_", {"mean": 1.0, "std": 2.0, "a": 2.0, "b": 5.0}),
    ("trunc_normal_", {"std": 10.0, "a": -1.0, "b": 1.0}),
    ("xavier_uniform_", {"gain": 2.0}),
    ("xavier_normal_", {}),
    ("kaiming_uniform_", {}),
    ("kaiming_uniform_", {"a": 5**0.5}),
    ("kaiming_normal_", {"mode": "fan_out", "nonlinearity": "relu"}),
    ("kaiming_normal_", {"nonlinearity": "selu", "mode": "FAN_IN"}),
]


def same_bits(got, expected) -> None:
    assert oracle.name_of(got.dtype) == oracle.name_of(expected.dtype)
    assert torch.equal(oracle.to_torch(got), expected)


def both(name, shape, dtype, generator=False, **arguments):
    """The tensors after `name`, and the next random number of each library."""
    found = []
    for library in (weft, torch):
        tensor = library.zeros(shape, dtype=getattr(library, dtype))
        library.manual_seed(7)
        if generator:
            arguments["generator"] = library.Generator().manual_seed(11)
        assert getattr(library.nn.init, name)(tensor, **arguments) is tensor
        found += [tensor, library.rand(())]
    assert float(found[1]) == float(found[3])
    return found[0], found[2]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name, arguments", RANDOM)
def test_random_numbers(name, arguments, shape, dtype):
    same_bits(*both(name, shape, dtype, **arguments))


@pytest.mark.parametrize("name, arguments", RANDOM)
def test_generator(name, arguments):
    same_bits(*both(name, (20, 30), "float32", generator=True, **arguments))


@pytest.mark.parametrize("sparsity", [0, 0.1, 0.9, 1])
def test_sparse(sparsity):
    same_bits(*both("sparse_", (10, 4), "float32", sparsity=sparsity))
    same_bits(*both("sparse_", (10, 4), "float32", sparsity=sparsity, generator=True))


@pytest.mark.parametrize("shape", [(4, 4), (3, 7), (7, 3), (4, 2, 3), (1, 5)])
def test_orthogonal(shape):
    got, expected = both("orthogonal_", shape, "float64", gain=2)
    torch.testing.assert_close(oracle.to_torch(got), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", [*DTYPES, "int64"])
def test_patterns(dtype):
    for name, shape, arguments in (
        ("constant_", (2, 3), {"val": 3}),
        ("ones_", (2, 3), {}),
        ("zeros_", (2, 3), {}),
        ("eye_", (2, 3), {}),
        ("eye_", (3, 2), {}),
        *(
            ("dirac_", (6, 2, *window), {"groups": g})
            for window in ((3,), (2, 4), (3, 1, 2))
            for g in (1, 2, 3)
        ),
        ("dirac_", (2, 5, 4), {}),
    ):
        same_bits(*both(name, shape, dtype, **arguments))


def test_writes_into_parameters_and_views():
    whole = weft.zeros(4, 6)
    nn.init.normal_(whole[:, 1::2])
    assert (whole[:, ::2] == 0).all() and (whole[:, 1::2] != 0).all()
    parameter = weft.zeros(3, 3)
    before = parameter.data_ptr()
    for function in (nn.init.orthogonal_, nn.init.eye_, nn.init.xavier_normal_, nn.init.trunc_normal_):
        assert function(parameter).data_ptr() == before


def test_gains():
    for name in ("linear", "conv3d", "conv_transpose1d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"):
        assert nn.init.calculate_gain(name) == torch.nn.init.calculate_gain(name)
    assert nn.init.calculate_gain("leaky_relu", 0.3) == torch.nn.init.calculate_gain("leaky_relu", 0.3)


@pytest.mark.parametrize(
    "name, shape, arguments",
    [
        ("xavier_uniform_", (3,), {}),
        ("kaiming_normal_", (), {}),
        ("kaiming_uniform_", (2, 2), {"mode": "fan"}),
        ("kaiming_uniform_", (2, 2), {"nonlinearity": "gelu"}),
        ("kaiming_uniform_", (2, 2), {"a": True}),
        ("eye_", (2, 2, 2), {}),
        ("sparse_", (2,), {"sparsity": 0.5}),
        ("dirac_", (2, 2), {}),
        ("dirac_", (5, 2, 2), {"groups": 2}),
        ("orthogonal_", (3,), {}),
    ],
)
def test_errors(name, shape, arguments):
    with pytest.raises(Exception) as expected:
        getattr(torch.nn.init, name)(torch.zeros(shape), **arguments)
    with pytest.raises(type(expected.value)) as got:
        getattr(nn.init, name)(weft.zeros(shape), **arguments)
    assert type(got.value) is type(expected.value)
    assert str(got.value).startswith(str(expected.value))


def test_warnings():
    with pytest.warns(UserWarning, match="zero-element"):
        nn.init.kaiming_uniform_(weft.zeros(0, 3))
    with pytest.warns(UserWarning, match="mean is more than 2 std"):
        nn.init.trunc_normal_(weft.zeros(3), mean=-5, a=-2)
    names = [name for name in vars(torch.nn.init) if hasattr(torch.nn.init, f"{name}_")]
    assert len([name for name in names if not name.startswith("_")]) == 11
    for name in (
        "uniform",
        "normal",
        "xavier_uniform",
        "xavier_normal",
        "kaiming_uniform",
        "kaiming_normal",
        "eye",
    ):
        with pytest.warns(
            FutureWarning, match=f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`"
        ):
            getattr(nn.init, name)(weft.zeros(2, 2))
    assert {name for name in vars(torch.nn.init) if name.rstrip("_") in names} <= set(vars(nn.init))


def test_meta_tensors_are_left_alone():
    meta = weft.empty(3, 4, device="meta")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in (
            "uniform_",
            "normal_",
            "trunc_normal_",
            "orthogonal_",
            "zeros_",
            "eye_",
            "kaiming_uniform_",
        ):
            assert getattr(nn.init, name)(meta) is meta
        assert nn.init.sparse_(meta, 0.5) is meta
