"""CommDebugMode: which collectives a program calls, by module."""

from __future__ import annotations

import json
import re
import threading
from collections import defaultdict
from contextlib import ExitStack
from typing import Any

from ....core.dispatch import PLAIN, unwatch, watch
from ....families.traced import Traced
from ....library.namespaces import OpOverloadPacket, ops
from ....profiler.operator_names import name_of_op
from ..._group import COLLECTIVES
from ..._observers import observe
from ..._operators import FUNCTIONAL
from .._rules import tensors_in
from .._storage import is_distributed, sharded
from ._comm_report import CommReport
from ._module_tracker import ROOT, CommModuleTracker

__all__ = ["CommDebugMode"]

# Messages, barriers and waits are no collectives.
_OTHERS = {"barrier", "monitored_barrier_", "send", "recv_", "recv_any_source_", "wait_tensor"}
_ESCAPES = re.compile(r"\033\[[0-9;]*m")


def _counted() -> dict[str, OpOverloadPacket]:
    """The operators that are counted, each with the one that it counts as: functional collectives as those of `c10d_functional`."""
    return {
        **{
            f"_c10d_functional::{name}": getattr(ops.c10d_functional, name)
            for name in FUNCTIONAL.keys() - _OTHERS
        },
        **{f"c10d::{name}": getattr(ops.c10d, name) for name in {*COLLECTIVES.values()} - _OTHERS},
        "_dtensor::shard_dim_alltoall": ops._dtensor.shard_dim_alltoall,
    }


class _Counts(defaultdict):
    """By module: by "forward" or "backward": by operator."""

    def __init__(self) -> None:
        super().__init__(lambda: {"forward": defaultdict(int), "backward": defaultdict(int)})


class CommDebugMode:
    """A context that counts the collectives that the program calls, all of them and by module.

    Those of DTensors and of `torch.distributed._functional_collectives` are operators of `torch.ops.c10d_functional`, those of `torch.distributed` and of
    DistributedDataParallel and `fully_shard` operators of `torch.ops.c10d`. Only calls of the thread that entered the context count; barriers and messages do not.
    The operations in tables are those that weft computes with, under the names that profiles have.

    >>> import weft as torch
    >>> from weft.distributed.tensor import Replicate, Shard, distribute_tensor
    >>> from weft.distributed.tensor.debug import CommDebugMode
    >>> torch.distributed.init_process_group("fake", rank=0, world_size=4)
    >>> mesh = torch.distributed.init_device_mesh("cpu", (4,))
    >>> x = distribute_tensor(torch.ones(4, 6), mesh, [Shard(0)])
    >>> with CommDebugMode() as counted:
    ...     _ = x.redistribute(mesh, [Replicate()])
    >>> counted.get_comm_counts()[torch.ops.c10d_functional.all_gather_into_tensor], counted.get_total_counts()
    (1, 1)
    >>> torch.distributed.destroy_process_group()
    """

    def __init__(self) -> None:
        self.comm_counts: dict[Any, int] = defaultdict(int)
        self.comm_module_counts: dict[str, dict[str, dict[Any, int]]] = _Counts()
        self.comm_module_operation_counts: dict[str, dict[str, list]] = {}
        self.advanced_module_tracker = CommModuleTracker()
        self._counted = _counted()
        self.comm_registry = set(self._counted.values())
        self._thread = 0
        self._stack = ExitStack()

    # ---- Results

    def get_total_counts(self) -> int:
        """Return how many collectives were called."""
        return sum(self.comm_counts.values())

    def get_comm_counts(self) -> dict[Any, int]:
        """Return how often each operator was called, by operators such as `torch.ops.c10d.allreduce_`; 0 for others."""
        return self.comm_counts

    def get_parameter_info(self) -> dict[str, dict[str, Any]]:
        """Return the parameters of each module that ran, by module and name."""
        return self.advanced_module_tracker.module_parameters_dict

    def get_sharding_info(self) -> dict[str, Any]:
        """Return the placements of the parameters that are DTensors, by module and name, `Net.layer.weight`."""
        return self.advanced_module_tracker.sharding_dict

    def generate_comm_debug_tracing_table(self, noise_level: int = 3) -> str:
        """Return a table of modules with their collectives and operations, with colours for terminals.

        Args:
            noise_level: 0 shows collectives; 1 also the types and parameters of modules, and operations of DTensors; 2 also other
                operations; 3 also views and conversions.
        """
        return self._report(noise_level).table()

    def log_comm_debug_tracing_table_to_file(
        self, file_name: str = "comm_mode_log.txt", noise_level: int = 3
    ) -> None:
        """Write the table into a file, without colours.

        Args:
            file_name: the file, which is overwritten.
            noise_level: as of `generate_comm_debug_tracing_table`.
        """
        with open(file_name, "w") as file:
            file.write(_ESCAPES.sub("", self.generate_comm_debug_tracing_table(noise_level)))

    def generate_json_dump(self, file_name: str = "comm_mode_log.json", noise_level: int = 3) -> None:
        """Write modules, collectives and operations into a JSON file, of which PyTorch's viewer makes a page.

        Args:
            file_name: the file, which is overwritten.
            noise_level: as of `generate_comm_debug_tracing_table`.
        """
        with open(file_name, "w") as file:
            json.dump(self._report(noise_level).tree(), file, indent=4)

    def _report(self, noise_level: int) -> CommReport:
        operations = {
            name: found["operations_list"] for name, found in self.comm_module_operation_counts.items()
        }
        return CommReport(self.advanced_module_tracker, self.comm_module_counts, operations, noise_level)

    def __repr__(self) -> str:
        return f"CommDebugMode(get_total_counts()={self.get_total_counts()})"

    # ---- The context

    def __enter__(self) -> CommDebugMode:
        self.comm_counts.clear()
        self.comm_module_counts.clear()
        self.comm_module_counts[ROOT]
        self.comm_module_operation_counts.clear()
        self._thread = threading.get_ident()
        with ExitStack() as stack:
            # DTensors are watched from now on, so that this context sees their operations first, and those on parts afterwards.
            sharded.note(tensors := _Watching())
            stack.callback(lambda: tensors)
            watch(self._computes, plain=True)
            stack.callback(unwatch, self._computes)
            stack.enter_context(self.advanced_module_tracker)
            stack.enter_context(observe(self._communicates))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.close()

    def _communicates(self, name: str) -> None:
        """Observer of collectives."""
        self._add_operation(name, ())
        packet = self._counted.get(name)
        if packet is None:
            return
        tracker = self.advanced_module_tracker
        self.comm_counts[packet] += 1
        for module in {tracker.name, *tracker.module_parents_dict[tracker.name]}:
            self.comm_module_counts[module]["backward" if tracker.is_bw else "forward"][packet] += 1

    def _computes(self, op: Any, method: str, args: tuple, static: dict[str, Any]) -> Any:
        """Watcher of ops, which notes them and lets them pass."""
        if threading.get_ident() == self._thread and not any(type(each) is Traced for each in args):
            tensors = [each for each in tensors_in((args, static.values())) if is_distributed(each)]
            self._add_operation(name_of_op(op, method, args), tensors)
        return PLAIN

    def _add_operation(self, name: str, tensors: Any) -> None:
        tracker = self.advanced_module_tracker
        found = self.comm_module_operation_counts.setdefault(tracker.name, {"operations_list": []})
        found["operations_list"].append(
            {
                "name": name.replace("::", "."),
                "input_shape": [each.shape for each in tensors],
                "input_sharding": [each.placements for each in tensors],
                "device_mesh": str(tensors[0].device_mesh) if tensors else "",
                "is_bw": tracker.is_bw,
                "is_activation_checkpointing": tracker.activation_checkpointing,
            }
        )


class _Watching:
    """Lives as long as DTensors are to be watched."""
