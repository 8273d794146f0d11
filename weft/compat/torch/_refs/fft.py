"""`torch._refs.fft`: the functions of `torch.fft`."""

from weft.core.names import ROOT

from . import references

__getattr__ = references(__name__, f"{ROOT}.fft")
