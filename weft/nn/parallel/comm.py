"""`torch.nn.parallel.comm`: tensors copied among the devices of the accelerator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...core.device import accelerator, current_index, device, device_index
from ...core.tensor import Tensor
from ...ops.assembly.joining import cat
from ...ops.views.splitting import chunk, split


def gpu(place: Any, name: str) -> device:
    """The device that a number, a string or a device means; None is the current one.

    Raises: ValueError for the CPU, RuntimeError without an accelerator, naming the function.
    """
    index = device_index(place, optional=True)
    kind = accelerator()
    if kind is None:
        raise RuntimeError(
            f"torch.nn.parallel.comm.{name}: no GPU is available: torch.cuda.is_available() is False"
        )
    return device(kind, current_index(kind) if index is None else index)


def check_gpus(devices: Iterable[Any]) -> None:
    """Raise ValueError for a device that is not a GPU; numbers count GPUs."""
    for each in devices:
        device_index(each)


def broadcast(tensor: Tensor, devices: Sequence[Any] | None = None, *, out: Any = None) -> Any:
    """Return copies of a tensor on several GPUs, or write it into the tensors `out`. The tensor itself stands for a copy on its own GPU.

    Raises: RuntimeError for both or none of `devices` and `out` and without a GPU, ValueError for the CPU.
    """
    if (devices is None) == (out is None):
        raise RuntimeError(
            f"Exactly one of 'devices' and 'out' must be specified, but got devices={devices} and out={out}"
        )
    if out is not None:
        for each in out:
            each.copy_(tensor)
        return tuple(out)
    check_gpus(devices or ())
    return tuple(tensor.to(gpu(each, "broadcast")) for each in devices or ())


def broadcast_coalesced(
    tensors: Sequence[Tensor], devices: Sequence[Any], buffer_size: int = 10485760
) -> Any:
    """Return for each GPU copies of several tensors; `buffer_size` changes nothing."""
    check_gpus(devices)
    places = [gpu(each, "broadcast_coalesced") for each in devices]
    return [[tensor.to(place) for tensor in tensors] for place in places]


def reduce_add(inputs: Sequence[Tensor], destination: Any = None) -> Tensor:
    """Return the sum of tensors on several GPUs, on one of them, by default the current one.

    Raises: AssertionError for tensors on the CPU, ValueError for different sizes, RuntimeError unless one is on `destination`.
    """
    for place, tensor in enumerate(inputs):
        assert tensor.device.type != "cpu", (
            f"reduce_add expects all inputs to be on GPUs, but input {place} is on CPU"
        )
        if tensor.shape != inputs[0].shape:
            got, expected = ("x".join(map(str, each.shape)) for each in (tensor, inputs[0]))
            raise ValueError(f"input {place} has invalid size: got {got}, but expected {expected}")
    target = gpu(destination, "reduce_add")
    root = next((each for each in inputs if each.device == target), None)
    if root is None:
        raise RuntimeError("reduce_add expects destination to be on the same GPU with one of the tensors")
    result = root
    for each in inputs:
        if each is not root:
            result = result + each.to(target)
    return result


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]], destination: Any = None, buffer_size: int = 10485760
) -> Any:
    """`reduce_add` of several tensors; `buffer_size` changes nothing."""
    return tuple(reduce_add(tensors, destination) for tensors in zip(*inputs))


def scatter(
    tensor: Tensor,
    devices: Sequence[Any] | None = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Any = None,
    *,
    out: Any = None,
) -> Any:
    """Return the parts of a tensor along a dim on several GPUs, or write them into the tensors `out`.

    The parts have the sizes `chunk_sizes`, else those of `torch.chunk`. `streams` changes nothing.

    Raises: RuntimeError for both or none of `devices` and `out` and without a GPU, ValueError for the CPU.
    """
    if (devices is None) == (out is None):
        raise RuntimeError(
            f"Exactly one of 'devices' and 'out' must be specified, but got devices={devices} and out={out}"
        )
    if out is not None:
        for target, part in zip(out, split(tensor, [each.shape[dim] for each in out], dim), strict=True):
            target.copy_(part)
        return tuple(out)
    check_gpus(devices or ())
    places = [gpu(each, "scatter") for each in devices or ()]
    parts = chunk(tensor, len(places), dim) if chunk_sizes is None else split(tensor, list(chunk_sizes), dim)
    return tuple(part.to(place) for part, place in zip(parts, places, strict=False))


def gather(tensors: Sequence[Tensor], dim: int = 0, destination: Any = None, *, out: Any = None) -> Tensor:
    """Return tensors on several GPUs joined along a dim on one device, by default the current GPU; "cpu" is the host.

    Raises: RuntimeError for both `destination` and `out`, and without a GPU.
    """
    if out is not None:
        if destination is not None:
            raise RuntimeError(
                f"'destination' must not be specified when 'out' is specified, but got destination={destination}"
            )
        return out.copy_(gather(tensors, dim, out.device))
    is_host = getattr(destination, "type", destination) == "cpu"
    target = device("cpu") if is_host else gpu(destination, "gather")
    return cat([each.to(target) for each in tensors], dim)
