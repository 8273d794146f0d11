"""`torch._refs.linalg`: the functions of `torch.linalg`."""

from weft.core.names import ROOT

from . import references

__getattr__ = references(__name__, f"{ROOT}.linalg")
