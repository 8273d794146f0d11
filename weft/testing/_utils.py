"""`torch.testing._utils`: random operations with the same numbers in each call."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import weft

from ..utils._mode_utils import no_dispatch


def wrapper_set_seed(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`op(*args, **kwargs)` with the seed 42, and the state of the generator as it was before."""
    with freeze_rng_state():
        weft.manual_seed(42)
        return op(*args, **kwargs)


@contextlib.contextmanager
def freeze_rng_state() -> Iterator[None]:
    """Give the default generator its state back at the end. Modes do not see that."""
    with no_dispatch():
        state = weft.get_rng_state()
    try:
        yield
    finally:
        with no_dispatch():
            weft.set_rng_state(state)
