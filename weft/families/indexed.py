"""Ops whose indices are data: `Gather` reads the elements that indices point at, `Scatter` writes or combines into them.

An op states a rule, metadata in, `IndexMap` out; one rule serves the op, its opposite and so its derivative. `pack` and
`spread` do the same for masks. Nothing is written if an index is out of range.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.derivative import Derivative
from ..core.device import CPU
from ..core.dtype import BITS, DType, bool_, compute_type, float64
from ..core.grad_mode import mode
from ..core.iteration import broadcast_stride, broadcasts, check_reach, loop_dims, memory_order, merge_dims
from ..core.op import Op
from ..core.outputs import check_no_repeats, memory_overlaps, overlap
from ..core.plans import PlanCache
from ..core.recording import NO_RULE, needs_recording, new_recorder, record_inplace
from ..core.size import Size
from ..core.spec import Spec, contiguous_spec, make_spec, strides_in_order
from ..core.storage import Storage
from ..core.tensor import Tensor, empty, make
from ..core.warn import user_level
from ..engine.expr import load
from ..engine.kernel import IndexedLaunch, Indexing
from ..engine.loops import Result, element_size
from ..engine.memory import SMALL
from .array_op import array, host_array
from .elements import as_type, load_as, store_as
from .map import COPY, FILL, common_device, several_devices, with_guests

if TYPE_CHECKING:
    from ..devices.base import Backend


class IndexMap(NamedTuple):
    """Which elements of a tensor indices point at.

    Position p of `shape` is the element p . stride + the sum over j of index_j[p . index_strides[j]] * steps[j].
    """

    shape: Size
    stride: tuple[int, ...]  # of the tensor; 0 where an index decides
    index_strides: tuple[tuple[int, ...], ...]
    dims: tuple[int, ...]  # which dimension each index counts along, for messages
    sizes: tuple[int, ...]  # of these dimensions
    steps: tuple[int, ...]  # and their strides


Rule = Callable[..., IndexMap]  # (spec of the tensor, a static argument, *specs of the indices)


def out_of_bounds(index: int, dim: int, size: int) -> Exception:
    return IndexError(f"index {index} is out of bounds for dimension {dim} with size {size}")


# ---- Launches ------------------------------------------------------------------------------------------------------


def _prepare(
    name: str,
    backend: Backend,
    operands: Sequence[Spec],
    results: Sequence[Result],
    dtypes: Sequence[DType],
    rows: Sequence[Sequence[int]],
    access: IndexMap,
    wrap: bool,
    displaced: tuple[int, ...],
    in_order: bool,
) -> IndexedLaunch:
    """The kernel for `operands`, whose strides (in elements) are the `rows`; indices displace the `displaced` ones."""
    for place, (operand, row) in enumerate(zip(operands, rows, strict=True)):
        if place in displaced:
            check_reach(name, operand, (*access.shape, *access.sizes), (*row, *access.steps))
        else:
            check_reach(name, operand, access.shape, row)
    itemsizes = [*map(element_size, results), *(dtype.itemsize for dtype in dtypes)]
    byte_rows = tuple(tuple(s * size for s in row) for row, size in zip(rows, itemsizes, strict=True))
    sizes, strides = (merge_dims if in_order else loop_dims)(access.shape, byte_rows)
    step = itemsizes[displaced[0]] if displaced else 0
    steps = tuple(stride * step for stride in access.steps)
    indexing = Indexing(access.sizes, steps, displaced, wrap, in_order, not operands[0].overlaps)
    launch = backend.prepare_indexed(results, dtypes, sizes, strides, indexing)
    guests = [
        (k, each.span * each.dtype.itemsize)
        for k, each in enumerate(operands)
        if each.device.backend is not backend
    ]
    return with_guests(launch, backend, guests) if guests else launch


def _bits(operand: int, dtype: DType) -> tuple[Result, DType]:
    """An element of an operand as it lies in memory, without conversion."""
    if dtype.itemsize == 16:
        parts = (load((operand, part), float64) for part in (0, 1))  # type: ignore[arg-type]
        return Result(tuple(parts)), dtype
    bits = BITS[dtype.itemsize]
    return Result((load(operand, bits),)), bits


def plain(tensor: Tensor) -> Tensor:
    """Without pending conjugation or negation."""
    if tensor.spec.conj or tensor.spec.neg:
        return COPY.write(
            empty(contiguous_spec(tensor.spec.shape, tensor.spec.dtype, tensor.spec.device)), tensor
        )
    return tensor


def bare(tensor: Tensor) -> Tensor:
    """The tensor outside of autograd, without pending conjugation or negation."""
    return plain(make(tensor._storage, tensor._byte_offset, tensor.spec))


class _Indexed(Op):
    def __init__(
        self,
        name: str,
        rule: Rule,
        *,
        wrap: bool = False,
        error: Callable[..., Exception] = out_of_bounds,
        always_checked: bool = False,
        cpu_indices: bool = False,
        derivative: Any = None,
        node_name: str | None = None,
    ):
        super().__init__(name, derivative, node_name)
        self.rule = rule
        self.wrap = wrap  # negative indices count from the end
        self.error = error
        self.always_checked = always_checked  # indices are checked even where nothing is moved
        self.cpu_indices = cpu_indices  # indices on the CPU are moved to the device

    def _runs(self, specs: Sequence[Spec], indices: Sequence[Spec]) -> bool:
        """Whether there is memory to work on; not so on meta tensors.

        Raises: RuntimeError if the tensors, the first of which decides, are not on one device.
        """
        first = specs[0].device
        for each in indices:
            if each.device is not first and not (self.cpu_indices and each.device is CPU):
                raise several_devices(self.name, first, each.device)
        if common_device(self.name, specs) is not first:  # a 0-dim tensor on the CPU
            raise several_devices(self.name, first, common_device(self.name, specs))
        return first.backend.has_memory

    def _check(self, access: IndexMap, indices: Sequence[Tensor]) -> None:
        """Raise for the first index that is out of range."""
        for index, dim, size in zip(indices, access.dims, access.sizes, strict=True):
            values = host_array(index)
            bad = (values >= size) | (values < (-size if self.wrap else 0))
            if bad.any():
                raise self.error(int(values[bad][0]), dim, size)

    def _check_empty(self, access: IndexMap, indices: Sequence[Tensor]) -> None:
        """Nothing will be moved: as in PyTorch, most ops then refuse only indices into a dimension of size 0."""
        if (self.always_checked or 0 in access.sizes) and all(
            index.spec.numel and index.spec.device.backend.has_memory for index in indices
        ):
            self._check(access, indices)


def add_elements(old: Any, new: Any) -> Any:
    return old | new if getattr(old, "dtype", None) is bool_ else old + new


class _TakePlan:
    __slots__ = ("access", "spec", "launch", "allocate", "faults", "record")

    def __init__(self, access, spec, launch):
        self.access, self.spec, self.launch = access, spec, launch
        backend = spec.device.backend
        self.allocate = backend.allocator(spec.nbytes)
        self.faults = backend.faults
        self.record: Callable | None = None  # made when the first call is recorded


class Gather(_Indexed):
    """result[p] = input[where the indices point at p]. `in_memory_order`: strides follow the input's, as in a map."""

    def __init__(self, name: str, rule: Rule, *, in_memory_order: bool = False, **options):
        super().__init__(name, rule, **options)
        self.in_memory_order = in_memory_order
        self.plans = PlanCache(self._plan, with_sizes=True)
        if self.derivative is None:
            self.derivative = Derivative(self._back)

    @functools.cached_property
    def scatter(self) -> Scatter:
        """Writes where this reads."""
        return Scatter(
            f"{self.name}_backward",
            self.rule,
            wrap=self.wrap,
            error=self.error,
            cpu_indices=self.cpu_indices,
            once=False,
        )

    def adjoint(self, ct: Tensor, indices: Sequence[Tensor], static: Any, input: Spec) -> Tensor:
        """Zeros of the shape of `input`, to which each element that was read is added at its place."""
        whole = FILL.write(empty(contiguous_spec(input.shape, ct.spec.dtype, ct.spec.device)), 0)
        return self.scatter(whole, indices, ct, static, add_elements)

    @property
    def _back(self) -> Callable:
        return lambda ct, out, input, *indices, static, specs: self.adjoint(ct, indices, static[0], specs[0])

    def _plan(self, spec: Spec, static: Any, *indices: Spec) -> _TakePlan:
        access = self.rule(spec, static, *indices)
        stride = contiguous_spec(access.shape, spec.dtype).stride
        if self.in_memory_order:
            order = memory_order(access.shape, [access.stride, *access.index_strides])
            stride = strides_in_order(access.shape, order)
        result = make_spec(access.shape, stride, spec.dtype, spec.device)
        if not self._runs((spec,), indices) or not result.numel or 0 in access.sizes:
            return _TakePlan(access, result, None)
        element, bits = _bits(0, spec.dtype)
        rows = [stride, access.stride, *access.index_strides]
        dtypes = [bits, *(index.dtype for index in indices)]
        return _TakePlan(
            access,
            result,
            _prepare(
                self.name,
                spec.device.backend,
                (result, spec, *indices),
                [element],
                dtypes,
                rows,
                access,
                self.wrap,
                (1,),
                in_order=False,
            ),
        )

    def run(self, input: Tensor, indices: Sequence[Tensor], static: Any) -> Tensor:
        if input.spec.conj or input.spec.neg:
            input = plain(input)
        plan = self.plans[(input.spec, static, *[index.spec for index in indices])]
        storage = plan.allocate()
        launch = plan.launch
        if launch is None:
            self._check_empty(plan.access, indices)
        else:
            faults = plan.faults
            before = faults[0]
            launch.entry(
                storage.ptr,
                input._storage.ptr + input._byte_offset,
                *[index._storage.ptr + index._byte_offset for index in indices],
                launch.table,
                launch.meta,
                launch.count,
            )
            if faults[0] != before:
                self._check(plan.access, indices)
        result = make(storage, 0, plan.spec)
        if input._autograd is not None and mode.enabled:
            inputs = (input, *indices)
            (plan.record or new_recorder(plan, self, result, inputs, (static,)))(result, *inputs)
        return result


class _PutPlan(NamedTuple):
    access: IndexMap
    checks: list[IndexedLaunch]
    launch: IndexedLaunch | None
    faults: Sequence[int]


def broadcast_row(value: Spec, spec: Spec, static: Any, access: IndexMap) -> tuple[int, ...]:
    """The strides with which a value is read that is broadcast to the positions."""
    if not broadcasts(value.shape, access.shape):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast to indexing result of "
            f"shape {list(access.shape)}"
        )
    return broadcast_stride(value, access.shape)


class Scatter(_Indexed):
    """target[the place that the indices give for p] = value[p], in place; or the value combined with the old element.

    `combine(old, new)` gives what is stored, as an Expr; without it the new replaces the old. `fit(value, target,
    static, access)`, on specs, gives the strides with which the value is read, or raises. `once`: a target whose
    elements share memory is refused. `deprecated`: it is not, but there is a warning that names this expression.
    """

    def __init__(
        self,
        name: str,
        rule: Rule,
        *,
        fit: Callable = broadcast_row,
        once: bool = True,
        deprecated: str = "",
        **options,
    ):
        super().__init__(name, rule, **options)
        self.fit = fit
        self.once = once
        self.deprecated = deprecated
        self.plans = PlanCache(self._plan, with_sizes=True)
        if self.derivative is None:
            self.derivative = Derivative(self.target_rule, self.value_rule)

    @functools.cached_property
    def gather(self) -> Gather:
        """Reads where this writes."""
        return Gather(self.name, self.rule, wrap=self.wrap, error=self.error, cpu_indices=self.cpu_indices)

    @property
    def target_rule(self) -> Callable:
        def rule(ct, out, target, value, *indices, static):
            where, combine = static
            if combine is add_elements:
                return ct
            self._check_smooth(combine)
            zero = FILL.write(empty(contiguous_spec((), ct.spec.dtype, ct.spec.device)), 0)
            return self.gather.scatter(ct.clone(), indices, zero, where)

        return rule

    @property
    def value_rule(self) -> Callable:
        def rule(ct, out, target, value, *indices, static):
            where, combine = static
            self._check_smooth(combine)
            return self.gather(ct, indices, where)

        return rule

    def _check_smooth(self, combine: Callable | None) -> None:
        if combine is not None and combine is not add_elements:
            raise NotImplementedError(NO_RULE.format(f"{self.name} with {combine.__name__.strip('_')}"))

    def _plan(
        self, spec: Spec, value: Spec, combine: Callable | None, static: Any, *indices: Spec
    ) -> _PutPlan:
        access = self.rule(spec, static, *indices)
        value_row = self.fit(value, spec, static, access)
        if self.once:
            check_no_repeats(spec, self.name.removesuffix("_"))
        if not self._runs((spec, value), indices) or not access.shape.numel() or 0 in access.sizes:
            return _PutPlan(access, [], None, ())
        checks = [
            _prepare(
                self.name,
                spec.device.backend,
                [index],
                [],
                [index.dtype],
                [index.stride],
                _one(access, j, index),
                self.wrap,
                (),
                in_order=False,
            )
            for j, index in enumerate(indices)
        ]
        displaced: tuple[int, ...] = (0,)
        rows, inputs, operands = [access.stride], [value.dtype], [spec]
        same = value.dtype is spec.dtype and not (spec.conj or spec.neg or value.conj or value.neg)
        if combine is None and same:
            element, bits = _bits(0, spec.dtype)
            inputs = [bits]
        elif combine is None:
            element = store_as(load_as(0, value, compute_type(value.dtype)), spec)
        else:
            compute = compute_type(spec.dtype)
            element = store_as(
                as_type(combine(load_as(0, spec, compute), load_as(1, value, compute)), compute), spec
            )
            rows, inputs, displaced = [access.stride, access.stride], [spec.dtype, value.dtype], (0, 1)
            operands = [spec, spec]
        rows += [value_row, *access.index_strides]
        dtypes = [*inputs, *(index.dtype for index in indices)]
        launch = _prepare(
            self.name,
            spec.device.backend,
            [*operands, value, *indices],
            [element],
            dtypes,
            rows,
            access,
            self.wrap,
            displaced,
            in_order=True,
        )
        if self.deprecated and spec.repeats:
            launch = launch._replace(entry=_warning(launch.entry, self.name, self.deprecated))
        return _PutPlan(access, checks, launch, spec.device.backend.faults)

    def check(
        self,
        target: Tensor,
        indices: Sequence[Tensor],
        value: Tensor,
        static: Any,
        combine: Callable | None = None,
    ) -> None:
        """Raise the errors of the call, except for errors about the values of the indices."""
        self.plans[(target.spec, value.spec, combine, static, *[index.spec for index in indices])]

    def run(
        self,
        target: Tensor,
        indices: Sequence[Tensor],
        value: Tensor,
        static: Any,
        combine: Callable | None = None,
    ) -> Tensor:
        if not (target._autograd is value._autograd is None) and needs_recording((target, value)):
            return record_inplace(
                self,
                target,
                (target, value, *indices),
                (static, combine),
                self,
                target,
                indices,
                value,
                static,
                combine,
            )
        storage = target._storage
        if value._storage is storage or any([index._storage is storage for index in indices]):
            self.check(target, indices, value, static, combine)  # first, as in PyTorch
            value, *indices = [distinct(each, target, self.name) for each in (value, *indices)]
        plan = self.plans[(target.spec, value.spec, combine, static, *[index.spec for index in indices])]
        launch = plan.launch
        if launch is None:
            self._check_empty(plan.access, indices)
            return target
        addresses = [index._storage.ptr + index._byte_offset for index in indices]
        faults = plan.faults
        before = faults[0]
        for check, address in zip(plan.checks, addresses, strict=True):
            check.entry(address, check.table, check.meta, check.count)
        if faults[0] != before:
            self._check(plan.access, indices)
        addresses.insert(0, value._storage.ptr + value._byte_offset)
        storage.version += 1  # first, because it may raise
        start = storage.ptr + target._byte_offset
        if combine is not None:
            addresses.insert(0, start)
        launch.entry(start, *addresses, launch.table, launch.meta, launch.count)
        return target


def _warning(entry: Callable, name: str, example: str) -> Callable:
    """The entry of a kernel, with a warning. It is a part of the plan, so that calls with other targets are not asked."""
    message = (
        f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this operation. "
        f"This also applies to advanced indexing e.g. {example}"
    )

    def warned(*words: int) -> Any:
        warnings.warn(message, UserWarning, stacklevel=user_level())
        return entry(*words)

    return warned


def _one(access: IndexMap, j: int, index: Spec) -> IndexMap:
    return IndexMap(index.shape, (), (index.stride,), access.dims[j : j + 1], access.sizes[j : j + 1], (0,))


def unshared(tensor: Tensor, target: Tensor) -> Tensor:
    """The tensor, copied if writing `target` could change it."""
    return COPY(tensor) if tensor._storage is target._storage and tensor.spec.numel else tensor


def distinct(tensor: Tensor, target: Tensor, name: str) -> Tensor:
    """As `unshared`, for functions that take no tensor whose memory overlaps that of the target.

    Raises: RuntimeError if it does. As in PyTorch, memory with gaps counts as apart.
    """
    if tensor._storage is target._storage:
        dense = tensor.spec.is_dense and target.spec.is_dense
        if tensor is target or dense and memory_overlaps(tensor, target):
            raise overlap(name, target.spec, tensor.spec)
    return unshared(tensor, target)


# ---- Masks ---------------------------------------------------------------------------------------------------------


def _pack_plan(spec: Spec, mask: Spec, spread: bool) -> Callable[[int, int, int, int], int]:
    """The loop over a mask and the operand that it selects from, in logical order; the packed operand does not advance."""
    itemsize = spec.dtype.itemsize
    wide = tuple(stride * itemsize for stride in broadcast_stride(spec, mask.shape))
    sizes, (elements, chosen) = merge_dims(mask.shape, (wide, mask.stride))
    packed = (0,) * (len(sizes) - 1) + (itemsize,)
    rows = (elements, packed, chosen) if spread else (packed, elements, chosen)
    return common_device("pack", (spec, mask)).backend.prepare_pack(itemsize, itemsize, spread, sizes, rows)


def _row_plan(spec: Spec, mask: Spec) -> tuple[Callable[[int, int, int, int], int], Size, int] | None:
    """The loop over a mask that packs rows of a tensor, the shape of a row, and its bytes. None for long rows, or in pieces."""
    dims, itemsize = len(mask.shape), spec.dtype.itemsize
    row = contiguous_spec(spec.shape[dims:], spec.dtype)
    nbytes = row.nbytes
    if not 0 < nbytes <= MOST_ROW_BYTES or row.stride != spec.stride[dims:]:
        return None
    if spec.conj or spec.neg or not spec.device.backend.has_memory:
        return None
    wide = tuple(stride * itemsize for stride in spec.stride[:dims])
    sizes, (elements, chosen) = merge_dims(mask.shape, (wide, mask.stride))
    rows = (0,) * (len(sizes) - 1) + (nbytes,), elements, chosen
    backend = common_device("pack", (spec, mask)).backend
    return backend.prepare_pack(nbytes, itemsize, False, sizes, rows), row.shape, nbytes


_pack_plans, _row_plans = PlanCache(_pack_plan, name="pack"), PlanCache(_row_plan, name="rows")
# Rows that the kernel moves whether the mask is true or not; of longer ones the positions are found first.
MOST_ROW_BYTES = 64


def count_true(mask: Tensor) -> int:
    """How many elements of a bool tensor are true."""
    spec = mask.spec
    if spec.device is CPU:
        return int(np.count_nonzero(array(mask)))
    if not spec.numel:
        return 0
    nowhere, chosen = packed_storage(spec, 0), mask._storage.ptr + mask._byte_offset
    return _pack_plans[spec, spec, False](nowhere.ptr, chosen, chosen, 0)


def pack(input: Tensor, mask: Tensor) -> Tensor:
    """The elements of `input` (broadcast to the shape of `mask`) where the bool mask is true, in one dimension."""
    spec = input.spec
    room = _room(mask, spec.dtype.itemsize)
    storage = packed_storage(spec, room)
    count = pack_into(storage.ptr, room, input, mask)
    storage.nbytes_ = count * spec.dtype.itemsize
    return make(storage, 0, vector_spec(count, spec.dtype, spec.device))


def pack_rows(input: Tensor, mask: Tensor) -> Tensor | None:
    """The rows of `input` for which the bool mask, of the shape of the first dims, is true. None for rows that are not short."""
    plan = _row_plans[input.spec, mask.spec]
    if plan is None or not mask.spec.numel:
        return None
    launch, shape, nbytes = plan
    room = _room(mask, nbytes)
    storage = input.spec.device.backend.allocate((room + 1) * nbytes)
    count = _run_pack(launch, storage.ptr, room, input, mask)
    storage.nbytes_ = count * nbytes
    return make(storage, 0, _rows_spec(count, shape, input.spec.dtype, input.spec.device))


@functools.lru_cache(maxsize=1024)
def _rows_spec(count: int, row: Size, dtype: DType, device: Any) -> Spec:
    return contiguous_spec((count, *row), dtype, device)


# Specs of vectors die with their tensors; new ones cost more than packing a few elements.
vector_spec = functools.lru_cache(maxsize=1024)(
    lambda count, dtype, device: contiguous_spec((count,), dtype, device)
)


def packed_storage(spec: Spec, count: int) -> Storage:
    """Memory for `count` packed elements, and for one more, which the kernel writes and the result does not contain."""
    itemsize = spec.dtype.itemsize
    storage = spec.device.backend.allocate((count + 1) * itemsize)
    storage.nbytes_ = count * itemsize
    return storage


def pack_into(address: int, room: int, input: Tensor, mask: Tensor) -> int:
    """Write packed elements to an address with room for `room`, and for one more; returns how many.

    Raises: RuntimeError if the mask has more true elements; nothing is written outside the room then.
    """
    if not mask.spec.numel:
        return 0
    input = plain(input)
    return _run_pack(_pack_plans[input.spec, mask.spec, False], address, room, input, mask)


def _run_pack(launch: Callable, address: int, room: int, input: Tensor, mask: Tensor) -> int:
    count: int = launch(
        address, input._storage.ptr + input._byte_offset, mask._storage.ptr + mask._byte_offset, room
    )
    if count > room:
        raise mask_changed(room, count)
    return count


def _room(mask: Tensor, nbytes: int) -> int:
    """For how many parts of `nbytes` to make room: one for each element of a small mask, else for each true one."""
    count = mask.spec.numel
    return count if count * nbytes <= SMALL else count_true(mask)


def mask_changed(before: int, after: int) -> RuntimeError:
    return RuntimeError(
        f"The mask had {before} true elements when they were counted and {after} when they were used: another thread "
        "writes to it. Pass a clone of the mask, made while nobody writes to it."
    )


def spread(target: Tensor, mask: Tensor, values: Tensor, count: int) -> None:
    """The opposite of `pack`: the first `count` of the contiguous `values` go where the mask is true, in place.

    Dtypes are the same, and no conjugation or negation is pending.
    """
    if not count:
        return
    launch = _pack_plans[target.spec, mask.spec, True]
    chosen = mask._storage.ptr + mask._byte_offset
    target._storage.version += 1  # first, because it may raise
    launch(
        target._storage.ptr + target._byte_offset, values._storage.ptr + values._byte_offset, chosen, count
    )
