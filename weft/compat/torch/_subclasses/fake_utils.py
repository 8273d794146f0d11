"""`torch._subclasses.fake_utils`: a mode that compares each operator with what FakeTensors give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft._prims_common import compare_tensor_meta
from weft.core.pytree import tree_leaves, tree_map_only
from weft.core.tensor import Tensor
from weft.library.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    MetadataMismatchError,
)
from weft.library.python_dispatch import TorchDispatchMode


class CrossRefFakeMode(TorchDispatchMode):
    """A mode that runs each operator on FakeTensors as well, and compares the metadata of the results.

    ignore_op_fn: of an operator, whether it is not compared. check_strides: compare strides, too.
    Raises: MetadataMismatchError if they differ. Operators whose results depend on values are not compared.
    """

    def __init__(
        self, ignore_op_fn: Callable | None = None, *, check_strides: bool = True, **options: Any
    ) -> None:
        super().__init__()
        self.ignore_op_fn, self.check_strides = ignore_op_fn, check_strides

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        expected = (
            None if self.ignore_op_fn is not None and self.ignore_op_fn(func) else _faked(func, args, kwargs)
        )
        result = func(*args, **kwargs)
        if expected is None:
            return result
        for fake, real in zip(tree_leaves(expected), tree_leaves(result), strict=True):
            if isinstance(real, Tensor):
                try:
                    compare_tensor_meta(fake, real, check_strides=self.check_strides)
                except MetadataMismatchError as error:
                    error.add_note(f"while {func} was compared with what FakeTensors give")
                    raise
        return result


def _faked(func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """What an operator gives for FakeTensors; None if that depends on values."""
    mode = FakeTensorMode()
    given, named = tree_map_only(Tensor, mode.from_tensor, (args, kwargs))
    try:
        with mode:
            return func(*given, **named)
    except (DataDependentOutputException, DynamicOutputShapeException):
        return None
