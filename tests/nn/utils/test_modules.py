"""Tools that take modules: vectors of parameters, fusion, modules without initial values, memory formats."""

import pytest
from alike import same


def linear(lib):
    layer = lib.nn.Linear(2, 3)
    layer.load_state_dict({"weight": lib.arange(6.0).reshape(3, 2), "bias": lib.arange(3.0)})
    return layer


def refilled(lib, vector):
    layer = linear(lib)
    lib.nn.utils.vector_to_parameters(vector, layer.parameters())
    return list(layer.parameters())


VECTORS = {
    "vector": lambda lib: lib.nn.utils.parameters_to_vector(linear(lib).parameters()),
    "of nothing": lambda lib: lib.nn.utils.parameters_to_vector([]),
    "parameters": lambda lib: refilled(lib, lib.arange(9.0) * 2),
    "too short": lambda lib: refilled(lib, lib.arange(4.0)),
    "a list": lambda lib: refilled(lib, [1.0]),
}


@pytest.mark.refuses(["of nothing", "too short", "a list"])
@pytest.mark.parametrize("name", VECTORS)
def test_vectors_as_in_torch(name):
    same(VECTORS[name])


def normalized(lib, layer, norm, x, fuse, *options):
    """What a fused layer computes, to three digits, and whether it is what both layers compute."""
    norm.running_mean.copy_(lib.arange(norm.num_features) / 10)
    norm.running_var.copy_(lib.arange(1, norm.num_features + 1) / 2)
    fused = getattr(lib.nn.utils, fuse)(layer.eval(), norm.eval(), *options)
    with lib.no_grad():
        return fused, lib.allclose(fused(x), norm(layer(x)), atol=1e-5), type(fused.weight).__name__


FUSIONS = {
    "conv": lambda lib: (lib.nn.Conv2d(2, 3, 2), lib.nn.BatchNorm2d(3), lib.ones(1, 2, 4, 4), "fuse_conv_bn_eval"),
    "conv without bias": lambda lib: (
        lib.nn.Conv1d(2, 3, 2, bias=False), lib.nn.BatchNorm1d(3), lib.ones(1, 2, 4), "fuse_conv_bn_eval"
    ),
    "without weights": lambda lib: (
        lib.nn.Conv1d(2, 3, 2), lib.nn.BatchNorm1d(3, affine=False), lib.ones(1, 2, 4), "fuse_conv_bn_eval"
    ),
    "transposed": lambda lib: (
        lib.nn.ConvTranspose1d(2, 3, 2), lib.nn.BatchNorm1d(3), lib.ones(1, 2, 4), "fuse_conv_bn_eval", True
    ),
    "linear": lambda lib: (lib.nn.Linear(2, 3), lib.nn.BatchNorm1d(3), lib.ones(4, 2), "fuse_linear_bn_eval"),
}  # fmt: skip


@pytest.mark.parametrize("name", FUSIONS)
def test_fusion_as_in_torch(name):
    same(lambda lib: normalized(lib, *FUSIONS[name](lib)))


@pytest.mark.refuses("all")
def test_fusion_is_for_evaluation():
    same(lambda lib: lib.nn.utils.fuse_conv_bn_eval(lib.nn.Conv1d(2, 3, 2), lib.nn.BatchNorm1d(3)))
    same(
        lambda lib: lib.nn.utils.fuse_linear_bn_eval(lib.nn.Linear(2, 3).eval(), lib.nn.BatchNorm1d(4).eval())
    )


@pytest.mark.refuses(2)
def test_skip_init_as_in_torch():
    same(lambda lib: lib.nn.utils.skip_init(lib.nn.Linear, 2, 3, dtype=lib.float64))
    same(lambda lib: lib.nn.utils.skip_init(lib.nn.Linear, 2, 3).weight.device)
    same(lambda lib: lib.nn.utils.skip_init(lib.nn.ReLU))
    same(lambda lib: lib.nn.utils.skip_init(int).__name__)


def test_memory_formats_as_in_torch():
    def program(lib):
        model = lib.nn.Sequential(
            lib.nn.Conv2d(2, 3, 3), lib.nn.Conv1d(2, 3, 3), lib.nn.ConvTranspose2d(2, 3, 3)
        )
        lib.nn.utils.convert_conv2d_weight_memory_format(model, lib.channels_last)
        volume = lib.nn.utils.convert_conv3d_weight_memory_format(
            lib.nn.Conv3d(2, 3, 3), lib.channels_last_3d
        )
        return [module.weight.stride() for module in (*model, volume)]

    same(program)
