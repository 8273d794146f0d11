"""Another way to the containers, under PyTorch's name."""

from ..containers import ModuleDict, ModuleList, Sequential
from ..parameter_containers import ParameterDict, ParameterList

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]
