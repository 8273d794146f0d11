"""weft with every new tensor on the device that TESTED_DEVICE names, for scripts that import the library under another name.

`PYTHONPATH=tests/devices python opdb.py --impl weft_on_device` runs PyTorch's op database on the reference device, and with
TESTED_DEVICE=cuda on a GPU. What asks for device "cpu" gets the tested device, and a result that is on the CPU nevertheless is an error.
Values come from and go to the host by copies, because the host cannot read the memory of other devices. The indices of `tensor_split` go to
the CPU, because PyTorch takes them from no other device.
"""

import functools
import os
import sys

import weft
from weft.core import device as places

HERE, _, _ = os.environ.get("TESTED_DEVICE", "reference").partition(":")
_from_numpy, _numpy, _parse = weft.from_numpy, weft.Tensor.numpy, places._parse


def from_numpy(array):
    return _from_numpy(array).to(HERE)


@functools.wraps(_numpy)
def numpy(self, *, force=False):
    if self.device is places.CPU:
        raise RuntimeError("this result is on the CPU")
    return _numpy(self.to(places.CPU), force=force)


def parse(type, index):
    name, index = _parse(type, index)
    return HERE if type == "cpu" else name, index


def splitting(split):
    """`tensor_split` with its indices, if they are a tensor, on the CPU."""

    def of_host(value):
        return value.to(places.CPU) if isinstance(value, weft.Tensor) else value

    @functools.wraps(split)
    def complete(tensor, *args, **kwargs):
        return split(tensor, *map(of_host, args), **{name: of_host(each) for name, each in kwargs.items()})

    return complete


if __name__ == "weft_on_device":  # and not when the test runner looks for examples in docstrings
    weft.set_default_device(HERE)
    weft.from_numpy, weft.Tensor.numpy, places._parse = from_numpy, numpy, parse
    weft.tensor_split, weft.Tensor.tensor_split = map(
        splitting, (weft.tensor_split, weft.Tensor.tensor_split)
    )
    sys.modules[__name__] = weft
