"""`torch_xla.core.xla_model`: the devices, and when what is pending on them runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from ....core.device import device
from ....core.pytree import tree_map
from ....core.tensor import Tensor
from ....devices.xla import device_count, started
from ....ops.creation.random import get_rng_state as _state_of_cpu
from ....ops.creation.random import manual_seed
from ....ops.creation.random import set_rng_state as _set_state_of_cpu
from ....serialization import save as _save
from .. import runtime

REDUCE_SUM, REDUCE_MUL, REDUCE_AND, REDUCE_OR, REDUCE_MIN, REDUCE_MAX = (
    "sum",
    "mul",
    "and",
    "or",
    "min",
    "max",
)

_closures: list[tuple[Callable, tuple]] = []
steps = 0  # calls of `mark_step`


# ---- Devices ---------------------------------------------------------------------------------------------------------


def xla_device(n: int | None = None, devkind: str | None = None) -> device:
    """The device with a number, or the current one.

    Raises: RuntimeError if there is no such device.
    """
    found = device("xla", n).place
    _ = found.backend  # which raises if there is none
    if devkind is not None and devkind != xla_device_hw(found):
        raise RuntimeError(f"No {devkind} devices: {found} is a {xla_device_hw(found)}")
    return found


def set_replication(device: Any, devices: Any) -> None:
    """Say which devices compute the same. weft's programs use one, so there is nothing to do."""


def get_xla_supported_devices(devkind: str | None = None, max_devices: int | None = None) -> list[str]:
    """The names of all devices, or of those of a kind: "CPU", "GPU" or "TPU"."""
    names = [f"xla:{number}" for number in range(device_count())]
    found = [name for name in names if devkind is None or devkind == xla_device_hw(name)]
    return found[:max_devices] if max_devices else found


def xla_device_hw(device: Any) -> str:
    """What computes on a device: "CPU", "GPU" or "TPU"."""
    import jax

    return jax.local_devices()[_as_device(device).index or 0].platform.upper()


def xla_real_devices(devices: Sequence[Any] | None = None) -> list[str]:
    """The kind of each device with its number: ["CPU:0"]."""
    chosen = get_xla_supported_devices() if devices is None else devices
    return [f"{xla_device_hw(each)}:{_as_device(each).index or 0}" for each in chosen]


def _as_device(value: Any) -> device:
    return value if isinstance(value, device) else device(value)


def is_xla_tensor(tensor: Tensor) -> bool:
    """Whether a tensor is on an XLA device."""
    return tensor.device.type == "xla"


# ---- This process among all ------------------------------------------------------------------------------------------


def get_ordinal(defval: int = 0) -> int:
    """The number of this process."""
    return runtime.global_ordinal()


def get_local_ordinal(defval: int = 0) -> int:
    """The number of this process on its computer."""
    return runtime.local_ordinal()


def xrt_world_size(defval: int = 1) -> int:
    """How many processes share the work."""
    return runtime.world_size()


def is_master_ordinal(local: bool = True) -> bool:
    """Whether this process is the first one."""
    return True


def master_print(*args: Any, fd: TextIO | None = None, local: bool = False, flush: bool = False) -> None:
    """Print, in the first process only."""
    print(*args, file=sys.stdout if fd is None else fd, flush=flush)


def rendezvous(tag: str, payload: bytes = b"", replicas: Sequence[int] = ()) -> list[bytes]:
    """Wait for all processes, and return what each of them gave."""
    return [payload]


def mesh_reduce(tag: str, data: Any, reduce_fn: Callable[[list], Any]) -> Any:
    """What a function makes of the data of all processes."""
    return reduce_fn([data])


def reduce_gradients(optimizer: Any, groups: Any = None, pin_layout: bool = True) -> None:
    """Add the gradients of all processes."""


def all_reduce(
    reduce_type: str, inputs: Any, scale: float = 1.0, groups: Any = None, pin_layout: bool = True
) -> Any:
    """Combine tensors over all processes, of which there is one, and multiply them by `scale`: a list in place, a single one in a new tensor."""
    if isinstance(inputs, Tensor):
        return inputs * scale
    if scale != 1.0:
        for each in inputs:
            each.mul_(scale)
    return None


def _fetch_gradients(optimizer: Any) -> list[Tensor]:
    """The gradients of an optimizer's parameters, for libraries that add them up themselves."""
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    return [each.grad for each in parameters if each.grad is not None]


# ---- Steps -----------------------------------------------------------------------------------------------------------


def counts() -> tuple[int, int]:
    """How many graphs have run on all devices, and how many were compiled for that."""
    runners = [each.runner for each in started()]
    return sum(each.runs for each in runners), sum(each.compilations for each in runners)


def mark_step(wait: bool = False, reset_scope: bool = True) -> None:
    """Run what is pending on all devices, then the closures of `add_step_closure`. With `wait`, until it is done."""
    global steps
    steps += 1
    for backend in started():
        backend.flush()
        if wait:
            backend.synchronize()
    closures = _closures[:]
    _closures.clear()
    for closure, args in closures:
        closure(*args)


def add_step_closure(closure: Callable, args: tuple = (), run_async: bool = False) -> None:
    """Call a function after the next step."""
    _closures.append((closure, args))


def wait_device_ops(devices: Sequence[str] = ()) -> None:
    """Wait until the work of the devices is done; of all without names."""
    for backend in started():
        if not devices or str(backend.device) in devices:
            backend.synchronize()


def unlazy(tensors: Sequence[Tensor]) -> None:
    """Compute tensors, together with all that is pending."""
    wait_device_ops()


def optimizer_step(
    optimizer: Any,
    barrier: bool = False,
    optimizer_args: dict | None = None,
    groups: Any = None,
    pin_layout: bool = True,
) -> Any:
    """What `optimizer.step(**optimizer_args)` returns. With `barrier`, what is pending runs."""
    loss = optimizer.step(**(optimizer_args or {}))
    if barrier:
        mark_step()
    return loss


# ---- Numbers and files -----------------------------------------------------------------------------------------------


def get_rng_state(device: Any = None) -> int:
    """The state of the random numbers, as an integer. All devices draw from the CPU's generator."""
    return int.from_bytes(bytes(_state_of_cpu().tolist()), "little")


def set_rng_state(seed: int, device: Any = None) -> None:
    """Restore what `get_rng_state` returned, or start from a seed."""
    if seed.bit_length() <= 64:
        manual_seed(seed)
        return
    current = _state_of_cpu()
    state = seed.to_bytes(current.numel(), "little")
    _set_state_of_cpu(current.new_tensor(list(state)))


def save(data: Any, file_or_path: Any, master_only: bool = True, global_master: bool = False) -> None:
    """`torch.save` of the data with all tensors on the CPU."""
    mark_step()
    _save(tree_map(lambda each: each.cpu() if isinstance(each, Tensor) else each, data), file_or_path)


def send_cpu_data_to_device(datas: Any, device: Any, input_sharding: Any = None) -> Any:
    """The data with all tensors on a device."""
    if input_sharding is not None:
        raise NotImplementedError("send_cpu_data_to_device(input_sharding=...)")
    return tree_map(lambda each: each.to(device) if isinstance(each, Tensor) else each, datas)
