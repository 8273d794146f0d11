"""`weft.count`: the operations on numbers and the bytes of every kernel that a program launches, by operation, module and kernel."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from ..core import entry
from ..core.device import CPU
from ..core.dispatch import PLAIN, unwatch, watch
from ..core.modes import unwatch_functions, watch_functions
from ..core.overrides import public_function
from ..core.promised import Promised
from ..core.pytree import tree_leaves
from ..core.tensor import Tensor
from ..devices.observed import observed_launches
from ..engine import defer
from ..engine.work import Work, has_memory, touched_by
from ..families.array_op import ArrayMap, ArrayOp
from ..families.reduce import Reduce
from ..families.traced import Traced
from ..ops.linalg.lapack import MatrixOp
from ..profiler.operator_names import name_of_deferred, name_of_function, name_of_op, prepare
from .counting_formulas import flop_of
from .flop_counter import step_counts, table_lines
from .module_tracker import ModuleTracker


class Kernel(NamedTuple):
    """Kernels of one kind with the same work that one operation launched, `calls` times. `work` is that of all these calls."""

    operation: str
    kind: str
    calls: int
    work: Work


class _Call:
    """A call of an operation or of a public function that is under way."""

    __slots__ = ("name", "written")

    def __init__(self, name: str) -> None:
        self.name = name
        self.written: set[int] = set()  # addresses that kernels of this call have written


class count:  # noqa: N801 (used like a function)
    """A context that counts the work of the kernels that run in it: arithmetic operations (FLOP), and bytes read and written.

    Every kernel counts, forward and backward, after deferred operations have been fused. The counts come from the kernels' own
    expressions, sizes and strides, and are exact:

    - An arithmetic operation, or a mathematical function such as exp, is one operation for each element; a fused multiply-add is two.
      Comparisons, logic, conversions, copies and `where` are none. A reduction combines each element with the result so far.
    - A product of matrices, a convolution and attention count a multiplication and an addition as two, as PyTorch's `FlopCounterMode`
      does. `products` is their part.
    - A kernel reads and writes each element once, except for elements that indices select. A view launches no kernel.
    - What a library such as LAPACK does, a factorization say, reads its inputs and writes its results. Its operations are those of the
      algorithm. Eigenvalues and singular values iterate, so their counts are estimates. Where there is no formula, as for `matrix_exp`,
      operations count 0, and `uncounted` names the function.
    - A large result that the program drops without reading is never computed.

    Only operations of the thread that entered the context count. They take 10 to 100 times as long as outside.

    Args:
        display: print the table at the end of the context.
        depth: how deep modules are nested in the table.

    >>> import weft as torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> with torch.count(display=False) as counted, torch.no_grad():
    ...     _ = model(torch.ones(3, 4))
    >>> counted.flop, counted.products, counted.read, counted.written
    (342, 288, 592, 384)
    >>> counted.by_operation["aten::relu"]
    Work(flop=24, read=96, written=96, products=0)
    """

    def __init__(self, display: bool = True, depth: int = 2) -> None:
        self.display, self.depth = display, depth
        self._kernels: dict[tuple[str, str, Work], int] = defaultdict(int)
        self._modules: dict[str, dict[str, Work]] = {}
        self._tracker = ModuleTracker()
        self._stack = ExitStack()
        self._calls: list[_Call] = []
        self._passing: Any = None
        self._promised: dict[
            int, set[str]
        ] = {}  # by the number of a promise: the modules in which it was made
        self._uncounted: set[str] = set()
        self._pending: list[tuple[str, Work, set[str]]] = []
        self._thread = 0
        self._launches: Any = None

    # -- results -------------------------------------------------------------------------------------------------------

    @property
    def total(self) -> Work:
        """Return the work of all kernels."""
        return _sum(self._modules.get("Global", {}).values())

    @property
    def flop(self) -> int:
        """Return the arithmetic operations."""
        return self.total.flop

    @property
    def products(self) -> int:
        """Return the operations of products, convolutions and attention: the number of PyTorch's `FlopCounterMode`."""
        return self.total.products

    @property
    def read(self) -> int:
        """Return the bytes that kernels read."""
        return self.total.read

    @property
    def written(self) -> int:
        """Return the bytes that kernels wrote."""
        return self.total.written

    @property
    def moved(self) -> int:
        """Return the bytes read and written."""
        return self.total.moved

    @property
    def by_operation(self) -> dict[str, Work]:
        """Return the work by operation, with PyTorch's names of operators."""
        return dict(self._modules.get("Global", {}))

    @property
    def by_module(self) -> dict[str, dict[str, Work]]:
        """Return the work by module and operation; "Global" is the sum of all."""
        return {name: dict(found) for name, found in self._modules.items()}

    @property
    def kernels(self) -> list[Kernel]:
        """Return the kernels, those of the same operation, kind and work as one."""
        return [
            Kernel(name, kind, calls, Work(*(calls * each for each in work)))
            for (name, kind, work), calls in self._kernels.items()
        ]

    @property
    def uncounted(self) -> list[str]:
        """Return the operations whose kernels count 0 FLOP because no formula for them is known; their bytes are counted."""
        return sorted(self._uncounted)

    def table(self, by: str = "module") -> str:
        """Return a table of the work.

        Args:
            by: "module" (and operation), "operation", or "kernel".
        """
        rows = {
            "module": self._rows_by_module,
            "operation": self._rows_by_operation,
            "kernel": self._rows_by_kernel,
        }
        if by not in rows:
            raise ValueError(f"count.table(): by must be 'module', 'operation' or 'kernel', got {by!r}")
        lines = [(by.capitalize(), "Calls", "FLOP", "Products", "Read", "Written"), *rows[by]()]
        total = self.total
        if by != "module":
            lines.append(_row("Total", sum(self._kernels.values()), total))
        text = table_lines(lines)
        if self._uncounted:
            text.append(f"FLOP are not known, and counted as 0, for: {', '.join(self.uncounted)}")
        return "\n".join(text)

    def _rows_by_module(self) -> list[tuple[str, ...]]:
        found = []
        for name in sorted(self._modules, key=lambda each: (each != "Global", each)):
            level = 0 if name == "Global" else name.count(".") + 1
            if level <= self.depth:
                found.append(_row(" " * level + name, None, _sum(self._modules[name].values())))
                found += [
                    _row(f"{' ' * level} - {operation}", None, work)
                    for operation, work in _largest(self._modules[name].items())
                ]
        return found

    def _rows_by_operation(self) -> list[tuple[str, ...]]:
        calls: dict[str, int] = defaultdict(int)
        for (name, _, _), number in self._kernels.items():
            calls[name] += number
        return [_row(name, calls[name], work) for name, work in _largest(self.by_operation.items())]

    def _rows_by_kernel(self) -> list[tuple[str, ...]]:
        ranked = sorted(self.kernels, key=lambda each: each.work.moved, reverse=True)
        return [_row(f"{each.operation} ({each.kind})", each.calls, each.work) for each in ranked]

    def __repr__(self) -> str:
        total = self.total
        return (
            f"<count of {sum(self._kernels.values())} kernels: {total.flop} FLOP, {total.moved} bytes moved>"
        )

    # -- the context -----------------------------------------------------------------------------------------------------

    def __enter__(self) -> count:
        prepare()
        defer.keep_all()  # work from before the context
        self._thread = threading.get_ident()
        with ExitStack() as stack:
            entry.observe(self._called)
            stack.callback(entry.observe, None)
            self._launches = stack.enter_context(observed_launches(self._launched))
            stack.enter_context(self._tracker)
            watch_functions()
            stack.callback(unwatch_functions)
            watch(self._watched, plain=True)
            stack.callback(unwatch, self._watched)
            defer.observers.append(self)
            stack.callback(defer.observers.remove, self)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: Any) -> None:
        try:
            if exception[0] is None:
                defer.keep_all()  # deferred work of the context
        finally:
            self._settle()
            self._stack.close()
        if self.display and exception[0] is None:
            print(self.table())

    def _places(self) -> set[str]:
        """The modules that run."""
        return self._tracker.parents

    def _launched(self, kind: str, work: Work, written: Sequence[int]) -> None:
        """A kernel has run. It waits in `_pending`, because deferred work gets its name afterwards."""
        for call in self._calls[-1:]:
            call.written.update(written)
        self._pending.append((kind, work, self._places()))

    def _settle(self) -> None:
        """Charge the kernels that wait to the call under way."""
        name = self._calls[-1].name if self._calls else "weft::other"
        pending, self._pending = self._pending, []
        for kind, work, modules in pending:
            self._add(name, kind, work, modules)

    def _add(self, name: str, kind: str, work: Work, modules: set[str]) -> None:
        self._kernels[name, kind, work] += 1
        for module in modules:
            found = self._modules.setdefault(module, {})
            found[name] = found[name].plus(work) if name in found else work

    # -- calls -----------------------------------------------------------------------------------------------------------

    def _called(self, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Observer of entries: run the call of a public function, and notice results that no kernel of its operations wrote."""
        if threading.get_ident() != self._thread:
            return PLAIN
        if self._passing is function:
            self._passing = None
            return PLAIN
        if any(type(each) is Traced for each in (*args, *kwargs.values())):
            return PLAIN
        public = public_function(function)
        if getattr(public, "__name__", "") == "__get__":  # an attribute such as `grad`
            return PLAIN
        name = name_of_function(public) or f"weft::{getattr(public, '__name__', 'function')}"
        return self._run(name, function, lambda: function(*args, **kwargs), ("run", args, kwargs, None))

    def _watched(self, op: Any, method: str, args: tuple, static: dict[str, Any]) -> Any:
        """Watcher of ops, as `_called`."""
        if threading.get_ident() != self._thread:
            return PLAIN
        if self._passing == (op, method):
            self._passing = None
            return PLAIN
        if any(type(each) is Traced for each in args):
            return PLAIN
        name = name_of_op(op, method, args)
        if _reads_promise(op, method, args, static):
            dims = None if static["whole"] else static["dims"]
            call = lambda: op.direct(*args, dims, static["keepdim"], static["dtype"])  # noqa: E731
        else:
            call = lambda: (op if method == "run" else getattr(op, method))(*args, **static)  # noqa: E731
        return self._run(name, (op, method), call, (method, args, static, op))

    def _run(self, name: str, passing: Any, function: Callable, given: tuple) -> Any:
        self._launches.start()
        self._settle()
        call = _Call(name)
        self._calls.append(call)
        self._passing = passing
        try:
            result = function()
            method, args, static, op = given
            self._note_own(call, method, args, static, result, op)
            return result
        finally:
            self._passing = None
            self._settle()
            self._calls.pop()
            if self._calls:
                self._calls[-1].written |= call.written

    def _note_own(
        self, call: _Call, method: str, args: Sequence[Any], static: dict[str, Any], result: Any, op: Any
    ) -> None:
        """Count the kernel of an operation that computes by other means than prepared kernels: it reads its inputs, writes its results."""
        inputs = [
            each for each in _tensors((*args[method == "write" :], *static.values())) if has_memory(each)
        ]
        given = {id(each._storage) for each in inputs}
        results = [each for each in _tensors(result) if has_memory(each) and id(each._storage) not in given]
        if not _has_own_kernel(op, method, results):
            results = [each for each in results if not _is_written(each, call.written)]
        if not results or call.name in _LEAVE_MEMORY_AS_IT_IS:
            return
        call.written.update(each._storage.ptr for each in results)
        flop = products = step_counts(op, result, args)
        if flop is None:
            products = 0
            if isinstance(op, ArrayMap):
                flop = results[0].spec.numel
            else:
                name = call.name.rpartition("::")[2] if op is None else op.name
                flop = flop_of(name, result, tuple(args), static)
        if flop is None and inputs:
            self._uncounted.add(call.name)
        read = {(id(each._storage), each._byte_offset, each.spec): touched_by(each.spec) for each in inputs}
        work = Work(
            flop or 0, sum(read.values()), sum(touched_by(each.spec) for each in results), products or 0
        )
        self._pending.append(("own", work, self._places()))

    # -- deferred work (an observer of `engine/defer.py`) -------------------------------------------------------------------

    def promised(self, promise: Any) -> None:
        """Note the modules in which an operation was deferred."""
        self._promised[promise.number] = self._places()

    def ran(
        self, chain: Sequence[Any], stored: Sequence[bool], end: Any, kernels: int, seconds: float
    ) -> None:
        """Charge the kernels of deferred operations to these and their module, not to the call that reads the results."""
        names = [name_of_deferred(each.plan.deferred.name) for each in chain]
        if end:
            names.append(name_of_deferred(end))
        modules = [self._promised.pop(each.promise.number, None) for each in chain][-1]
        first = max(0, len(self._pending) - kernels)
        for kind, work, around in self._pending[first:]:
            if kernels == 1 < len(names):
                name = f"weft::fused({', '.join(each.partition('::')[2] for each in names)})"
            else:
                name = names.pop(0)
            self._add(name, kind, work, around if end or modules is None else modules)
        del self._pending[first:]


def _reads_promise(op: Any, method: str, args: tuple, static: dict[str, Any]) -> bool:
    """Whether this is a call of a public reduction that may be one kernel with the deferred operations that it reads."""
    return (
        isinstance(op, Reduce)
        and method == "run"
        and "whole" in static
        and len(args) == 1
        and type(args[0]) is Tensor
        and type(args[0]._storage) is Promised
    )


_LEAVE_MEMORY_AS_IT_IS = frozenset(
    f"aten::{name}"
    for name in ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted")
)


def _has_own_kernel(op: Any, method: str, results: Sequence[Tensor]) -> bool:
    """Whether NumPy, SciPy or LAPACK computes the results, which copies may have written before or after."""
    is_host = bool(results) and results[0].spec.device is CPU
    return isinstance(op, (ArrayMap, ArrayOp, MatrixOp)) and method in ("run", "write") and is_host


def _tensors(values: Any) -> list[Tensor]:
    return [each for each in tree_leaves(values) if isinstance(each, Tensor)]


def _is_written(tensor: Tensor, addresses: set[int]) -> bool:
    start = tensor._storage.ptr
    return not tensor.spec.numel or any(
        start <= each < start + max(1, tensor._storage.nbytes_) for each in addresses
    )


def _sum(works: Any) -> Work:
    total = Work()
    for each in works:
        total = total.plus(each)
    return total


def _largest(works: Any) -> list[tuple[str, Work]]:
    return sorted(works, key=lambda each: (-each[1].flop, -each[1].moved, each[0]))


def _row(name: str, calls: int | None, work: Work) -> tuple[str, ...]:
    numbers = (work.flop, work.products, work.read, work.written)
    return name, "" if calls is None else str(calls), *(f"{each:,}" for each in numbers)
