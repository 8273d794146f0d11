"""Matrix products: shapes, dtypes and copies; the device computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.dispatch import PLAIN, watched, watchers
from ..core.dtype import (
    LEGACY_NAMES,
    bool_,
    compute_type,
)
from ..core.grad_mode import mode
from ..core.iteration import broadcast_shapes
from ..core.op import Op
from ..core.plans import PlanCache
from ..core.recording import new_recorder, unrecorded
from ..core.spec import Spec, contiguous_spec
from ..core.templates import Late
from ..core.tensor import Tensor, empty, make
from ..engine import blas
from ..engine.kernel import Launch
from .map import COPY, common_device

BLAS_DTYPES = tuple(blas.LETTERS)


class Plan(Late):
    """The result's spec, the launch that computes it, and the op that autograd records.

    `entry(result, a, b, meta, count)` takes addresses. It is None for operands that first must be copied: to `readable`.
    """

    __slots__ = ("spec", "allocate", "entry", "meta", "count", "keepalive", "readable", "step", "record")
    LATE = (
        "keepalive",
        "readable",
    )

    def __init__(
        self, spec: Spec, allocate: Callable, launch: Launch, readable: tuple[Spec, Spec], step: Product
    ):
        self.spec, self.allocate = spec, allocate
        # Not unpacked, because a launch that is chosen for each plan has attributes only (`core.symbols.Later`).
        self.entry, self.meta = launch.entry, launch.meta
        self.count, self.keepalive = launch.count, launch.keepalive
        self.readable, self.step = readable, step
        self.record: Callable | None = None  # made when the first call is recorded


class Product(Op):
    """`a @ b` as NumPy and PyTorch define it: vectors, matrices, and stacks of matrices that broadcast.

    `check(a, b)` raises the public function's errors, with its messages; `refusal` names the function
    in the message for bools. `step(a, b)` says which product autograd records in its place, if not itself.
    `wide`: the product of narrow floats is not rounded to their dtype, so that something can be added to it first.
    """

    def __init__(
        self,
        name: str,
        check: Callable[[Spec, Spec], None],
        refusal: str,
        derivative: Any = None,
        *,
        node_name: str | None = None,
        step: Callable[[Spec, Spec], Product] | None = None,
        wide: bool = False,
    ):
        super().__init__(name, derivative, node_name)
        self.check, self.refusal, self.step, self.wide = check, refusal, step, wide
        self.plans = PlanCache(self._plan)

    def run(self, a: Tensor, b: Tensor) -> Tensor:
        plan = self.plans[a.spec, b.spec]
        result = make(plan.allocate(), 0, plan.spec)
        self._run(plan, result, a, b)
        if (a._autograd is not None or b._autograd is not None) and mode.enabled:
            (plan.record or new_recorder(plan, plan.step, result, (a, b)))(result, a, b)
        return result

    def write(self, target: Tensor, a: Tensor, b: Tensor) -> None:
        """Write the product into a tensor that is like the result.

        Raises: RuntimeError if it is not.
        """
        if watchers and watched(self, "write", (target, a, b), {}) is not PLAIN:
            return
        plan = self.plans[a.spec, b.spec]
        if target.spec is not plan.spec:
            raise RuntimeError(
                f"{self.name}: the product of shape {list(plan.spec.shape)} does not go into a tensor of shape "
                f"{list(target.spec.shape)} with strides {list(target.spec.stride)}"
            )
        self._run(plan, target, a, b)

    def write_alone(self, target: Tensor, a: Any, b: Any = None) -> bool:
        """Write the product into the tensor given as `out=`, if nothing else is to be done; whether it was."""
        if not (type(target) is type(a) is type(b) is Tensor) or watchers or target._autograd is not None:
            return False
        plan = self.plans[a.spec, b.spec]
        if target.spec is not plan.spec or plan.entry is None or target._storage in (a._storage, b._storage):
            return False
        target._storage.version += 1  # first, because it may raise
        self._run(plan, target, a, b)
        return True

    def _run(self, plan: Plan, result: Tensor, a: Tensor, b: Tensor) -> None:
        if plan.entry is None:
            self._after_copies(plan, result, a, b)
        else:
            plan.entry(
                result._storage.ptr + result._byte_offset,
                a._storage.ptr + a._byte_offset,
                b._storage.ptr + b._byte_offset,
                plan.meta,
                plan.count,
            )

    def _plan(self, a: Spec, b: Spec) -> Plan:
        self.check(a, b)
        if not a.shape or not b.shape or a.shape[-1] != b.shape[-2:][0] or a.dtype is not b.dtype:
            raise RuntimeError(
                f"{self.name}: {a.dtype} {list(a.shape)} and {b.dtype} {list(b.shape)} have no product"
            )
        if a.dtype is bool_ and a.numel and b.numel:
            raise NotImplementedError(f"\"{self.refusal}\" not implemented for '{LEGACY_NAMES[a.dtype]}'")
        where = common_device(self.name, (a, b))
        try:
            batch = broadcast_shapes(self.name, a.shape[:-2], b.shape[:-2])
        except RuntimeError as error:
            raise RuntimeError(
                f"{error}\nof batches of matrices: {list(a.shape)} @ {list(b.shape)}"
            ) from None
        columns = b.shape[-1:] if len(b.shape) > 1 else ()
        dtype = compute_type(a.dtype) if self.wide else a.dtype
        result = contiguous_spec((*batch, *a.shape[-2:-1], *columns), dtype, where)
        step = self.step(a, b) if self.step else self
        readable = (a, b)
        if result.numel == 0:
            launch = Launch(_nothing, 0, 0, None)
        else:
            readable = where.backend.product_operands(a, b)
            launch = (
                where.backend.prepare_product(a, b, result)
                if readable == (a, b)
                else Launch(None, 0, 0, None)
            )
        return Plan(result, where.backend.allocator(result.nbytes), launch, readable, step)

    def _after_copies(self, plan: Plan, result: Tensor, a: Tensor, b: Tensor) -> None:
        """First bring the operands into a dtype and memory order that BLAS takes; round once at the end."""
        with unrecorded():
            a, b = (
                operand if operand.spec is spec else COPY.write(empty(spec), operand)
                for operand, spec in zip((a, b), plan.readable, strict=True)
            )
            if a.spec.dtype is result.spec.dtype:
                self.write(result, a, b)
            else:
                COPY.write(result, self(a, b))


def _nothing(result: int, a: int, b: int, meta: int, count: int) -> None:
    pass
