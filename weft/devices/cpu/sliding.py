"""Convolutions by `engine/sliding.py`: where each place in the window lies in the lines, and which elements are copied.

Coordinates of a dim: an element of the padded input u is window place k of position p if u = stride * p + dilation * k. For a
stride above 1, lines hold every stride-th element, so that neighbouring positions are neighbours: u = stride * q + phase.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.dtype import DType
from ...core.plans import PlanCache
from ...core.spec import contiguous_stride
from ...engine import workers
from ...engine.gemm import ALWAYS_SHARED_WORK, SHARED_WORK
from ...engine.kernel import Code, optimize, shared
from ...engine.sliding import LINE, PRODUCTS_META, SUMS_META, products_code, sums_code, tile
from ...engine.sliding_panels import panel_sums_code, suits_panels
from ...engine.storages import allocator

# Elements of lines that a thread works on at a time: half a megabyte, which the second cache of current processors holds.
MOST_LINES = 1 << 17


class Run(NamedTuple):
    """Elements of one dim that are copied: every `step`-th from `first` on, in the source and in the target."""

    source: int
    source_step: int
    target: int
    target_step: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody calls


def _row_table(
    runs: Sequence[Run], source_stride, target_stride, size: int, target_base: int = 0
) -> np.ndarray:
    """Return [rows, 3]: source and target (bytes) and count of each row of the last dim."""
    source, target = np.zeros((), np.int64), np.full((), target_base, np.int64)
    if any(run.count <= 0 for run in runs):
        return np.zeros((0, 3), np.int64)
    for dim, run in enumerate(runs):
        steps = np.arange(run.count if dim < len(runs) - 1 else 1)
        source = source[..., None] + (run.source + run.source_step * steps) * source_stride[dim]
        target = target[..., None] + (run.target + run.target_step * steps) * target_stride[dim]
    count = np.full(source.size, runs[-1].count, np.int64)
    return np.stack([source.ravel() * size, target.ravel() * size, count], 1)


class Window(NamedTuple):
    """A place of the window: its number in the weight, which phase of the lines it reads, and how far from a position."""

    number: int
    phase: int
    shift: tuple[int, ...]


class Vectors(NamedTuple):
    """The vectors of positions that are computed."""

    starts: np.ndarray  # elements from the begin of the lines
    stride: tuple[int, ...]  # of the positions among the elements of all vectors


class Lines(NamedTuple):
    """How the planes of a part of an image lie in the scratch memory."""

    sizes: tuple[int, ...]  # of the lines of each phase
    copied: list[list[Run]]  # for each phase: what is copied from a plane of the image, dim by dim

    @property
    def stride(self) -> tuple[int, ...]:
        return contiguous_stride(self.sizes)

    @property
    def plane(self) -> int:
        return math.prod(self.sizes) * len(self.copied)

    def distance(self, window: Window) -> int:
        return window.phase * math.prod(self.sizes) + sum(
            shift * step for shift, step in zip(window.shift, self.stride, strict=True)
        )

    def rows(self, source_stride, size: int) -> np.ndarray:
        tables = [
            _row_table(runs, source_stride, self.stride, size, phase * math.prod(self.sizes))
            for phase, runs in enumerate(self.copied)
        ]
        return np.concatenate(tables)

    @staticmethod
    def shared(sizes: tuple[int, ...], copied: list[list[Run]], count: int) -> Lines:
        """Lines for `count` positions of the last dim, of which each ends with the zeros that the next one begins with."""
        last = [runs[-1] for runs in copied if runs[-1].count > 0]
        if last:
            before = min(run.target for run in last)
            filled = max(run.target + run.count for run in last)
            sizes = (*sizes[:-1], max(count, filled, sizes[-1] - before))
        return Lines(sizes, copied)

    def vectors(self, counts: Sequence[int], lanes: int) -> Vectors:
        """The vectors of `counts` positions: as many as all lines together take, or those of each row, if these are no more."""
        reach = sum((count - 1) * step for count, step in zip(counts, self.stride, strict=True)) + 1
        each, rows = -(-counts[-1] // lanes), math.prod(counts[:-1])
        if each * rows > -(-reach // lanes):
            return Vectors(np.arange(-(-reach // lanes)) * lanes, self.stride)
        starts: Any = np.zeros((), np.int64)
        for count, step in zip(counts[:-1], self.stride, strict=False):
            starts = starts[..., None] + np.arange(count) * step
        starts = (starts.ravel()[:, None] + np.arange(each) * lanes).ravel()
        return Vectors(starts, (*(step * each * lanes for step in contiguous_stride(counts[:-1])), 1))


# ---- From the input to the result -----------------------------------------------------------------------------------------


def _phases(how) -> list[tuple[int, ...]]:
    """Return the remainders by the stride of the elements that windows read."""
    each = [
        sorted({k * gap % step for k in range(count)})
        for count, gap, step in zip(how.kernel, how.dilation, how.stride, strict=True)
    ]
    return list(itertools.product(*each))


def _windows(how) -> list[Window]:
    phases = {phase: number for number, phase in enumerate(_phases(how))}
    found = []
    for number, place in enumerate(itertools.product(*map(range, how.kernel))):
        u = [k * gap for k, gap in zip(place, how.dilation, strict=True)]
        phase = tuple(each % step for each, step in zip(u, how.stride, strict=True))
        shift = tuple(each // step for each, step in zip(u, how.stride, strict=True))
        found.append(Window(number, phases[phase], shift))
    return found


def _input_lines(how, begin: int, end: int) -> Lines:
    """The elements of the input that positions begin to end of the first dim read."""
    counts = (end - begin, *how.positions[1:])
    sizes = tuple(
        count + (k - 1) * gap // step
        for count, k, gap, step in zip(counts, how.kernel, how.dilation, how.stride, strict=True)
    )
    copied = []
    for phase in _phases(how):
        runs = []
        for dim, (own, step, rest, size) in enumerate(zip(how.sizes, how.stride, phase, sizes, strict=True)):
            start = (begin if dim == 0 else 0) * step + rest - how.border[dim][0]  # the element of place 0
            first = max(0, -(start // step))
            last = min(size, -((start - own) // step))
            runs.append(Run(start + first * step, step, first, 1, last - first))
        copied.append(runs)
    return Lines.shared(sizes, copied, counts[-1])


def _taken(how, stride: tuple[int, ...], begin: int, end: int, size: int) -> np.ndarray:
    """The rows of the sums, whose strides are given, that are rows of the result."""
    runs = [Run(0, 1, begin if dim == 0 else 0, 1, count) for dim, count in enumerate(how.positions)]
    runs[0] = runs[0]._replace(count=end - begin)
    return _row_table(runs, stride, contiguous_stride(how.positions), size)


# ---- From the result to the input -----------------------------------------------------------------------------------------


class Adjoint(NamedTuple):
    """Elements of the input with the same remainders by the stride, and the places that add to them."""

    remainders: tuple[int, ...]
    places: list[tuple[int, tuple[int, ...]]]  # number in the weight; how many positions before


def _adjoints(how) -> list[Adjoint]:
    found = []
    for remainders in itertools.product(*map(range, how.stride)):
        places = []
        for number, place in enumerate(itertools.product(*map(range, how.kernel))):
            u = [k * gap for k, gap in zip(place, how.dilation, strict=True)]
            if all(
                (each - rest) % step == 0 for each, rest, step in zip(u, remainders, how.stride, strict=True)
            ):
                back = tuple(
                    (each - rest) // step for each, rest, step in zip(u, remainders, how.stride, strict=True)
                )
                places.append((number, back))
        found.append(Adjoint(remainders, places))
    return found


def _span(how, dim: int) -> tuple[int, int]:
    """Return the quotients by the stride of the elements of the padded input: from the first to behind the last."""
    before, step = how.border[dim][0], how.stride[dim]
    return before // step, (before + how.sizes[dim] - 1) // step + 1


def _result_lines(how, begin: int, end: int) -> tuple[Lines, tuple[int, ...]]:
    """The elements of the result that add to quotients begin to end of the first dim, and how many lie before the first."""
    spans = [(begin, end), *(_span(how, dim) for dim in range(1, len(how.sizes)))]
    most = tuple(
        (k - 1) * gap // step for k, gap, step in zip(how.kernel, how.dilation, how.stride, strict=True)
    )
    sizes = tuple(last - first + back for (first, last), back in zip(spans, most, strict=True))
    runs = []
    for (first, _), back, count, size in zip(spans, most, how.positions, sizes, strict=True):
        start = first - back  # the position at place 0
        skipped = max(0, -start)
        runs.append(Run(start + skipped, 1, skipped, 1, min(size, count - start) - skipped))
    return Lines.shared(sizes, [runs], spans[-1][1] - spans[-1][0]), most


def _given(how, adjoint: Adjoint, stride: tuple[int, ...], begin: int, end: int, size: int) -> np.ndarray:
    """The rows of the sums, whose strides are given, that are rows of the input."""
    spans = [(begin, end), *(_span(how, dim) for dim in range(1, len(how.sizes)))]
    runs = []
    for dim, ((first, last), step, rest) in enumerate(
        zip(spans, how.stride, adjoint.remainders, strict=True)
    ):
        start = first * step + rest - how.border[dim][0]  # the element of quotient `first`
        skipped = max(0, -(start // step))
        behind = min(last - first, -((start - how.sizes[dim]) // step))
        runs.append(Run(skipped, 1, start + skipped * step, step, behind - skipped))
    return _row_table(runs, stride, contiguous_stride(how.sizes), size)


# ---- Plans ------------------------------------------------------------------------------------------------------------------


class _Plan(NamedTuple):
    entry: Callable
    allocate: Callable  # the scratch memory
    meta: int
    parts: int
    keepalive: Any

    def run(self, *addresses: int) -> None:
        scratch = self.allocate()
        self.entry(*addresses, scratch.ptr, self.meta, self.parts)


def _plan(code: Code, names: Sequence[str], words: dict[str, int], work: int, tables: Any) -> _Plan:
    meta = np.array([words[name] for name in names], np.int64)
    parts = words["parts"]
    large = work >= ALWAYS_SHARED_WORK
    if large:
        optimize(code)
    entry = code.entry if parts == 1 else shared(code, large)
    return _Plan(entry, allocator(parts * words["scratch"]), meta.ctypes.data, parts, (meta, tables))


def _parts(work: int, tasks: int, threads: int) -> int:
    return 1 if work < SHARED_WORK else max(1, min(tasks, threads))


def _aligned(nbytes: int) -> int:
    return -(-nbytes // LINE) * LINE


def _pieces(first: int, last: int, most: int) -> list[tuple[int, int]]:
    """Cut `first` to `last` into even pieces of at most `most`."""
    count = max(1, -(-(last - first) // max(1, most)))
    edges = [first + (last - first) * k // count for k in range(count + 1)]
    return list(itertools.pairwise(edges))


def _reach(lines: Lines, vectors: Vectors, windows: Sequence[Window], lanes: int) -> int:
    """Elements from the begin of a plane to behind the last one that is read.

    The zeros that follow the last row are those that the next plane begins with, so behind the last plane there must be as many.
    """
    distance = max([lines.distance(window) for window in windows], default=0)
    return int(vectors.starts.max(initial=0)) + lanes + distance


class _Tables:
    """Arrays whose addresses are in other arrays."""

    def __init__(self):
        self.kept: list[np.ndarray] = []

    def address(self, values: Any) -> int:
        array = np.ascontiguousarray(values, np.int64)
        self.kept.append(array)
        return array.ctypes.data


def _sums_plan(
    dtype: DType, images: int, channels: int, made: int, how, adjoint: bool, threads: int
) -> _Plan:
    size, groups, places = dtype.itemsize, how.groups, math.prod(how.kernel)
    tables = _Tables()
    if adjoint:  # from the result's channels to the input's
        planes, rows = made // groups, channels // groups
        source, target, (first, last) = how.positions, how.sizes, _span(how, 0)
        adjoints = _adjoints(how)
        steps = (1, how.stride[-1])
    else:
        planes, rows = channels // groups, made // groups
        source, target, (first, last) = how.sizes, how.positions, (0, how.positions[0])
        steps = (how.stride[-1], 1)

    def layout(begin: int, end: int) -> tuple[Lines, tuple[int, ...]]:
        return _result_lines(how, begin, end) if adjoint else (_input_lines(how, begin, end), ())

    line = max(1, layout(first, last)[0].plane // max(1, last - first))
    most = max(1, MOST_LINES // max(1, planes * line))
    work = images * made * channels // groups * places * math.prod(how.positions)
    if work >= SHARED_WORK and images * groups < threads:
        most = min(most, -(-(last - first) // -(-threads // (images * groups))))
    strips = []
    plane = sums = reach = 0
    for begin, end in _pieces(first, last, most):
        lines, most_back = layout(begin, end)
        plane = max(plane, lines.plane)
        phases = []
        if adjoint:
            counts = (end - begin, *(b - a for a, b in (_span(how, d) for d in range(1, len(how.sizes)))))
            vectors = lines.vectors(counts, LINE // size)
            for each in adjoints:
                found = [
                    (Window(number, 0, tuple(m - b for m, b in zip(most_back, back, strict=True))), number)
                    for number, back in each.places
                ]
                phases.append((found, vectors, _given(how, each, vectors.stride, begin, end, size)))
        else:
            found = [(window, window.number) for window in _windows(how)]
            counts = (end - begin, *how.positions[1:])
            vectors = lines.vectors(counts, LINE // size)
            phases.append((found, vectors, _taken(how, vectors.stride, begin, end, size)))
        strips.append((lines, phases))
        sums = max(sums, len(vectors.starts))
        windows = [window for found, *_ in phases for window, _ in found]
        reach = max(reach, _reach(lines, vectors, windows, LINE // size))
    plane_bytes = plane * size
    step = channels // groups * places if adjoint else places  # from one plane to the next in the weight
    records = []
    for lines, phases in strips:
        inner = []
        for found, vectors, rows_table in phases:
            terms = [
                (c * plane_bytes + lines.distance(window) * size, (c * step + number) * size)
                for c in range(planes)
                for window, number in found
            ]
            inner.append(
                (
                    len(terms),
                    tables.address(terms),
                    len(vectors.starts),
                    tables.address(vectors.starts * size),
                    len(rows_table),
                    tables.address(rows_table),
                )
            )
        copied = lines.rows(contiguous_stride(source), size)
        records.append((len(copied), tables.address(copied), len(inner), tables.address(inner)))
    panels = suits_panels(rows)
    wide = tile().lines * LINE
    sums_row = sums * LINE
    line_bytes = _aligned((planes - 1) * plane_bytes + max(plane_bytes, reach * size)) + wide
    tasks = images * groups * len(strips)
    words = {
        "tasks": tasks,
        "parts": _parts(work, tasks, threads),
        "scratch": line_bytes + (rows if panels else min(rows, tile().rows)) * sums_row,
        "groups": groups,
        "strips": len(strips),
        "strip_table": tables.address(records),
        "planes": planes,
        "input_unit": planes * math.prod(source) * size,
        "input_plane": math.prod(source) * size,
        "line_plane": plane_bytes,
        "line_bytes": line_bytes,
        "input_step": steps[0] * size,
        "made": rows,
        "weight_group": made // groups * (channels // groups) * places * size,
        "weight_row": (places if adjoint else channels // groups * places) * size,
        "result_unit": rows * math.prod(target) * size,
        "result_plane": math.prod(target) * size,
        "result_step": steps[1] * size,
        "sums_row": sums_row,
    }
    code = panel_sums_code if panels else sums_code
    return _plan(code(dtype, rows), SUMS_META, words, work, tables)


def _products_plan(dtype: DType, images: int, channels: int, made: int, how, threads: int) -> _Plan:
    size, groups, places = dtype.itemsize, how.groups, math.prod(how.kernel)
    planes, rows = channels // groups, made // groups
    tables = _Tables()
    whole = _input_lines(how, 0, how.positions[0])
    line = max(1, (whole.plane * planes + math.prod(whole.sizes) * rows) // how.positions[0])
    pieces = _pieces(0, how.positions[0], MOST_LINES // line)
    found = [_input_lines(how, begin, end) for begin, end in pieces]
    plane = max(lines.plane for lines in found)
    own = reach = 0
    records, windows = [], _windows(how)
    for lines, (begin, end) in zip(found, pieces, strict=True):
        copied = lines.rows(contiguous_stride(how.sizes), size)
        vectors = lines.vectors((end - begin, *how.positions[1:]), LINE // size)
        own = max(own, len(vectors.starts))
        reach = max(reach, _reach(lines, vectors, windows, LINE // size))
        taken = _taken(how, vectors.stride, begin, end, size)[:, [1, 0, 2]]
        terms = [(c * plane + lines.distance(window)) * size for c in range(planes) for window in windows]
        terms += terms[-1:] * (tile().right - 1)  # the last tile reads so many
        records.append(
            (
                len(copied),
                tables.address(copied),
                len(taken),
                tables.address(taken),
                len(vectors.starts),
                tables.address(vectors.starts * size),
                tables.address(terms),
            )
        )
    own_plane = own * LINE
    line_image = _aligned(((planes - 1) * plane + max(plane, reach)) * size) + LINE
    units = images * len(pieces)
    at_once = (
        min(images, max(1, MOST_LINES // (planes * plane + rows * own_plane // size)))
        if len(pieces) == 1
        else 1
    )
    work = images * made * planes * places * math.prod(how.positions)
    blocks = -(-rows // tile().left)
    parts = _parts(work, blocks * groups, threads)
    most = min(blocks, -(-blocks * groups // parts)) * tile().left
    own_image = most * own_plane
    words = {
        "parts": parts,
        "scratch": at_once * (line_image + own_image),
        "groups": groups,
        "units": units,
        "at_once": at_once,
        "strips": len(pieces),
        "strip_table": tables.address(records),
        "planes": planes,
        "input_image": channels * math.prod(how.sizes) * size,
        "input_group": planes * math.prod(how.sizes) * size,
        "input_plane": math.prod(how.sizes) * size,
        "line_plane": plane * size,
        "line_image": line_image,
        "line_bytes": at_once * line_image,
        "input_step": how.stride[-1] * size,
        "made": rows,
        "result_image": made * math.prod(how.positions) * size,
        "result_group": rows * math.prod(how.positions) * size,
        "result_plane": math.prod(how.positions) * size,
        "own_plane": own_plane,
        "own_image": own_image,
        "terms": planes * places,
        "weight_group": rows * planes * places * size,
        "weight_row": planes * places * size,
    }
    return _plan(products_code(dtype), PRODUCTS_META, words, work, tables)


_sums_plans = PlanCache(_sums_plan)
_products_plans = PlanCache(_products_plan)


def sliding_sums(
    target: int,
    source: int,
    weight: int,
    bias: int,
    dtype: DType,
    images: int,
    channels: int,
    made: int,
    how,
    adjoint: bool,
) -> None:
    """Convolve [images, channels, *sizes] with `bias` added; if `adjoint`, apply the adjoint in the input.

    `bias` is the address of one number for each channel of the target.
    """
    plan = _sums_plans[dtype, images, channels, made, how, adjoint, workers.get_num_threads()]
    plan.run(target, source, weight, bias)


def sliding_products(
    weight: int, input: int, result: int, dtype: DType, images: int, channels: int, made: int, how
) -> None:
    """The adjoint of the convolution in the weight. Elements of the input that are not finite may make any of the sums NaN."""
    plan = _products_plans[dtype, images, channels, made, how, workers.get_num_threads()]
    plan.run(weight, input, result)
