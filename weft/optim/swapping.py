"""A context in which an optimizer updates other parameters."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from ..core.tensor import Tensor
from .optimizer import Optimizer


@contextlib.contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Within the context, `optimizer` has these parameters, in its order, and the state of this state dictionary.

    Steps write into the tensors of the state. State that a step creates is dropped at the end.
    Raises: RuntimeError if the optimizer has no state yet, or groups and parameters do not correspond.
    """
    name = "swap_in_optimizer_params_and_state"
    if not optimizer.state:
        raise RuntimeError(f"{name} requires initialized optimizer state.")
    groups = swapin_optim_state["param_groups"]
    if len(groups) != len(optimizer.param_groups):
        raise RuntimeError(
            "swapin_optim_state has a different number of parameter groups than the live optimizer."
        )
    given = iter(swapin_parameters.values())
    owners: dict[int, Tensor] = {}
    swapped = []
    for number, (mine, theirs) in enumerate(zip(optimizer.param_groups, groups)):
        if len(mine["params"]) != len(theirs["params"]):
            raise RuntimeError(
                f"swapin_optim_state param group {number} has a different number of params than the live optimizer "
                "param group."
            )
        params = [param for _, param in zip(mine["params"], given)]
        if len(params) != len(mine["params"]):
            raise RuntimeError(
                f"{name} requires the explicit parameter state to match optimizer.param_groups ordering."
            )
        owners.update(zip(theirs["params"], params))
        swapped.append({**theirs, "params": params})
    state = swapin_optim_state["state"].items()
    own = optimizer.state, optimizer.param_groups
    optimizer.state = defaultdict(dict, {owners.get(key, key): dict(value) for key, value in state})
    optimizer.param_groups = swapped
    try:
        yield
    finally:
        optimizer.state, optimizer.param_groups = own
