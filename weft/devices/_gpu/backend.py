"""What GPUs share: the `Backend` over a `Runtime` and the kernels of this folder.

Ops that have no kernel are computed on copies of their arrays on the host (`Mirrored`).
"""

from __future__ import annotations

import functools
import math
from collections import deque
from collections.abc import Callable
from typing import Any, final
from weakref import WeakSet

from ...core.device import device
from ...core.locks import new_lock
from ...core.storage import Storage
from ...core.symbols import per_plan
from ...engine.defer import keep_all
from ...engine.kernel import param_letters
from ...engine.loops import element_size
from ...engine.storages import install_finalizer
from ..base import Mark
from ..mirrors import Mirrored
from . import (
    alignments,
    attention,
    counting,
    indexed,
    narrow_products,
    packing,
    philox,
    products,
    scans,
    searching,
    shuffling,
    sorting,
)
from .capture import Capture
from .chains import GpuChain
from .convolutions import Convolutions
from .fourier import Fourier
from .generator import new_default_generator
from .kernel import THREADS, is_wide
from .maps import MapKernel, classes_of, map_ir
from .memory import Pool
from .pinned import pinned_storage
from .pivoting import Pivoting
from .reductions import prepare_reduction
from .reflections import Reflections
from .rotations import Rotations
from .runtime import Runtime
from .stages import GpuStage, cut
from .triangles import Triangles

WAVES = 8  # groups on each multiprocessor; a kernel with more work loops


@final
class Gpu(Mirrored):
    has_memory = True
    has_events = True
    block_scale = 128
    prefers_kernels = True

    def __init__(self, where: device, runtime: Runtime):
        install_finalizer()
        super().__init__(where, runtime)
        self.most_deferred = runtime.total_memory // 16
        self.pool = Pool(runtime, str(where))
        self.most_groups = runtime.multiprocessors * WAVES
        self.faults = indexed.Faults(runtime)
        self.default_generator = new_default_generator(where)
        self._fill = functools.lru_cache(maxsize=256)(functools.partial(philox.prepare_fill, runtime))
        self.extras = {
            **sorting.extras(self),
            **searching.extras(self),
            **shuffling.extras(self),
            **counting.extras(self),
            **attention.extras(self),
            **narrow_products.extras(self),
            **alignments.extras(self),
            "convolutions": Convolutions(self),
            "fourier": Fourier(self),
            "triangles": (triangles := Triangles(self)),
            "pivoting": Pivoting(self, triangles),
            "reflections": Reflections(self),
            "rotations": Rotations(self),
        }
        # Launches hold it that pass something to each other in memory that others use, too.
        self.in_order = new_lock()
        self._scratch: Storage | None = None
        # Behind the copies for which the host does not wait, and what keeps their pinned memory alive.
        self._sent: deque[tuple[Mark, Any]] = deque()
        self.lasting_storages: WeakSet[Storage] = WeakSet()
        self.capture: Capture | None = None
        self.captures: WeakSet[Capture] = WeakSet()

    # ---- Memory ----------------------------------------------------------------------------------------------------------

    def allocate(self, nbytes):
        return self.allocator(nbytes)()

    @per_plan
    def allocator(self, nbytes):
        pool = self.pool
        own = pool.bin(nbytes)

        def allocate() -> Storage:
            bin = own if pool.current is None else pool.current.bin(nbytes)
            return Storage(pool.take(bin, nbytes), nbytes, self.device, bin)

        return allocate

    def lasting(self, nbytes: int) -> Storage:
        """Memory that launches keep using. It is the program's, also during a capture, and lives as long as graphs that were captured with it."""
        bin = self.pool.bin(nbytes)
        storage = Storage(self.pool.take(bin, nbytes), nbytes, self.device, bin)
        self.lasting_storages.add(storage)
        return storage

    @property
    def keeps_addresses(self):
        return bool(self.captures)

    def pinned(self, nbytes):
        return pinned_storage(self.runtime, nbytes)

    def bring_back(self) -> None:
        """Write what functions of arrays have changed, before other work reads it."""
        if self.runtime.before_work is not None:
            self.runtime.before_work()

    def copy_bytes(self, target, source, nbytes):
        self.bring_back()
        if target < source + nbytes and source < target + nbytes and nbytes:
            between = self.allocate(nbytes)
            self.runtime.copy(between.ptr, source, nbytes)
            source = between.ptr
        self.runtime.copy(target, source, nbytes)

    def copy_from(self, source, target, address, nbytes):
        if not isinstance(source, Gpu):
            return False
        for each in (source, self):
            each.bring_back()
        return self.runtime.copy_from(source.runtime, target, address, nbytes)

    def send(self, target, owner, address, nbytes):
        if self.capture is not None:
            return False
        self.bring_back()
        with self.in_order:
            self.runtime.send(target, address, nbytes)
            self._sent.append((self.runtime.mark(), owner))
            while self._sent and self._sent[0][0].is_done():
                self._sent.popleft()
        return True

    def read(self, address, nbytes):
        self.bring_back()
        content = self.runtime.read(address, nbytes)
        self.faults.check()
        return content

    def write(self, address, content):
        self.bring_back()
        self.runtime.write(address, content)

    def write_constant(self, storage, content):
        if self.capture is None:
            self.write(storage.ptr, content)
        else:
            self.capture.write_constant(storage, content)

    def synchronize(self):
        keep_all()
        self.bring_back()
        self.runtime.synchronize()
        self._sent.clear()
        self.faults.check()

    def mark(self):
        keep_all()  # what is deferred was given before
        self.bring_back()
        return self.runtime.mark()

    # ---- Kernels ---------------------------------------------------------------------------------------------------------

    def groups(self, threads: int) -> int:
        """How many groups a kernel for so many threads gets."""
        return max(1, min(self.most_groups, -(-threads // THREADS)))

    def scratch(self, nbytes: int) -> Storage:
        """Memory for what one launch passes to the next, which are given while `in_order` is held. All such launches share it."""
        if self._scratch is None or self._scratch.nbytes_ < nbytes:
            self._scratch = self.lasting(nbytes)
        return self._scratch

    def prepare(self, results, operand_dtypes, params, sizes, strides):
        itemsizes = [*map(element_size, results), *(dtype.itemsize for dtype in operand_dtypes)]
        count = math.prod(sizes)
        kernel = MapKernel(
            tuple(results),
            tuple(operand_dtypes),
            len(params),
            len(sizes),
            classes_of(sizes, strides, itemsizes),
            is_wide(count),
        )
        loaded = self.runtime.load(map_ir, kernel)
        words = [count, *sizes, *(stride for row in strides for stride in row)]
        letters = "p" * len(strides) + param_letters(params)
        launch = self.runtime.launch(loaded, self.groups(-(-count // kernel.lanes)), letters, words)
        geometry = cut(letters, len(results), sizes, strides, count * sum(itemsizes))
        return launch._replace(keepalive=GpuStage(kernel, letters, tuple(words), geometry, launch))

    def chain(self):
        return GpuChain(self)

    def prepare_reduction(self, monoid, operand_dtypes, params, kept, reduced, outer):
        return prepare_reduction(self, monoid, operand_dtypes, params, kept, reduced, outer)

    def prepare_scan(self, monoid, operand_dtypes, sizes, strides):
        return scans.prepare_scan(self, monoid, operand_dtypes, sizes, strides)

    def prepare_indexed(self, results, operand_dtypes, sizes, strides, indexing):
        return indexed.prepare_indexed(self, results, operand_dtypes, sizes, strides, indexing)

    def prepare_pack(self, nbytes, itemsize, spread, sizes, strides):
        return packing.prepare_pack(self, nbytes, itemsize, spread, sizes, strides)

    def product_operands(self, a, b):
        return products.operand(self, a), products.operand(self, b)

    def prepare_product(self, a, b, result):
        return products.prepare_product(self, a, b, result)

    def fill(self, distribution, generator, address, count, dtype, **parameters):
        found, numbers = philox.DISTRIBUTIONS[distribution](dtype, **parameters)
        fill = self._fill(philox.FillKernel(found, dtype), count, self.runtime.multiprocessors)
        launch = fill.launch

        def draw() -> None:
            seed, counter = generator.take(fill.words)
            launch.entry(address, seed, counter, *numbers, launch.meta, launch.count)

        self.draw(draw)

    def draw(self, function: Callable[[], None]) -> None:
        """Call a function that takes numbers of a generator; each replay of a graph calls it again, because it draws other numbers."""
        if self.capture is None:
            function()
        else:
            self.capture.between(function)
