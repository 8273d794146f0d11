"""weft with every new tensor on the reference device, for scripts that import the library under another name.

`PYTHONPATH=tests/devices python opdb.py --impl on_reference` runs PyTorch's op database on it. Values come from and go to the
host by copies, because the host cannot read this device's memory.
"""

import functools
import sys

import weft

_from_numpy, _numpy = weft.from_numpy, weft.Tensor.numpy


def from_numpy(array):
    return _from_numpy(array).to("reference")


@functools.wraps(_numpy)
def numpy(self, *, force=False):
    return _numpy(self.cpu(), force=force)


if __name__ == "on_reference":  # and not when the test runner looks for examples in docstrings
    weft.set_default_device("reference")
    weft.from_numpy, weft.Tensor.numpy = from_numpy, numpy
    sys.modules[__name__] = weft
