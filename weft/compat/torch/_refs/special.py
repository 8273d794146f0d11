"""`torch._refs.special`: the functions of `torch.special`."""

from weft.core.names import ROOT

from . import references

__getattr__ = references(__name__, f"{ROOT}.special")
