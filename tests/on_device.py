"""Calls on the device under test beside the CPU: the reference device, or the one that TESTED_DEVICE names."""

import os

import weft

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
