"""Settings of all pipes of a graph: who reads which part, and seeds."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

from ... import empty, int64
from ...core.warn import user_level
from .datapipes.iter.sharding import SHARDING_PRIORITIES, _ShardingIterDataPipe
from .graph import traverse_dps

__all__ = [
    "apply_random_seed", "apply_sharding", "apply_shuffle_seed", "apply_shuffle_settings", "get_all_graph_pipes",
]  # fmt: skip


def get_all_graph_pipes(graph: dict) -> list[Any]:
    """Return the pipes of what `traverse_dps` gave, each once."""
    found: dict[int, Any] = {}
    for key, (pipe, parts) in graph.items():
        found.setdefault(key, pipe)
        for each in get_all_graph_pipes(parts):
            found.setdefault(id(each), each)
    return list(found.values())


def apply_sharding(
    datapipe: Any, num_of_instances: int, instance_id: int, sharding_group: Any = SHARDING_PRIORITIES.DEFAULT
) -> Any:
    """Let every `sharding_filter` know that this is number `instance_id` of `num_of_instances`.

    Raises: RuntimeError if one of them is made of another.
    """

    def apply(graph: dict, above: Any) -> None:
        for pipe, parts in graph.values():
            shards = isinstance(pipe, _ShardingIterDataPipe) or hasattr(type(pipe), "apply_sharding")
            if shards:
                if above is not None:
                    raise RuntimeError(
                        "Sharding twice on a single pipeline is likely unintended and will cause data loss. Sharding "
                        f"already applied to {above} while trying to apply to {pipe}"
                    )
                # Pipes of before PyTorch 2.0 take no group.
                group = (
                    (sharding_group,) if len(inspect.signature(pipe.apply_sharding).parameters) > 2 else ()
                )
                pipe.apply_sharding(num_of_instances, instance_id, *group)
            apply(parts, pipe if shards else above)

    apply(traverse_dps(datapipe), None)
    return datapipe


def _shuffles(pipe: Any) -> bool:
    return hasattr(type(pipe), "set_shuffle") and hasattr(type(pipe), "set_seed")


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Switch every `shuffle` on or off; None leaves them as they are. True without one appends one."""
    if shuffle is None:
        return datapipe
    found = [pipe for pipe in get_all_graph_pipes(traverse_dps(datapipe)) if _shuffles(pipe)]
    if shuffle and not found:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. Be aware that "
            "the default buffer size might not be sufficient for your task.",
            stacklevel=user_level(),
        )
        datapipe = datapipe.shuffle()
        found = [datapipe]
    for pipe in found:
        pipe.set_shuffle(shuffle)
    return datapipe


def apply_shuffle_seed(datapipe: Any, rng: Any) -> Any:
    """`apply_random_seed`, by its old name."""
    warnings.warn(
        "`apply_shuffle_seed` is deprecated since 1.12 and will be removed in the future releases.\nPlease use "
        "`apply_random_seed` instead.",
        FutureWarning,
        stacklevel=user_level(),
    )
    return apply_random_seed(datapipe, rng)


def apply_random_seed(datapipe: Any, rng: Any) -> Any:
    """Give every pipe that draws numbers a seed from a generator."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if callable(getattr(type(pipe), "set_seed", None)):
            pipe.set_seed(int(empty((), dtype=int64).random_(generator=rng).item()))
    return datapipe
