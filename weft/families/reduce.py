"""Reductions: many elements to one over any dims. A row says what an element contributes and how two results combine."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.arguments import boolean, integer, integers
from ..core.checking import dtype as as_dtype
from ..core.derivative import as_derivative
from ..core.dispatch import watchers
from ..core.dtype import FLOAT, LEGACY_NAMES, DType, compute_type
from ..core.iteration import MAX_DIMS, broadcast_stride, loop_dims
from ..core.op import Op
from ..core.plans import PlanCache
from ..core.recording import needs_recording, record
from ..core.size import Size, shape
from ..core.spec import Spec, contiguous_spec
from ..core.tensor import Tensor, make, wrap_dim
from ..engine.complexes import Complex
from ..engine.expr import const, param
from ..engine.monoid import Monoid, state_leaf
from .elements import as_type, load_as, store_as
from .map import common_device, scalar_arguments

# A value of a state: a dtype; complex ones are pairs of components.
State = tuple[DType, ...]


class Types(NamedTuple):
    """What a reduction computes with, for one input dtype."""

    operands: DType  # elements are converted to this
    results: tuple[DType, ...]


class Reduce(Op):
    """A reduction.

    types(dtype, wanted) -> Types            `wanted` is the argument dtype=, or None
    identity(dtype) -> values                the state of no elements, in the compute type: numbers or (number, dtype)
    to_state(*elements) -> state                 of one element; `engine.monoid.index()` is its position
    combine(a, b) -> state                   of two states, in any order unless it uses positions
    finish(state, *params) -> results        of the final state
    cascade                                  partial results in levels: for sums of floats
    ordered                                  positions count along the dims in logical order
    counted                                  `finish` gets the number of elements as its only param
    one_dim                                  dim= names a single dim, not several
    clean(element)                           of each element in the dtype of the input, before it is converted
    check(name, spec, dims, whole)           raises what `direct` should raise; `whole`: all dims, none of them named
    derivative                               rules get (ct, out, *inputs, dims, keepdim, *params); dims is None if the
                                             caller named none, and all are meant
    """

    def __init__(
        self,
        name: str,
        types: Callable[[DType, DType | None], Types],
        identity: Callable[[DType], Sequence[Any]],
        to_state: Callable,
        combine: Callable,
        finish: Callable = lambda state: state,
        *,
        cascade: bool = False,
        ordered: bool = False,
        counted: bool = False,
        one_dim: bool = False,
        clean: Callable | None = None,
        check: Callable[[str, Spec, tuple[int, ...], bool], None] | None = None,
        derivative: Any = None,
    ):
        self.name, self.types, self.identity = name, types, identity
        self.to_state, self.combine, self.finish = to_state, combine, finish
        self.cascade, self.ordered, self.counted = cascade, ordered, counted
        self.derivative = as_derivative(derivative)
        self.one_dim = one_dim
        self.clean = clean
        self.check = check
        self.plans = PlanCache(self._plan)
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
        kept = [dim for dim in range(len(first.shape)) if dim not in dims]
        rows = [byte_strides(each, first.shape) for each in inputs]
        out_rows = [self._result_rows(result, kept, keepdim) for result in results]
        outer = runs_along_kept(first.shape, rows[0], kept, first.dtype.itemsize)
        launch = where.backend.prepare_reduction(
            self._monoid(inputs, types, params),
            [each.dtype for each in inputs],
            [compute_type(types.operands).to_real()] * params,
            self._loop(first.shape, kept, [*rows, *out_rows], len(rows), ordered=False),
            self._loop(first.shape, dims, rows, len(rows), ordered=self.ordered),
            outer,
        )
        allocators = [where.backend.allocator(each.nbytes) for each in results]
        return Plan(results, launch, types.operands, allocators)

    def _plan_direct(self, input: Spec, dim: Any, keepdim: bool, wanted: DType | None):
        """The plan for an argument dim= as users give it, checked here, and the numbers of its launch."""
        self.types(input.dtype, wanted)  # as in PyTorch, a dtype is refused before the dims are looked at
        dims = (single_dim if self.one_dim and dim is not None else dims_of)(dim, len(input.shape), self.name)
        if self.check is not None:
            self.check(self.name, input, dims, dim is None or dim == ())
        numbers = (float(math.prod(input.shape[d] for d in dims)),) if self.counted else ()
        return self.plans[(input,), dims, keepdim, wanted, len(numbers)], numbers, dims

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
        found, merged = in_order(chosen, strides) if ordered else loop_dims(chosen, strides)
        return found, merged[inputs:] + merged[:inputs]

    def _monoid(self, inputs: tuple[Spec, ...], types: Types, params: int) -> Monoid:
        compute = compute_type(types.operands)
        elements = [self._loaded(k, each, compute) for k, each in enumerate(inputs)]
        identity = [_constant(value, compute) for value in self.identity(compute)]
        components = [part for value in identity for part in _parts(value)]
        left, right = (
            _regroup([state_leaf(side, k, part.dtype) for k, part in enumerate(components)], identity)
            for side in "lr"
        )
        finished = self.finish(left, *(param(k, compute.to_real()) for k in range(params)))
        stored = tuple(
            store_as(as_type(value, compute_type(dtype)), contiguous_spec((), dtype))
            for value, dtype in zip(finished, types.results, strict=True)
        )
        return Monoid(
            _flat(self.to_state(*elements)),
            _flat(left),
            _flat(right),
            _flat(self.combine(left, right)),
            tuple(components),
            self.cascade and compute.category >= 2,
            stored,
        )

    def _loaded(self, position: int, input: Spec, compute: DType) -> Any:
        if self.clean is None:
            return load_as(position, input, compute)
        return as_type(self.clean(load_as(position, input, compute_type(input.dtype))), compute)

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

        Further inputs broadcast to the first. `whole`: the caller named no dims, which autograd tells apart.
        """
        plan = self.plans[tuple([t.spec for t in inputs]), dims, keepdim, dtype, len(params)]
        results = [make(new(), 0, each) for new, each in zip(plan.allocators, plan.results)]
        if plan.results[0].numel:
            numbers = [n for value in params for n in scalar_arguments(value, plan.operand_dtype.to_real())]
            addresses = [t._storage.ptr + t._start for t in (*results, *inputs)]
            plan.entry(*addresses, plan.reduced, *numbers, plan.meta, plan.count)
        found = results[0] if len(results) == 1 else tuple(results)
        if needs_recording(inputs):
            if dtype is not None:
                check_recordable(dtype)
            return record(self, found, inputs, (None if whole else dims, keepdim, *params))
        return found

    def direct(
        self, input: Tensor, dim: Any = None, keepdim: bool = False, dtype: DType | None = None
    ) -> Any:
        """The result for dim= as users give it, by the shortest way."""
        if type(dim) is not int and dim is not None:  # 2.0 and True would find the plans of 2 and 1
            dim = as_ints(dim, self.name)
        if keepdim is not False and keepdim is not True:
            keepdim = boolean(keepdim, self.name, "keepdim", 3)
        if dtype is not None and type(dtype) is not DType:
            dtype = as_dtype(dtype, self.name, "dtype")
        plan, numbers, dims = self.direct_plans[input.spec, dim, keepdim, dtype]
        if watchers or input._autograd is not None or not plan.results[0].numel:
            return self(input, dims=dims, keepdim=keepdim, dtype=dtype, params=numbers, whole=dim is None)
        start = input._storage.ptr + input._start
        storage = plan.allocators[0]()
        if len(plan.results) == 1:
            plan.entry(storage.ptr, start, plan.reduced, *numbers, plan.meta, plan.count)
            return make(storage, 0, plan.results[0])
        storages = [storage, *[new() for new in plan.allocators[1:]]]
        addresses = [each.ptr for each in storages]
        plan.entry(*addresses, start, plan.reduced, *numbers, plan.meta, plan.count)
        return tuple([make(each, 0, spec) for each, spec in zip(storages, plan.results)])


def check_recordable(dtype: DType) -> None:
    """Raises: RuntimeError for the argument dtype= of a recorded reduction where autograd cannot follow the result."""
    if dtype.category < FLOAT:
        raise RuntimeError(
            f"Autograd not support dtype: {LEGACY_NAMES[dtype]}\nThe input requires grad, and a result of dtype {dtype} "
            "has no gradient: call .detach() first if none is wanted"
        )


class Plan:
    """What a reduction decided: the results' specs and the launch."""

    __slots__ = ("results", "entry", "reduced", "meta", "count", "keepalive", "operand_dtype", "allocators")

    def __init__(self, results, launch, operand_dtype, allocators):
        self.results, self.allocators = results, allocators
        self.entry, self.reduced, self.meta, self.count, self.keepalive = launch
        self.operand_dtype = operand_dtype


def dims_of(dim: Any, ndim: int, name: str) -> tuple[int, ...]:
    """The dims that `dim` (None, an int or ints) names, sorted, counted from the front; nothing means all.

    Raises: IndexError for a dim out of range, RuntimeError for one named twice, TypeError for no int.
    """
    _check_ndim(ndim, name)
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    given = dim if isinstance(dim, (tuple, list)) else (dim,)
    found: list[int] = []
    for each in given:
        position = wrap_dim(integer(each, name, "dim"), ndim)
        if position in found:
            raise RuntimeError(f"dim {position} appears multiple times in the list of dims")
        found.append(position)
    return tuple(sorted(found)) if ndim else ()


def single_dim(dim: Any, ndim: int, name: str) -> tuple[int, ...]:
    """One dim as a tuple; empty for a 0-dim tensor."""
    _check_ndim(ndim, name)
    position = wrap_dim(integer(dim, name, "dim"), ndim)
    return (position,) if ndim else ()


def _check_ndim(ndim: int, name: str) -> None:
    if ndim > MAX_DIMS:
        raise RuntimeError(f"{name}(): only tensors with up to {MAX_DIMS} dims are supported, got {ndim}")


def as_ints(dim: Any, name: str) -> Any:
    """An argument dim= in its plainest form: an int, or a tuple of them."""
    return integers((dim,), name, "dim") if isinstance(dim, (tuple, list)) else integer(dim, name, "dim")


def reduced_sizes(sizes: Size, dims: Sequence[int], keepdim: bool) -> Size:
    if keepdim:
        return shape(1 if dim in dims else size for dim, size in enumerate(sizes))
    return shape(size for dim, size in enumerate(sizes) if dim not in dims)


def byte_strides(operand: Spec, sizes: Size) -> tuple[int, ...]:
    return tuple(stride * operand.dtype.itemsize for stride in broadcast_stride(operand, sizes))


def runs_along_kept(sizes: Size, strides: Sequence[int], kept: Sequence[int], itemsize: int) -> bool:
    """Whether neighbours in memory belong to different results."""
    dims = [dim for dim, size in enumerate(sizes) if size > 1]
    if not dims:
        return False
    fastest = min(dims, key=lambda dim: (strides[dim], -dim))
    return fastest in kept and strides[fastest] == itemsize


def in_order(sizes: Size, strides) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Like `loop_dims`, but dims stay in logical order; neighbours are merged where they can be."""
    found: list[int] = []
    rows: list[list[int]] = [[] for _ in strides]
    for dim, size in enumerate(sizes):
        if size == 1:
            continue
        if found and all(row[-1] == own[dim] * size for row, own in zip(rows, strides, strict=True)):
            found[-1] *= size
            for row, own in zip(rows, strides, strict=True):
                row[-1] = own[dim]
        else:
            found.append(size)
            for row, own in zip(rows, strides, strict=True):
                row.append(own[dim])
    if not found:
        return (1,), tuple((0,) for _ in strides)
    return tuple(found), tuple(map(tuple, rows))


def _constant(value: Any, compute: DType) -> Any:
    """An identity: a number in the compute type, or (number, dtype)."""
    number, dtype = value if isinstance(value, tuple) else (value, compute)
    if dtype.is_complex:
        number = complex(number)
        return Complex(const(number.real, dtype.to_real()), const(number.imag, dtype.to_real()))
    return const(number, dtype)


def _parts(value: Any) -> tuple:
    return (value.real, value.imag) if isinstance(value, Complex) else (value,)


def _flat(values: Sequence[Any]) -> tuple:
    return tuple(part for value in values for part in _parts(value))


def _regroup(leaves: list, like: Sequence[Any]) -> tuple:
    """Leaves as values of the same structure as `like`."""
    rest = iter(leaves)
    return tuple(Complex(next(rest), next(rest)) if isinstance(v, Complex) else next(rest) for v in like)
