import importlib

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
    with pytest.raises(RuntimeError, match="mem_get_info"):
        weft.cuda.mem_get_info()
    with weft.cuda.device(0):
        pass


def test_constants():
    assert (weft.pi, weft.e, weft.inf, weft.newaxis) == (torch.pi, torch.e, torch.inf, None)
    assert weft.nan != weft.nan
