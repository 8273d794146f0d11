"""Defines PyTorch's name for the module of containers, `weft.nn.containers`."""

from ...core.names import name_public
from ..containers import Container, ModuleDict, ModuleList, Sequential
from ..parameter_containers import ParameterDict, ParameterList

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]

name_public(__name__, "nn.containers", "nn.parameter_containers")
