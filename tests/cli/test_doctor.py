import ctypes
import os

import pytest

from weft.cli import doctor
from weft.devices import xpu
from weft.devices._gpu import amd, nvidia
from weft.engine import host
from weft.engine.diskcache import DiskCache


@pytest.fixture
def cache(monkeypatch):
    """Puts a kernel cache in the place of the user's."""
    return lambda directory: monkeypatch.setattr(host, "disk_cache", lambda: DiskCache(directory, ""))


def test_the_room_that_kernels_take_is_told(cache, tmp_path):
    (tmp_path / ("1" * 16 + ".young")).write_bytes(b"x" * 1000)
    (tmp_path / ("2" * 16 + ".old")).write_bytes(b"x" * 1000)
    cache(tmp_path)
    assert doctor.kernel_cache() == (
        f"2 KiB of at most 128 MiB in {tmp_path}; WEFT_CACHE_DIR chooses the folder"
    )


def test_kernels_that_cannot_be_kept(cache):
    cache(None)
    assert doctor.kernel_cache().startswith("not kept between runs")


def test_threads_are_those_of_the_engine():
    import weft

    assert doctor._threads().startswith(f"{weft.get_num_threads()} (")
    assert f"of {os.cpu_count()} processors" in doctor._threads()


@pytest.fixture
def driver(monkeypatch):
    """Let `load(name)` load the driver's library, of which nothing is known yet."""
    known = [
        getattr(module, name)
        for module in (nvidia, amd)
        for name in ("is_installed", "library", "device_count")
    ]
    for each in known:
        each.cache_clear()
    yield lambda load: monkeypatch.setattr(ctypes, "CDLL", load)
    for each in known:
        each.cache_clear()


@pytest.mark.parametrize(
    "error, expected",
    [(100, "libcuda.so.1 is there, but NVIDIA's driver cannot be used: error 100"), (0, "no: 0 found")],
)
def test_cuda_asks_the_driver(driver, error, expected):
    class Driver:
        def cuInit(self, flags):
            return error

        def cuDeviceGetCount(self, count):
            return 0

    driver(lambda name: Driver())
    assert expected in doctor._cuda()


def test_cuda_without_a_driver(driver):
    def missing(name):
        raise OSError(name)

    driver(missing)
    assert doctor._cuda().startswith("no: NVIDIA's driver library")


def test_the_level_that_kernels_are_compiled_for_is_told(monkeypatch):
    monkeypatch.delenv("WEFT_CPU", raising=False)
    assert doctor._cpu().endswith(f"(LLVM: {host.cpu()[0]})")
    monkeypatch.setenv("WEFT_CPU", "x86-64-v2")
    assert doctor._cpu().endswith(f"(LLVM: {host.cpu()[0]}, by WEFT_CPU)")


def _without_nvidia(hip):
    """Let only HIP's library load."""

    def load(name):
        if "hip" not in name:
            raise OSError(name)
        return hip

    return load


class Hip:
    def hipInit(self, flags):
        return 0

    def hipGetDeviceCount(self, count):
        count._obj.value = 2
        return 0

    def hipRuntimeGetVersion(self, version):
        version._obj.value = 6 * 10_000_000 + 4 * 100_000 + 43484
        return 0


def test_cuda_is_hip_where_only_hip_is(driver):
    import weft

    driver(_without_nvidia(Hip()))
    assert doctor._cuda() == "yes: 2 found, GPUs of AMD by HIP 6.4.43484"
    assert weft.version.hip == "6.4.43484" and weft.cuda.device_count() == 2


def test_hip_that_was_asked_for_and_is_not_there(driver, monkeypatch):
    import weft

    def missing(name):
        raise OSError(name)

    driver(missing)
    monkeypatch.setenv("WEFT_CUDA", "hip")
    assert doctor._cuda() == "no: HIP's library libamdhip64.so was not found"
    assert weft.version.hip is None
    with pytest.raises(RuntimeError, match="No HIP GPUs are available"):
        weft.ones(1, device="cuda")


@pytest.mark.parametrize(
    ("count", "expected"), [(0, "no: OpenCL has no GPU here"), (2, "yes: 2 found by OpenCL")]
)
def test_xpu_counts_the_devices_of_opencl(monkeypatch, count, expected):
    monkeypatch.setattr(xpu, "device_count", lambda: count)
    assert doctor._xpu() == expected
