"""weft with every new tensor on the reference device, for scripts that import the library under another name.

`PYTHONPATH=tests/devices python opdb.py --impl on_reference` runs PyTorch's op database on it. What asks for device "cpu" gets the
reference device, and a result that is on the CPU nevertheless is an error. Values come from and go to the
host by copies, because the host cannot read this device's memory.
"""

import functools
import sys

import weft
from weft.core import device as places

_from_numpy, _numpy, _parse = weft.from_numpy, weft.Tensor.numpy, places._parse


def from_numpy(array):
    return _from_numpy(array).to("reference")


@functools.wraps(_numpy)
def numpy(self, *, force=False):
    if self.device is places.CPU:
        raise RuntimeError("this result is on the CPU")
    return _numpy(self.to(places.CPU), force=force)


def parse(type, index):
    name, index = _parse(type, index)
    return "reference" if name == "cpu" else name, index


if __name__ == "on_reference":  # and not when the test runner looks for examples in docstrings
    weft.set_default_device("reference")
    weft.from_numpy, weft.Tensor.numpy, places._parse = from_numpy, numpy, parse
    sys.modules[__name__] = weft
