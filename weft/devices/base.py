"""The interface of a device: what the rest of weft asks of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..core import device

if TYPE_CHECKING:
    from ..core.dtype import DType
    from ..core.storage import Storage
    from ..engine.kernel import Launch, ReduceLaunch
    from ..engine.loops import Result
    from ..engine.monoid import Monoid


class Backend(ABC):
    """Allocates memory, moves bytes and prepares kernels on one device."""

    has_memory: bool

    @abstractmethod
    def allocate(self, nbytes: int) -> Storage:
        """A new Storage with uninitialised bytes, aligned to 64."""

    @abstractmethod
    def allocator(self, nbytes: int) -> Callable[[], Storage]:
        """A function that allocates `nbytes`, for plans that allocate the same again and again."""

    @abstractmethod
    def copy_bytes(self, target: int, source: int, nbytes: int) -> None:
        """Copy between two addresses of this device; the ranges may overlap."""

    @abstractmethod
    def prepare(
        self,
        results: Sequence[Result],
        operand_dtypes: Sequence[DType],
        params: Sequence[DType],
        sizes: Sequence[int],
        strides: Sequence[Sequence[int]],
    ) -> Launch:
        """A map over `sizes` (outermost dim first), ready to be called with addresses and scalars.

        Units: strides in bytes, one row for each result, then each operand.
        """

    @abstractmethod
    def prepare_reduction(
        self,
        monoid: Monoid,
        operand_dtypes: Sequence[DType],
        params: Sequence[DType],
        kept: tuple[Sequence[int], Sequence[Sequence[int]]],
        reduced: tuple[Sequence[int], Sequence[Sequence[int]]],
        outer: bool,
    ) -> ReduceLaunch:
        """A reduction, ready to be called with addresses and scalars.

        `kept` and `reduced` are (sizes, strides in bytes per operand), outermost dim first; results come before
        inputs in `kept`, and `reduced` has inputs only. `outer`: the fastest dim of the input is a kept one.
        """

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all work given to the device is done."""


# The annotations of `device` name this class. `typing.get_type_hints` looks names up in the module's namespace.
vars(device)["Backend"] = Backend
