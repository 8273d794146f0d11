"""Calls on the device under test beside the CPU: the reference device, or the one that TESTED_DEVICE names."""

import os

import weft
from weft.ops.linalg.lapack import MatrixOp

HERE = os.environ.get("TESTED_DEVICE", "reference:0")


def on_device(value):
    return value.to(HERE) if isinstance(value, weft.Tensor) else value


def check(function, *arguments, exactly=False):
    """The function gives on the device what it gives on the CPU, and its tensors stay on the device."""
    expected = function(*arguments)
    results = function(*map(on_device, arguments))
    single = isinstance(expected, weft.Tensor)
    for result, wanted in zip(
        (results,) if single else results, (expected,) if single else expected, strict=True
    ):
        assert result.device == weft.device(HERE)
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
        weft.testing.assert_close(
            result.cpu(), wanted, rtol=0 if exactly else None, atol=0 if exactly else None
        )


def refuse_matrices_of_the_host(monkeypatch):
    """On a device with kernels for matrices, let an op on matrices fail that is computed on arrays of the host."""
    if "pivoting" not in weft.device(HERE).backend.extras:
        return
    on_arrays = MatrixOp._on_arrays

    def refuse(self, tensors, static):
        assert tensors[0].device.type == "cpu" or not tensors[0].numel(), (
            f"{self.name} is computed on the host"
        )
        return on_arrays(self, tensors, static)

    monkeypatch.setattr(MatrixOp, "_on_arrays", refuse)
