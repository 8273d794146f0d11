"""weft.backends: PyTorch's switches for libraries. Scripts may set them; where weft has no such library they do nothing."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from weft.compat.missing import module_getattr
from weft.core.restoring import Restoring, contextmanager

_frozen = False


def disable_global_flags() -> None:
    """Refuse assignments to switches from now on, because tests forget to undo them: use the context `flags`."""
    global _frozen
    _frozen = True


def flags_frozen() -> bool:
    """Whether switches can be set by the context `flags` only."""
    return _frozen


class Switches(ModuleType):
    """A backend: some switches with their values, and questions with their answers."""

    def __init__(self, name: str, doc: str, answers: dict[str, Any], **switches: Any):
        full_name = f"{__name__}.{name}"
        super().__init__(full_name, doc)
        self.__spec__ = ModuleSpec(full_name, None, is_package=True)
        self.__path__: list[str] = []
        self._names = frozenset(switches)
        self.__dict__.update(switches)
        for question, answer in answers.items():
            self.__dict__[question] = _answer(question, answer)
        self.__getattr__ = module_getattr(full_name)  # type: ignore[method-assign]
        sys.modules[full_name] = self

    def __setattr__(self, name: str, value: Any) -> None:
        if _frozen and name in self._names:
            raise RuntimeError(
                f"not allowed to set {self.__name__} flags after disable_global_flags; please use flags() context manager instead"
            )
        super().__setattr__(name, value)

    def flags(self, **switches: Any) -> contextlib.AbstractContextManager[None]:
        """A context with these switches set."""
        return self._set_for_now(switches)

    @contextmanager
    def _set_for_now(self, switches: dict[str, Any]) -> Iterator[None]:
        outer = {name: getattr(self, name) for name in switches}
        self.__dict__.update(switches)
        try:
            yield
        finally:
            self.__dict__.update(outer)


class _Quantized(Switches):
    """Which library computes with quantized tensors. weft has one way for all of them, and layers give FBGEMM's integers."""

    engine: str
    supported_engines: list[str]

    def __init__(self, name: str, doc: str, answers: dict[str, Any]):
        super().__init__(name, doc, answers)
        # No flags: as in PyTorch, the engine can be set after `disable_global_flags`.
        self.__dict__.update(engine="x86", supported_engines=["qnnpack", "onednn", "x86", "fbgemm"])

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "engine" and value not in self.supported_engines:
            raise RuntimeError(f"{value} is not a valid value for quantized engine")
        if name == "supported_engines":
            raise RuntimeError("Assignment not supported")
        super().__setattr__(name, value)


def _answer(question: str, answer: Any) -> Any:
    if callable(answer):
        return answer

    def function(*args: Any, **kwargs: Any) -> Any:
        return answer

    function.__name__ = function.__qualname__ = question
    function.__doc__ = f"Always {answer!r} here."
    return function


def get_cpu_capability() -> str:
    """The instructions that kernels use: "AVX512", "AVX2", "NEON" or, with neither, "DEFAULT"."""
    from weft.engine.host import cpu as processor  # loads LLVM

    features = processor()[1].split(",")
    for feature, name in (("+avx512f", "AVX512"), ("+avx2", "AVX2"), ("+neon", "NEON")):
        if feature in features:
            return name
    return "DEFAULT"


class verbose(Restoring):  # noqa: N801 (PyTorch's name)
    """A context in which a library would report its calls. weft does not use it, so nothing is reported."""

    def __init__(self, enable: int):
        self.enable = enable

    def __enter__(self) -> verbose:
        return self

    def _restore(self) -> None:
        pass


_ABSENT = {"is_available": False}

cudnn = Switches(
    "cudnn",
    "cuDNN, which weft does not use.",
    {**_ABSENT, "version": None, "is_acceptable": False},
    enabled=True,
    benchmark=False,
    benchmark_limit=None,
    deterministic=False,
    allow_tf32=True,
    fp32_precision="none",
)
from . import cuda  # noqa: E402

mps = Switches(
    "mps",
    "Apple's GPUs, which weft does not use.",
    {
        **_ABSENT,
        "is_built": False,
        "is_macos_or_newer": False,
        "is_macos13_or_newer": False,
        "get_name": "",
        "get_core_count": 0,
    },
)
mkl = Switches(
    "mkl", "Intel's BLAS: weft has NumPy's.", {**_ABSENT, "verbose": verbose}, VERBOSE_OFF=0, VERBOSE_ON=1
)
mkldnn = Switches(
    "mkldnn",
    "oneDNN, which weft does not use.",
    _ABSENT,
    enabled=True,
    deterministic=False,
    allow_tf32=True,
    fp32_precision="none",
)
openmp = Switches("openmp", "OpenMP: weft has threads of its own.", _ABSENT)
opt_einsum = Switches(
    "opt_einsum", "The order of contractions.", {"is_available": True}, enabled=True, strategy="auto"
)
cpu = Switches("cpu", "The processor.", {}, get_cpu_capability=get_cpu_capability)
miopen = Switches("miopen", "AMD's library, which weft does not use.", {}, immediate=False)
nnpack = Switches(
    "nnpack",
    "NNPACK, which weft does not use.",
    {**_ABSENT, "set_flags": lambda _enabled: (False,)},
    enabled=False,
)
kleidiai = Switches("kleidiai", "Arm's library, which weft does not use.", _ABSENT)
cusparselt = Switches(
    "cusparselt", "cuSPARSELt, which weft does not use.", {**_ABSENT, "version": None, "get_max_alg_id": None}
)
xnnpack = Switches("xnnpack", "XNNPACK, which weft does not use.", {}, enabled=False)
quantized = _Quantized("quantized", "Libraries that compute with quantized tensors in PyTorch.", {})
