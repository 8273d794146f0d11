"""`torch.nn.parallel.comm`: tensors copied among GPUs, of which there are none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from ...core.tensor import Tensor


def check_gpus(devices: Iterable[Any]) -> None:
    """Raise ValueError for a device that is not a GPU; numbers count GPUs."""
    for device in devices:
        kind = getattr(device, "type", device)
        if isinstance(kind, str) and kind.startswith("cpu"):
            raise ValueError(f"Expected a non cpu device, but got: {device}")


def _no_gpu(name: str) -> NoReturn:
    raise RuntimeError(
        f"torch.nn.parallel.comm.{name}: no GPU is available: torch.cuda.is_available() is False"
    )


def broadcast(tensor: Tensor, devices: Sequence[Any] | None = None, *, out: Any = None) -> Any:
    """Return copies of a tensor on several GPUs."""
    if (devices is None) == (out is None):
        raise RuntimeError(
            f"Exactly one of 'devices' and 'out' must be specified, but got devices={devices} and out={out}"
        )
    check_gpus(devices or ())
    _no_gpu("broadcast")


def broadcast_coalesced(
    tensors: Sequence[Tensor], devices: Sequence[Any], buffer_size: int = 10485760
) -> Any:
    """Return copies of several tensors on several GPUs."""
    check_gpus(devices)
    _no_gpu("broadcast_coalesced")


def reduce_add(inputs: Sequence[Tensor], destination: Any = None) -> Tensor:
    """Return the sum of tensors on several GPUs."""
    for place, tensor in enumerate(inputs):
        assert tensor.device.type != "cpu", (
            f"reduce_add expects all inputs to be on GPUs, but input {place} is on CPU"
        )
    _no_gpu("reduce_add")


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]], destination: Any = None, buffer_size: int = 10485760
) -> Any:
    """`reduce_add` of several tensors."""
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
    """Return the parts of a tensor on several GPUs."""
    check_gpus(devices or ())
    _no_gpu("scatter")


def gather(tensors: Sequence[Tensor], dim: int = 0, destination: Any = None, *, out: Any = None) -> Tensor:
    """Return tensors on several GPUs joined into one."""
    _no_gpu("gather")
