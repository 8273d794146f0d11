"""`torch._refs.nn`: references of the functions of layers."""

from . import functional
