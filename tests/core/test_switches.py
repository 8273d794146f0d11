import importlib
import warnings

import pytest
import torch

import weft


def test_determinism():
    for t in (torch, weft):
        t.use_deterministic_algorithms(True, warn_only=True)
        assert t.are_deterministic_algorithms_enabled()
        assert t.is_deterministic_algorithms_warn_only_enabled()
        t.set_deterministic_debug_mode("error")
        assert t.get_deterministic_debug_mode() == 2
        t.use_deterministic_algorithms(False)
        assert not t.are_deterministic_algorithms_enabled()
        with pytest.raises(RuntimeError, match="debug_mode"):
            t.set_deterministic_debug_mode("warnings")


def test_precision():
    weft.set_float32_matmul_precision("medium")
    assert weft.get_float32_matmul_precision() == "medium"
    with pytest.warns(UserWarning, match="not one of"):
        weft.set_float32_matmul_precision("low")
    weft.set_float32_matmul_precision("highest")


def test_the_switches_of_tf32_are_one():
    def states(lib):
        matmul = lib.backends.cuda.matmul
        found = []
        for set_it in (
            lambda: lib.set_float32_matmul_precision("high"),
            lambda: lib.set_float32_matmul_precision("highest"),
            lambda: setattr(matmul, "allow_tf32", True),
            lambda: setattr(matmul, "allow_tf32", False),
            lambda: setattr(matmul, "fp32_precision", "none"),
        ):
            set_it()
            found.append((lib.get_float32_matmul_precision(), matmul.allow_tf32, matmul.fp32_precision))
        return found

    assert states(weft) == states(torch)
    for name, value in (("allow_tf32", 3), ("fp32_precision", "half")):
        errors = []
        for lib in (weft, torch):
            with pytest.raises(RuntimeError) as error:
                setattr(lib.backends.cuda.matmul, name, value)
            errors.append(str(error.value).splitlines()[0])
        assert errors[0] == errors[1]


@pytest.mark.parametrize(
    "switch",
    [
        *("cudnn.deterministic", "cudnn.benchmark", "cudnn.enabled", "cudnn.allow_tf32"),
        *("cuda.matmul.allow_tf32", "opt_einsum.enabled", "mkldnn.enabled"),
    ],
)
def test_switches_of_backends_are_kept(switch):
    backend, _, name = switch.rpartition(".")
    ours = weft.backends
    theirs = torch.backends
    for part in backend.split("."):
        ours, theirs = getattr(ours, part), getattr(theirs, part)
    before = getattr(ours, name)
    assert isinstance(getattr(theirs, name), bool)
    setattr(ours, name, not before)
    assert getattr(ours, name) is not before
    setattr(ours, name, before)


def test_backends_are_modules():
    cudnn = importlib.import_module("weft.backends.cudnn")
    assert cudnn is weft.backends.cudnn
    assert not cudnn.is_available() and cudnn.version() is None
    with cudnn.flags(benchmark=True):
        assert cudnn.benchmark
    assert not cudnn.benchmark
    with pytest.raises(AttributeError, match="weft does not have it"):
        cudnn.is_there()
    assert weft.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "NEON", "DEFAULT")


def test_devices_that_are_not_there():
    assert weft.version.cuda is None
    assert weft.cuda.memory_allocated() == weft.cuda.max_memory_reserved() == 0
    assert not weft.mps.is_available() and not weft.xpu.is_available()
    assert not weft.backends.mps.is_built() and not weft.backends.cuda.is_built()
    assert not weft.distributed.is_initialized()
    weft.cuda.manual_seed_all(1), weft.mps.manual_seed(1), weft.xpu.empty_cache()
    with pytest.raises(RuntimeError, match="Found no NVIDIA driver"):
        weft.cuda.mem_get_info()
    with weft.cuda.device(0):
        pass


def test_constants():
    assert (weft.pi, weft.e, weft.inf, weft.newaxis) == (torch.pi, torch.e, torch.inf, None)
    assert weft.nan != weft.nan


def test_warnings_can_come_each_time():
    weft.core.warn.warn_once.forget()
    counts = []
    for always in (False, True):
        weft.set_warn_always(always)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                for _ in range(2):
                    weft.addcmul(weft.ones(1), 2, weft.ones(1), weft.ones(1))
            assert weft.is_warn_always_enabled() is always
        finally:
            weft.set_warn_always(False)
        counts.append(len(caught))
    assert counts == [1, 2]


def test_frozen_switches_are_set_by_flags_only(run):
    code = """
import weft
weft.backends.disable_global_flags()
try:
    weft.backends.cudnn.enabled = False
except RuntimeError as error:
    print("not allowed to set" in str(error), weft.backends.flags_frozen())
with weft.backends.cudnn.flags(enabled=False):
    print(weft.backends.cudnn.enabled)
print(weft.backends.cudnn.enabled)
weft.backends.quantized.engine = "fbgemm"  # no flag
"""
    done = run("-c", code)
    assert done.stdout.split() == ["True", "True", "False", "True"], done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("library", [weft, torch], ids=["weft", "torch"])
def test_warn_only_is_kept_while_anything_goes(library):
    before = library.get_deterministic_debug_mode()
    try:
        for mode in (True, False):
            for warn_only in (True, False):
                library.use_deterministic_algorithms(mode, warn_only=warn_only)
                assert library.are_deterministic_algorithms_enabled() is mode
                assert library.is_deterministic_algorithms_warn_only_enabled() is warn_only
                assert library.get_deterministic_debug_mode() == (0 if not mode else 1 if warn_only else 2)
        for mode in (0, 1, 2):
            library.set_deterministic_debug_mode(mode)
            assert library.get_deterministic_debug_mode() == mode
            assert library.is_deterministic_algorithms_warn_only_enabled() is (mode == 1)
        with pytest.raises(TypeError, match="'mode' .* must be bool, not int"):
            library.use_deterministic_algorithms(1)
        with pytest.raises(TypeError, match="'warn_only' must be bool, not int"):
            library.use_deterministic_algorithms(False, warn_only=1)
    finally:
        library.set_deterministic_debug_mode(before)


@pytest.mark.parametrize("library", [weft, torch], ids=["weft", "torch"])
@pytest.mark.parametrize("number", [-1, 2**65])
def test_impossible_numbers_of_threads(library, number):
    for function in (library.set_num_threads, library.set_num_interop_threads):
        with pytest.raises((ValueError, RuntimeError)):
            function(number)
