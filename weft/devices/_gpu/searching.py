"""Binary searches in sorted sequences: a thread searches for a value. The steps are those of `engine/bisection.py`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from ...core.dtype import DType
from ...engine.llvm import value_type
from .kernel import Kernel
from .target import Target


class SearchKernel(NamedTuple):
    """Everything that the code of a search depends on.

    Arguments: the addresses of the positions that are found, of the sequences and of the values, all contiguous; how many values there
    are, how many of them are searched for in each sequence, the size of a sequence, and the bytes between sequences.
    """

    dtype: DType  # of sequences and values
    right: bool  # behind equal elements
    result: DType


def search_ir(target: Target, kernel: SearchKernel) -> str:
    """Return the module of the kernel."""
    body, dtype = Kernel(target), kernel.dtype
    found, sequences, values = body.words("p", 3)
    count, each, n, step = (body.parameter(name) for name in ("count", "each", "n", "step"))
    # Comparisons with NaN are false, so that the search goes right of NaN.
    compare = (
        f"fcmp {'ule' if kernel.right else 'ult'}"
        if dtype.kind == "f"
        else f"icmp {'s' if dtype.kind == 'i' else 'u'}{'le' if kernel.right else 'lt'}"
    )
    first, threads = body.first_and_step()
    with body.loop(first, count, threads) as i:
        value = body.read(body.place(values, [i], [dtype.itemsize]), dtype)
        sequence = body.place(sequences, [body.integer("udiv", i, each)], [step])
        start, end = body.variable("i64", "0"), body.variable("i64", n)
        with body.repeat() as go_on_if:
            low, high = body.get(start, "i64"), body.get(end, "i64")
            go_on_if(body.let(f"icmp slt i64 {low}, {high}"))
            middle = body.integer("lshr", body.integer("add", low, high), 1)
            probe = body.read(body.place(sequence, [middle], [dtype.itemsize]), dtype)
            before = body.let(f"{compare} {value_type(dtype)} {probe}, {value}")
            after = body.integer("add", middle, 1)
            body.set(start, "i64", body.let(f"select i1 {before}, i64 {after}, i64 {low}"))
            body.set(end, "i64", body.let(f"select i1 {before}, i64 {high}, i64 {middle}"))
        place = body.get(start, "i64")
        if kernel.result.itemsize == 4:
            place = body.let(f"trunc i64 {place} to i32")
        body.write(body.place(found, [i], [kernel.result.itemsize]), kernel.result, place)
    return body.ir()


def extras(gpu: Any) -> dict[str, Callable]:
    """The kernels that search, by the names that ops ask for."""

    @functools.cache
    def launch(kernel: SearchKernel, groups: int) -> Any:
        return gpu.runtime.launch(gpu.runtime.load(search_ir, kernel), groups, "pppiiii", [])

    def search_rows(
        addresses: tuple[int, int, int],
        shape: tuple[int, int, int, int],
        dtype: DType,
        right: bool,
        result: DType,
    ) -> None:
        """Search for values in sequences. addresses and shape: see the arguments of `SearchKernel`. There is at least one value."""
        found = launch(SearchKernel(dtype, right, result), gpu.groups(shape[0]))
        found.entry(*addresses, *shape, found.meta, found.count)

    return {"search_rows": search_rows}
