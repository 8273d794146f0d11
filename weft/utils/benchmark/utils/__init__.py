"""The parts of `torch.utils.benchmark`, under PyTorch's names."""

from ....compat.missing import module_getattr
from . import common, compare, fuzzer, timer

__all__ = ["common", "compare", "fuzzer", "timer"]

__getattr__ = module_getattr(__name__)
