"""`torch._refs.nn.functional`: the functions of `torch.nn.functional`."""

from weft.core.names import ROOT

from .. import references

__getattr__ = references(__name__, f"{ROOT}.nn.functional")
