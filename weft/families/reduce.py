"""Reduce: the family of reductions. A row says which state one element makes, how two states combine, and what is returned."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from ..core.arguments import boolean, integer, integers
from ..core.checking import dtype as as_dtype
from ..core.dispatch import PLAIN, watched, watchers
from ..core.dtype import FLOAT, LEGACY_NAMES, DType, compute_type
from ..core.grad_mode import mode
from ..core.iteration import MAX_DIMS, broadcast_stride, loop_dims, merge_dims
from ..core.kernel_names import joined, planning
from ..core.plans import PlanCache
from ..core.recording import needs_recording, new_recorder, record
from ..core.size import Size, shape
from ..core.spec import Spec, contiguous_spec
from ..core.symbols import as_float
from ..core.templates import Late
from ..core.tensor import Tensor, make, wrap_dim
from ..engine import fusion
from ..engine.defer import is_deferred, reduced
from ..engine.fusion import Step
from ..engine.kernel import ReduceLaunch
from ..engine.monoid import Monoid
from .map import common_device, scalar_arguments
from .monoid_op import MonoidOp, Types

_new = object.__new__


class Reduce(MonoidOp):
    """A reduction. Besides the parts that every `MonoidOp` has, a row may give

    ordered                                  positions count along the dims in logical order
    counted                                  `finish` gets the number of elements as its only param
    one_dim                                  dim= names a single dim, not several
    check(name, spec, dims, whole)           raises what `direct` should raise; `whole`: all dims, none of them named

    The rules of its derivative get (ct, out, *inputs, dims, keepdim, *params); dims is None if the caller named none, and all
    are meant.
    """

    def __init__(
        self,
        *parts: Any,
        ordered: bool = False,
        counted: bool = False,
        one_dim: bool = False,
        check: Callable[[str, Spec, tuple[int, ...], bool], None] | None = None,
        **options: Any,
    ):
        super().__init__(*parts, **options)
        self.ordered, self.counted, self.one_dim, self.check = ordered, counted, one_dim, check
        self.direct_plans = PlanCache(self._plan_direct)

    # -- planning --------------------------------------------------------------------------------------------------

    def _plan(
        self,
        inputs: tuple[Spec, ...],
        dims: tuple[int, ...],
        keepdim: bool,
        wanted: DType | None,
        params: int,
    ):
        first = inputs[0]
        where = common_device(self.name, inputs)
        types = self.types(first.dtype, wanted)
        sizes = reduced_sizes(first.shape, dims, keepdim)
        results = tuple(contiguous_spec(sizes, dtype, where) for dtype in types.results)
        loops = self._loops(first.shape, dims, keepdim, inputs, results)
        # A gradient that was expanded has stride 0 everywhere, and says nothing about the order of memory.
        model = max(inputs, key=distinct_elements)
        monoid = self._monoid(inputs, types, params)
        launch = self._prepared(first.shape, model, inputs, dims, loops, types, monoid, params)
        allocators = [where.backend.allocator(each.nbytes) for each in results]
        return Plan(results, launch, types.operands, allocators)

    def _loops(
        self,
        sizes: Size,
        dims: tuple[int, ...],
        keepdim: bool,
        operands: Sequence[Spec],
        results: Sequence[Spec],
    ) -> list[tuple]:
        """The loops over the kept and over the reduced dims."""
        kept = [dim for dim in range(len(sizes)) if dim not in dims]
        rows = [byte_strides(each, sizes) for each in operands]
        out_rows = [self._result_rows(result, kept, keepdim) for result in results]
        return [
            self._loop(sizes, kept, [*rows, *out_rows], len(rows), ordered=False),
            self._loop(sizes, dims, rows, len(rows), ordered=self.ordered),
        ]

    @staticmethod
    def _prepared(
        sizes: Size,
        model: Spec,
        operands: Sequence[Spec],
        dims: tuple[int, ...],
        loops: Sequence[tuple],
        types: Types,
        monoid: Monoid,
        params: int,
    ) -> ReduceLaunch:
        """The kernel for elements of `sizes` that lie as those of `model`, and are computed from the operands."""
        kept = [dim for dim in range(len(sizes)) if dim not in dims]
        outer = runs_along_kept(sizes, byte_strides(model, sizes), kept, model.dtype.itemsize)
        numbers = [compute_type(types.operands).to_real()] * params
        dtypes = [each.dtype for each in operands]
        over_kept, over_reduced = loops
        return model.device.backend.prepare_reduction(monoid, dtypes, numbers, over_kept, over_reduced, outer)

    def _plan_direct(self, input: Spec, dim: Any, keepdim: bool, wanted: DType | None):
        """The plan for an argument dim= as users give it, which is checked here, and the number arguments of the kernel."""
        self.types(input.dtype, wanted)  # PyTorch raises the error about the dtype before those about dims
        dims = (single_dim if self.one_dim and dim is not None else dims_of)(dim, len(input.shape), self.name)
        if self.check is not None:
            self.check(self.name, input, dims, dim is None or dim == ())
        numbers = (as_float(math.prod(input.shape[d] for d in dims)),) if self.counted else ()
        plan = self.plans[(input,), dims, keepdim, wanted, len(numbers)]
        static = (None if dim is None else dims, keepdim, *numbers)
        fused = None
        if is_deferred(input) and plan.results[0].numel:
            fused = functools.partial(self._fused, input, dims, keepdim, wanted, len(numbers))
        return DirectPlan(self.name, plan, dims, numbers, static, fused)

    def _fused(
        self,
        input: Spec,
        dims: tuple[int, ...],
        keepdim: bool,
        wanted: DType | None,
        params: int,
        steps: Sequence[Step],
    ) -> ReduceLaunch:
        """The reduction of what a chain of plans computes, with the loops of the reduction of a tensor, so that bits are equal.

        Raises: NotImplementedError if the operands of the chain need other loops.
        """
        types = self.types(input.dtype, wanted)
        results = self.plans[(input,), dims, keepdim, wanted, params].results
        monoid = self._monoid((input,), types, params)
        to_state, operands = fusion.reduced(steps, monoid.to_state)
        loops, own = [self._loops(input.shape, dims, keepdim, each, results) for each in (operands, [input])]
        if any(loop[0] != other[0] for loop, other in zip(loops, own, strict=True)):
            raise NotImplementedError("other loops combine the elements in another order")
        monoid = monoid._replace(to_state=to_state)
        with planning(joined([fusion.name_of(steps), self.name])):
            return self._prepared(input.shape, input, operands, dims, loops, types, monoid, params)

    @staticmethod
    def _result_rows(result: Spec, kept: Sequence[int], keepdim: bool) -> tuple[int, ...]:
        """Byte strides of a result for every dim of the input; 0 on the reduced ones."""
        strides = result.byte_stride
        if keepdim:
            return strides
        full = dict(zip(kept, strides, strict=True))
        return tuple(full.get(dim, 0) for dim in range(max(full, default=-1) + 1))

    def _loop(self, sizes, dims, rows, inputs, ordered):
        """(sizes, strides per operand) over `dims`, outermost first. Results come before inputs, as kernels want."""
        chosen = shape(sizes[dim] for dim in dims)
        strides = tuple(tuple(row[dim] for dim in dims) for row in rows)
        if 0 in chosen:
            return (0,), tuple((0,) for _ in rows[inputs:] + rows[:inputs])
        found, merged = merge_dims(chosen, strides) if ordered else loop_dims(chosen, strides)
        return found, merged[inputs:] + merged[:inputs]

    # -- running ---------------------------------------------------------------------------------------------------

    def run(
        self,
        *inputs: Tensor,
        dims: tuple[int, ...],
        keepdim=False,
        dtype: DType | None = None,
        params=(),
        whole: bool = False,
    ):
        """The results (a tensor, or a tuple of them) of reducing `dims` (sorted, not negative) of the first input.

        Further inputs broadcast to the first. `whole`: the caller named no dims, for which PyTorch's node has another name.
        """
        plan = self.plans[tuple([t.spec for t in inputs]), dims, keepdim, dtype, len(params)]
        results = [make(new(), 0, each) for new, each in zip(plan.allocators, plan.results)]
        if plan.results[0].numel:
            numbers = [n for value in params for n in scalar_arguments(value, plan.operand_dtype.to_real())]
            addresses = [t._storage.ptr + t._byte_offset for t in (*results, *inputs)]
            plan.entry(*addresses, plan.reduced, *numbers, plan.meta, plan.count)
        result = results[0] if len(results) == 1 else tuple(results)
        if needs_recording(inputs):
            if dtype is not None:
                check_recordable(dtype)
            return record(self, result, inputs, (None if whole else dims, keepdim, *params))
        return result

    def direct(
        self, input: Tensor, dim: Any = None, keepdim: bool = False, dtype: DType | None = None
    ) -> Any:
        """The result for dim= as users give it. Tensors that take no part in autograd need one lookup."""
        # 2.0 and True have the hashes of 2 and 1, and would find the plans of these.
        if dim is not None and type(dim) is not int:
            dim = as_ints(dim, self.name)
        if keepdim is not False and keepdim is not True:
            keepdim = boolean(keepdim, self.name, "keepdim", 3)
        if dtype is not None and type(dtype) is not DType:
            dtype = as_dtype(dtype, self.name, "dtype")
        plan = self.direct_plans[input.spec, dim, keepdim, dtype]
        if watchers:
            static = {"dims": plan.dims, "keepdim": keepdim, "dtype": dtype, "params": plan.numbers}
            answer = watched(self, "run", (input,), {**static, "whole": dim is None})
            if answer is not PLAIN:
                return answer
        found: Any
        if plan.spec is not None:
            storage = plan.allocate()
            plan.entry(storage.ptr, input._storage.ptr + input._byte_offset, *plan.arguments)
            found = _new(Tensor)
            found._storage = storage
            found._byte_offset = 0
            found.spec = plan.spec
            found._autograd = found._base = None
        else:
            results = [make(new(), 0, spec) for new, spec in zip(plan.allocators, plan.results)]
            addresses = [each._storage.ptr for each in results]
            if plan.fused is None or not reduced(plan, input, addresses):
                plan.entry(*addresses, input._storage.ptr + input._byte_offset, *plan.arguments)
            found = results[0] if len(results) == 1 else tuple(results)
        if input._autograd is not None and mode.enabled:
            if dtype is not None:
                check_recordable(dtype)
            (plan.record or new_recorder(plan, self, found, (input,), plan.static))(found, input)
        return found


def check_recordable(dtype: DType) -> None:
    """Raises: RuntimeError for the argument dtype= of a recorded reduction where autograd cannot follow the result."""
    if dtype.category < FLOAT:
        raise RuntimeError(
            f"Autograd not support dtype: {LEGACY_NAMES[dtype]}\nThe input requires grad, and a result of dtype {dtype} "
            "has no gradient: call .detach() first if none is wanted"
        )


class Plan(Late):
    """The specs of the results and the kernel, for one combination of arguments."""

    __slots__ = ("results", "entry", "reduced", "meta", "count", "keepalive", "operand_dtype", "allocators")
    LATE = ("keepalive",)

    def __init__(self, results, launch, operand_dtype, allocators):
        self.results, self.allocators = results, allocators
        self.entry, self.reduced, self.meta, self.count, self.keepalive = launch
        self.operand_dtype = operand_dtype


class DirectPlan(Late):
    """The plan of a reduction over dims as users give them.

    `spec` is that of the result, None if there are several, or if the input is large. A large input may wait to be computed:
    `fused(steps)` prepares the reduction of a chain of plans.
    """

    # fmt: off
    __slots__ = (
        "spec", "allocate", "entry", "arguments", "results", "allocators", "keep", "dims", "numbers", "static", "record",
        "name", "fused",
    )
    # fmt: on
    LATE = ("keep",)

    def __init__(
        self,
        name: str,
        plan: Plan,
        dims: tuple[int, ...],
        numbers: tuple[float, ...],
        static: tuple,
        fused: Callable | None,
    ):
        self.name, self.fused = name, fused
        single = len(plan.results) == 1 and fused is None
        self.results, self.allocators, self.keep = plan.results, plan.allocators, plan
        self.spec: Spec | None = plan.results[0] if single else None
        self.allocate: Callable = plan.allocators[0]
        self.entry = plan.entry if plan.results[0].numel else _nothing
        self.arguments = (plan.reduced, *numbers, plan.meta, plan.count)  # the arguments after the addresses
        self.dims, self.numbers, self.static = dims, numbers, static
        self.record: Callable | None = None  # made when the first call is recorded


def _nothing(*arguments: Any) -> None:
    """The launch of a reduction that has no results to compute."""


def dims_of(dim: Any, ndim: int, name: str) -> tuple[int, ...]:
    """The dims that `dim` (None, an int or ints) names, sorted and not negative; None and () mean all dims.

    Raises: IndexError for a dim out of range, RuntimeError for one named twice, TypeError for no int.
    """
    _check_ndim(ndim, name)
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    named = dim if isinstance(dim, (tuple, list)) else (dim,)
    dims: list[int] = []
    for each in named:
        position = wrap_dim(integer(each, name, "dim"), ndim)
        if position in dims:
            raise RuntimeError(f"dim {position} appears multiple times in the list of dims")
        dims.append(position)
    return tuple(sorted(dims)) if ndim else ()


def single_dim(dim: Any, ndim: int, name: str) -> tuple[int, ...]:
    """One dim as a tuple; empty for a 0-dim tensor."""
    _check_ndim(ndim, name)
    position = wrap_dim(integer(dim, name, "dim"), ndim)
    return (position,) if ndim else ()


def _check_ndim(ndim: int, name: str) -> None:
    if ndim > MAX_DIMS:
        raise RuntimeError(f"{name}(): only tensors with up to {MAX_DIMS} dims are supported, got {ndim}")


def as_ints(dim: Any, name: str) -> Any:
    """An argument dim= as an int or a tuple of ints."""
    return integers((dim,), name, "dim") if isinstance(dim, (tuple, list)) else integer(dim, name, "dim")


def reduced_sizes(sizes: Size, dims: Sequence[int], keepdim: bool) -> Size:
    if keepdim:
        return shape(1 if dim in dims else size for dim, size in enumerate(sizes))
    return shape(size for dim, size in enumerate(sizes) if dim not in dims)


def byte_strides(operand: Spec, sizes: Size) -> tuple[int, ...]:
    return tuple(stride * operand.dtype.itemsize for stride in broadcast_stride(operand, sizes))


def distinct_elements(operand: Spec) -> int:
    """How many elements of memory an operand has, which may be fewer than its shape says."""
    return math.prod(size for size, stride in zip(operand.shape, operand.stride, strict=True) if stride)


def runs_along_kept(sizes: Size, strides: Sequence[int], kept: Sequence[int], itemsize: int) -> bool:
    """Whether the dim with the smallest stride is kept, so that neighbours in memory belong to different results."""
    dims = [dim for dim, size in enumerate(sizes) if size > 1]
    if not dims:
        return False
    fastest = min(dims, key=lambda dim: (strides[dim], -dim))
    return fastest in kept and strides[fastest] == itemsize
