"""Names of torch._dynamo and torch.compiler that programs touch."""

import functools
import warnings

import pytest
import torch
import torch._dynamo

import weft
import weft._dynamo


@pytest.mark.parametrize("name", ["_dynamo.config", "_inductor.config", "compiler.config"])
def test_settings_have_the_defaults_of_pytorch(name):
    import torch._dynamo.config
    import torch._inductor.config

    import weft._dynamo.config
    import weft._inductor.config
    import weft.compiler.config

    theirs, ours = torch, weft
    for part in name.split("."):
        theirs, ours = getattr(theirs, part), getattr(ours, part)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        different = {}
        for setting, value in ours.get_config_copy().items():
            wanted = functools.reduce(getattr, setting.split("."), theirs)
            if value != (list(wanted) if isinstance(wanted, set) else wanted):
                different[setting] = (value, wanted)
    assert different == {}


def test_settings_can_be_set_patched_and_saved():
    config = weft._dynamo.config
    assert config.suppress_errors is False
    saved = config.save_config()
    with config.patch(suppress_errors=True, cache_size_limit=3):
        assert config.suppress_errors and config.cache_size_limit == 3
        with config.patch({"cache_size_limit": 4}):
            assert config.cache_size_limit == 4
    assert config.cache_size_limit == 8
    config.cache_size_limit = 64
    config.load_config(saved)
    assert config.cache_size_limit == 8
    with pytest.raises(AttributeError):
        config.no_such_setting = 1
    with pytest.raises(AttributeError):
        config.no_such_setting  # noqa: B018

    @config.patch("verbose", True)
    def inside():
        return config.verbose

    assert inside() and not config.verbose


def test_decorators_leave_functions_as_they_are():
    def function(x):
        return x

    for module in (weft._dynamo, weft.compiler):
        assert module.disable(function) is module.disable()(function) is function
        assert module.allow_in_graph(function) is module.assume_constant_result(function) is function
        assert module.substitute_in_graph(len)(function) is function
        assert not module.is_compiling()
        assert module.set_stance("force_eager")(function)(3) == 3
    dynamo = weft._dynamo
    assert (
        dynamo.run(function)
        is dynamo.nonstrict_trace(function)
        is dynamo.forbid_in_graph(function)
        is function
    )
    assert dynamo.optimize("eager")(function)(3) == 3
    assert weft.compiler.nested_compile_region(function) is function
    with weft.compiler.set_stance("force_eager"), dynamo.error_on_graph_break(False):
        dynamo.graph_break()
    with pytest.raises(RuntimeError, match="stance"):
        weft.compiler.set_stance("unknown")


def test_marks_of_tensors():
    x = weft.ones(2, 3)
    weft._dynamo.mark_dynamic(x, 0)
    weft._dynamo.mark_dynamic(x, [1])
    weft._dynamo.mark_static(x)
    weft._dynamo.mark_static_address(x)
    weft._dynamo.maybe_mark_dynamic(x, 1)
    with pytest.raises(TypeError):
        weft._dynamo.mark_static_address(3)


def test_backends():
    for exclude in (("debug", "experimental"), ()):
        ours = weft.compiler.list_backends(exclude)
        assert set(weft.compiler.list_backends()) == set(torch.compiler.list_backends())
        assert set(ours) <= set(torch.compiler.list_backends(exclude))
    assert weft.compiler.get_default_backend() == torch.compiler.get_default_backend()
    with pytest.raises(RuntimeError):
        weft.compiler.set_default_backend("nothing")
    weft._dynamo.register_backend(lambda graph, inputs: graph, name="mine")
    assert "mine" in weft._dynamo.list_backends()


def test_what_needs_tracing_says_so():
    for call in (weft._dynamo.explain, weft._dynamo.export, weft._dynamo.replay):
        with pytest.raises(NotImplementedError):
            call("f")
    with pytest.raises(NotImplementedError):
        weft.compiler.load_compiled_function(None)
    assert weft.compiler.save_cache_artifacts() is None


def test_functions_of_arrays():
    def sums(x, y):
        return (x + y).sum(0)

    x = torch.arange(4.0).reshape(2, 2)
    ours = weft.compiler.wrap_numpy(sums)(weft.tensor(x.tolist()), 1)
    assert ours.tolist() == torch.compiler.wrap_numpy(sums)(x, 1).tolist()
    named = weft.compiler.wrap_numpy(lambda x: type(x).__name__)
    assert named(x=weft.ones(1)) == "ndarray"


def test_errors_are_related_as_in_pytorch():
    for name in (
        "Unsupported",
        "UserError",
        "UncapturedHigherOrderOpError",
        "BackendCompilerFailed",
        "TorchRuntimeError",
    ):
        ours, theirs = getattr(weft._dynamo.exc, name), getattr(torch._dynamo.exc, name)
        wanted = [each.__name__ for each in theirs.__mro__ if each.__name__ != "ShortenTraceback"]
        assert [each.__name__ for each in ours.__mro__] == wanted


def test_libraries_ask_whether_a_device_is_compiled_for():
    from torch._dynamo.utils import is_compile_supported as expected

    from weft._dynamo.utils import is_compile_supported

    assert is_compile_supported("cpu") == expected("cpu") is True
    assert not is_compile_supported("mps")


def test_settings_in_groups():
    config = weft._inductor.config
    with config.patch({"triton.cudagraphs": True}):
        assert config.triton.cudagraphs is True
    config.triton.unique_kernel_names = False
    assert config.get_config_copy()["triton.unique_kernel_names"] is False
    config.triton.unique_kernel_names = True
    with pytest.raises(AttributeError):
        config.triton.no_such_setting = 1
