"""`weft doctor`: what weft found on this machine, for the reader of a bug report."""

import importlib.metadata
import importlib.util
import math
import os
import platform
import sys
from pathlib import Path

from weft.compat.version import WEFT

# LLVM's names for what matters to kernels, from the oldest unit to the newest.
_VECTOR_UNITS = (
    ["sse4.2", "avx", "fma", "f16c", "avx2", "avx512f", "avx512bw", "avx512dq", "avx512vl"]
    + ["avx512vnni", "avx512bf16", "avx512fp16", "amx-tile", "amx-bf16"]
    + ["neon", "fp-armv8", "fullfp16", "bf16", "sve", "sve2", "sme"]
)


def report() -> str:
    """All findings, one a line, as `weft doctor` prints them."""
    return "\n".join(f"{title:<12}{finding}" for title, finding in _findings())


def distribution_version() -> str:
    """weft's own version; `weft.__version__` is that of the PyTorch it stands for."""
    try:
        importlib.metadata.version("weft")
    except importlib.metadata.PackageNotFoundError:
        return f"{WEFT} (not installed: found on the path)"
    return WEFT


def _findings() -> list[tuple[str, str]]:
    import weft

    return [
        (
            "weft",
            f"{distribution_version()}, in {Path(__file__).parents[1]}; speaks torch {weft.__version__}",
        ),
        ("Python", f"{platform.python_version()}, {sys.executable}"),
        ("system", f"{platform.platform()}"),
        ("CPU", _cpu()),
        ("vectors", _vector_units()),
        ("threads", _threads()),
        ("BLAS", _blas()),
        ("kernels", kernel_cache()),
        ("device cpu", "yes"),
        ("device cuda", _cuda()),
        ("device xpu", _xpu()),
        ("device xla", _xla()),
    ]


def _cpu() -> str:
    from weft.engine import host

    chosen = ", by WEFT_CPU" if os.environ.get("WEFT_CPU") else ""
    return f"{_model_name()} (LLVM: {host.cpu()[0]}{chosen})"


def _model_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _vector_units() -> str:
    from weft.engine import host

    features = set(host.cpu()[1].split(","))
    return " ".join(unit for unit in _VECTOR_UNITS if f"+{unit}" in features) or "none that weft knows of"


def _threads() -> str:
    from weft.engine import workers

    granted = (
        f"{workers.available_cpus()} of {os.cpu_count()} processors granted by affinity and cgroup quota"
    )
    return f"{workers.get_num_threads()} ({granted})"


def _blas() -> str:
    import numpy

    blas = numpy.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{blas['name']} {blas['version']} (NumPy {numpy.__version__})"


def kernel_cache() -> str:
    """Where kernels are kept on disk, and how much room they take and may take."""
    from weft.engine import diskcache, host

    directory = host.disk_cache().directory
    if directory is None:
        return (
            f"not kept between runs: {diskcache.cache_root()} is no folder that only this user can write to"
        )
    size = math.ceil(host.disk_cache().size() / 1024)
    return (
        f"{size} KiB of at most {diskcache.LIMIT >> 20} MiB in {directory}; WEFT_CACHE_DIR chooses the folder"
    )


def _cuda() -> str:
    from weft.devices import cuda
    from weft.devices._gpu import amd, nvidia

    if cuda.driver() == "opencl":
        return f"{cuda.device_count()} found, devices of OpenCL by WEFT_CUDA=opencl"
    is_hip = cuda.driver() == "hip"
    driver = amd if is_hip else nvidia
    name = "HIP's library libamdhip64.so" if is_hip else f"NVIDIA's driver library {nvidia.NAME}"
    try:
        driver.library()
    except OSError:
        return f"no: {name} was not found" + ("" if is_hip else ", nor HIP's")
    except nvidia.DriverError as error:
        return f"no: {name} is there, but {error}"
    kind = f", GPUs of AMD by HIP {cuda.hip_version()}" if is_hip else ""
    return f"{'yes' if driver.device_count() else 'no'}: {driver.device_count()} found{kind}"


def _xpu() -> str:
    from weft.devices import xpu

    count = xpu.device_count()
    return f"yes: {count} found by OpenCL" if count else "no: OpenCL has no GPU here"


def _xla() -> str:
    if importlib.util.find_spec("jax") is None:
        return "no: jax is not installed (pip install 'weft[xla]')"
    return f"yes: by jax {importlib.metadata.version('jax')}"
