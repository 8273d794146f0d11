"""`python -m torch.utils.collect_env`: facts about this machine and installation for a bug report.

>>> print(get_pretty_env_info().splitlines()[0].split(":")[0])
PyTorch version
"""

from __future__ import annotations

import importlib.metadata
import locale
import os
import platform
import re
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable
from typing import Any

_FIELDS = (
    "torch_version is_debug_build cuda_compiled_version gcc_version clang_version cmake_version os libc_version "
    "python_version python_platform is_cuda_available cuda_runtime_version cuda_module_loading nvidia_driver_version "
    "nvidia_gpu_models cudnn_version is_xpu_available pip_version pip_packages conda_packages hip_compiled_version "
    "hip_runtime_version miopen_runtime_version caching_allocator_config is_xnnpack_available cpu_info"
).split()
_make: Any = namedtuple  # noqa: PYI024 (PyTorch's type)
SystemEnv = _make("SystemEnv", _FIELDS)

COMMON_PATTERNS = ["torch", "numpy", "triton", "optree"]
NVIDIA_PATTERNS = ["cuda-cudart", "cuda-cupti", "cuda-libraries", "cuda-opencl", "cuda-nvrtc", "cuda-runtime", "cublas",
                   "cudnn", "cufft", "curand", "cusolver", "cusparse", "nccl", "nvjitlink", "nvtx"]  # fmt: skip
ONEAPI_PATTERNS = [
    "dpcpp-cpp-rt", "intel-cmplr-lib-rt", "intel-cmplr-lib-ur", "intel-cmplr-lic-rt", "intel-sycl-rt",
]  # fmt: skip
CONDA_PATTERNS = ["cudatoolkit", "soumith", "mkl", "magma"]
PIP_PATTERNS = ["mypy", "flake8", "onnx", "weft", "llvmlite", "scipy"]

Runner = Callable[[Any], tuple[int, str, str]]


def run(command: Any) -> tuple[int, str, str]:
    """Return the exit code, output and error output of a command, which is a list or a line for the shell."""
    done = subprocess.run(command, capture_output=True, shell=isinstance(command, str), check=False)
    encoding = locale.getpreferredencoding()
    return (
        done.returncode,
        done.stdout.decode(encoding, "replace").strip(),
        done.stderr.decode(encoding, "replace").strip(),
    )


def _quiet(run_lambda: Runner, command: Any) -> str | None:
    try:
        code, out, _ = run_lambda(command)
    except OSError:
        return None
    return out if code == 0 else None


def run_and_read_all(run_lambda: Runner, command: Any) -> str | None:
    """Return the output of a command; None if it fails."""
    return _quiet(run_lambda, command)


def run_and_return_first_line(run_lambda: Runner, command: Any) -> str | None:
    """Return the first line of its output; None if it fails."""
    out = _quiet(run_lambda, command)
    return None if out is None else out.split("\n")[0]


def run_and_parse_first_match(run_lambda: Runner, command: Any, regex: str) -> str | None:
    """Return the first group of a pattern in its output; None if it fails or nothing matches."""
    found = re.search(regex, _quiet(run_lambda, command) or "")
    return found.group(1) if found else None


# ---- Programs --------------------------------------------------------------------------------------------------------


def get_gcc_version(run_lambda: Runner) -> str | None:
    """Return the version of GCC."""
    return run_and_parse_first_match(run_lambda, "gcc --version", r"gcc (.*)")


def get_clang_version(run_lambda: Runner) -> str | None:
    """Return the version of Clang."""
    return run_and_parse_first_match(run_lambda, "clang --version", r"clang version (.*)")


def get_cmake_version(run_lambda: Runner) -> str | None:
    """Return the version of CMake."""
    return run_and_parse_first_match(run_lambda, "cmake --version", r"cmake (.*)")


def get_nvidia_smi() -> str:
    """Return the program that tells of NVIDIA's GPUs."""
    return "nvidia-smi"


def get_nvidia_driver_version(run_lambda: Runner) -> str | None:
    """Return the version of NVIDIA's driver."""
    return run_and_parse_first_match(run_lambda, get_nvidia_smi(), r"Driver Version: (.*?) ")


def get_gpu_info(run_lambda: Runner) -> str | None:
    """Return the names of NVIDIA's GPUs, or the name and architecture of AMD's."""
    from .. import cuda
    from ..devices.cuda import hip_version

    if hip_version() is not None:
        if not cuda.is_available():
            return None
        return f"{cuda.get_device_name()} ({cuda.get_device_properties(0).gcnArchName})"
    out = run_and_read_all(run_lambda, get_nvidia_smi() + " -L")
    return None if out is None else re.sub(r" \(UUID: .+?\)", "", out)


def get_running_cuda_version(run_lambda: Runner) -> str | None:
    """Return the version of CUDA's compiler."""
    return run_and_parse_first_match(run_lambda, "nvcc --version", r"release .+ V(.*)")


def get_cudnn_version(run_lambda: Runner) -> str | None:
    """Return the files of cuDNN."""
    return run_and_parse_first_match(run_lambda, "ldconfig -p", r"(libcudnn\.so\S*)")


def get_linux_pkg_version(run_lambda: Runner, pkg_name: str) -> str:
    """Return the version of a package of the system; N/A if there is none."""
    found = run_and_read_all(run_lambda, f"dpkg-query -W -f='${{Version}}' {pkg_name}")
    return found or "N/A"


def get_intel_gpu_detected(run_lambda: Runner) -> str:
    """Return which of Intel's GPUs weft can use: none."""
    return "N/A"


def get_intel_gpu_driver_version(run_lambda: Runner) -> str:
    """Return the version of the driver of Intel's GPUs."""
    return get_linux_pkg_version(run_lambda, "intel-opencl-icd")


def get_intel_gpu_onboard(run_lambda: Runner) -> str:
    """Return which of Intel's GPUs there are."""
    found = run_and_read_all(run_lambda, "lspci | grep -E 'VGA|Display|3D' | grep Intel")
    return found or "N/A"


# ---- The system ------------------------------------------------------------------------------------------------------


def get_platform() -> str:
    """linux, win32, darwin, ..."""
    return sys.platform


def get_mac_version(run_lambda: Runner) -> str | None:
    """Return the version of macOS."""
    return run_and_parse_first_match(run_lambda, "sw_vers -productVersion", r"(.*)")


def get_windows_version(run_lambda: Runner) -> str:
    """Return the version of Windows."""
    return " ".join(platform.win32_ver())


def get_lsb_version(run_lambda: Runner) -> str | None:
    """Return the name of the Linux distribution, as lsb_release says it."""
    return run_and_parse_first_match(run_lambda, "lsb_release -a", r"Description:\t(.*)")


def check_release_file(run_lambda: Runner) -> str | None:
    """Return the name of the Linux distribution, as /etc/os-release says it."""
    return run_and_parse_first_match(run_lambda, "cat /etc/*-release", r'PRETTY_NAME="(.*)"')


def get_os(run_lambda: Runner) -> str | None:
    """Return the name and version of the operating system."""
    system, machine = get_platform(), platform.machine()
    if system in ("win32", "cygwin"):
        return get_windows_version(run_lambda)
    if system == "darwin":
        version = get_mac_version(run_lambda)
        return None if version is None else f"macOS {version} ({machine})"
    if system == "linux":
        name = get_lsb_version(run_lambda) or check_release_file(run_lambda) or system
        return f"{name} ({machine})"
    return system


def get_python_platform() -> str:
    """Return the platform as Python names it."""
    return platform.platform()


def get_libc_version() -> str:
    """Return the version of the C library."""
    return "-".join(platform.libc_ver()) if get_platform() == "linux" else "N/A"


def get_cpu_info(run_lambda: Runner) -> str:
    """Return what the processor is."""
    if get_platform() == "linux":
        return run_and_read_all(run_lambda, "lscpu") or "N/A"
    if get_platform() == "darwin":
        return run_and_read_all(run_lambda, "sysctl -n machdep.cpu.brand_string") or "N/A"
    return platform.processor() or "N/A"


# ---- Packages --------------------------------------------------------------------------------------------------------


def get_pip_packages(run_lambda: Runner, patterns: Any = None) -> tuple[str, str | None]:
    """pip's name and the packages that matter, one a line."""
    wanted = (*PIP_PATTERNS, *COMMON_PATTERNS) if patterns is None else tuple(patterns)
    lines = {
        f"{each.metadata['Name']}=={each.version}"
        for each in importlib.metadata.distributions()
        if any(pattern in (each.metadata["Name"] or "").lower() for pattern in wanted)
    }
    return "pip3", "\n".join(sorted(lines)) or None


def get_conda_packages(run_lambda: Runner, patterns: Any = None) -> str | None:
    """Conda's packages that matter; None without Conda."""
    wanted = (*CONDA_PATTERNS, *COMMON_PATTERNS) if patterns is None else tuple(patterns)
    out = run_and_read_all(run_lambda, [os.environ.get("CONDA_EXE", "conda"), "list"])
    if out is None:
        return None
    return "\n".join(
        line for line in out.splitlines() if not line.startswith("#") and any(name in line for name in wanted)
    )


def get_cachingallocator_config() -> dict[str, str]:
    """Return the variables of the environment for the allocators of GPUs that are set."""
    names = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def get_cuda_module_loading_config() -> str:
    """How CUDA loads its kernels: not at all."""
    return "N/A"


def is_xnnpack_available() -> str:
    """Return whether XNNPACK is used: no."""
    return "False"


# ---- The report ------------------------------------------------------------------------------------------------------


def get_env_info() -> Any:
    """Return all of it."""
    from .. import __version__, cuda
    from ..devices import xpu
    from ..devices.cuda import hip_version

    pip_version, pip_packages = get_pip_packages(run)
    return SystemEnv(
        torch_version=__version__,
        is_debug_build="False",
        cuda_compiled_version="None",
        gcc_version=get_gcc_version(run),
        clang_version=get_clang_version(run),
        cmake_version=get_cmake_version(run),
        os=get_os(run),
        libc_version=get_libc_version(),
        python_version=f"{sys.version.replace(chr(10), ' ')} ({sys.maxsize.bit_length() + 1}-bit runtime)",
        python_platform=get_python_platform(),
        is_cuda_available=str(cuda.is_available()),
        cuda_runtime_version=get_running_cuda_version(run),
        cuda_module_loading=get_cuda_module_loading_config(),
        nvidia_driver_version=get_nvidia_driver_version(run),
        nvidia_gpu_models=get_gpu_info(run),
        cudnn_version=get_cudnn_version(run),
        is_xpu_available=str(xpu.device_count() > 0),
        pip_version=pip_version,
        pip_packages=pip_packages,
        conda_packages=get_conda_packages(run),
        hip_compiled_version=hip_version() or "N/A",
        hip_runtime_version=hip_version() or "N/A",
        miopen_runtime_version="N/A",
        caching_allocator_config=get_cachingallocator_config() or "N/A",
        is_xnnpack_available=is_xnnpack_available(),
        cpu_info=get_cpu_info(run),
    )


_LAYOUT = """\
PyTorch version: {torch_version}
Is debug build: {is_debug_build}
CUDA used to build PyTorch: {cuda_compiled_version}
ROCM used to build PyTorch: {hip_compiled_version}

OS: {os}
GCC version: {gcc_version}
Clang version: {clang_version}
CMake version: {cmake_version}
Libc version: {libc_version}

Python version: {python_version}
Python platform: {python_platform}
Is CUDA available: {is_cuda_available}
CUDA runtime version: {cuda_runtime_version}
CUDA_MODULE_LOADING set to: {cuda_module_loading}
GPU models and configuration: {nvidia_gpu_models}
Nvidia driver version: {nvidia_driver_version}
cuDNN version: {cudnn_version}
Is XPU available: {is_xpu_available}
HIP runtime version: {hip_runtime_version}
MIOpen runtime version: {miopen_runtime_version}
Is XNNPACK available: {is_xnnpack_available}
Caching allocator config: {caching_allocator_config}

CPU:
{cpu_info}

Versions of relevant libraries:
{packages}
"""


def pretty_str(envinfo: Any) -> str:
    """Return the report as text."""
    facts = {
        name: "Could not collect" if value is None else value for name, value in envinfo._asdict().items()
    }
    lists = (("pip3", envinfo.pip_packages), ("conda", envinfo.conda_packages))
    packages = [f"[{name}] {line}" for name, found in lists for line in (found or "").splitlines()]
    return _LAYOUT.format(**facts, packages="\n".join(packages) or "No relevant packages").strip()


def get_pretty_env_info() -> str:
    """Return the report as text."""
    return pretty_str(get_env_info())


def main() -> None:
    """Print the report."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
