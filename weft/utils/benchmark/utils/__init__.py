"""The parts of `torch.utils.benchmark`, under PyTorch's names."""

from . import common, compare, fuzzer, timer

__all__ = ["common", "compare", "fuzzer", "timer"]
