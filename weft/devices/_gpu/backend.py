"""What GPUs share: the `Backend` over a `Runtime` and the kernels of this folder.

Ops that have no kernel are computed on copies of their arrays on the host (`Mirrored`).
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, final
from weakref import WeakSet

from ...core.device import device
from ...core.locks import new_lock
from ...core.qscheme import AcceleratorError
from ...core.storage import Storage
from ...core.streams import current_id
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
    iterating,
    narrow_products,
    packing,
    philox,
    products,
    scans,
    searching,
    shuffling,
    sorting,
)
from .capture import Capture, CapturedMark
from .chains import GpuChain
from .convolutions import Convolutions
from .fourier import Fourier
from .generator import new_default_generator
from .kernel import THREADS, is_wide
from .maps import MapKernel, classes_of, map_ir
from .memory import Bin, Pool, SharedBin
from .pinned import pinned_storage
from .pivoting import Pivoting
from .queues import Queues
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
        self.queues = Queues(where, runtime)
        runtime.queue = self.queues.current
        self.pool = Pool(runtime, str(where), functools.partial(current_id, where), self.queues.marks)
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
            **iterating.extras(self),
            "convolutions": Convolutions(self),
            "fourier": Fourier(self),
            "triangles": (triangles := Triangles(self)),
            "pivoting": Pivoting(self, triangles),
            "reflections": Reflections(self),
            "rotations": Rotations(self),
        }
        self._sending = new_lock()
        # By the stream: marks behind the copies for which the host does not wait, and what keeps their pinned memory alive.
        self._sent: defaultdict[int, deque[tuple[Mark, Any]]] = defaultdict(deque)
        self.lasting_storages: WeakSet[Storage] = WeakSet()
        self.capture: Capture | None = None
        self.captures: WeakSet[Capture] = WeakSet()

    # ---- Memory ----------------------------------------------------------------------------------------------------------

    def allocate(self, nbytes):
        return self.allocator(nbytes)()

    @per_plan
    def allocator(self, nbytes):
        pool = self.pool
        own = pool.program.bin_of(0, nbytes)

        def allocate() -> Storage:
            bin = own if pool.current is None else pool.current.bin(nbytes)
            return Storage(pool.take(bin, nbytes), nbytes, self.device, bin)

        return allocate

    def lasting(self, nbytes: int) -> Storage:
        """Memory that launches of all streams keep using. It is the program's, also during a capture, and lives as long as graphs that were captured with it."""
        bin = self.pool.program.bin(nbytes)
        storage = Storage(self.pool.take(bin, nbytes), nbytes, self.device, SharedBin(bin, None))
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
        with self._sending:
            self.runtime.send(target, address, nbytes)
            sent = self._sent[current_id(self.device)]
            sent.append((self.runtime.mark(self.queues.current()), owner))
            while sent and sent[0][0].is_done():
                sent.popleft()
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
        if type(storage.bin) is Bin:  # a plan may keep the storage, which then is read by all streams
            storage.bin = SharedBin(storage.bin, None)
        if self.capture is None:
            self.write(storage.ptr, content)
        else:
            self.capture.write_constant(storage, content)

    def synchronize(self):
        self.give_deferred()
        self.runtime.synchronize()
        self._sent.clear()
        self.faults.check()

    # ---- Streams ---------------------------------------------------------------------------------------------------------

    def new_stream(self, priority):
        return self.queues.new(priority)

    def stream_handle(self, stream):
        return self.queues.handle(stream)

    def mark(self, stream=None):
        self.give_deferred()
        queue = self.queues.current() if stream is None else self.queues.handle(stream)
        return self.runtime.mark(queue) if self.capture is None else CapturedMark()

    def wait(self, stream, mark):
        self.give_deferred()
        if self.capture is None:
            self.runtime.wait(self.queues.handle(stream), mark)
        elif not isinstance(mark, CapturedMark):
            raise AcceleratorError(
                "CUDA error: dependency created on uncaptured work in another stream: an event that was recorded before the capture cannot be "
                "waited for in each replay. Let the stream wait for it before the capture begins."
            )

    def is_idle(self, stream):
        self.give_deferred()
        self.runtime.refuse_recording()
        return self.runtime.is_idle(self.queues.handle(stream))

    def finish(self, stream):
        self.give_deferred()
        self.runtime.finish(self.queues.handle(stream))
        self._sent.pop(stream, None)
        self.faults.check()

    def give_deferred(self):
        keep_all()
        self.bring_back()

    def turn(self):
        self.runtime.turn()
        self.pool.choose_streams()

    def record_use(self, storage, stream):
        holder: Any = storage
        while not isinstance(holder.bin, (Bin, SharedBin)):
            if not hasattr(holder.bin, "bin"):  # memory of another library
                return
            holder = holder.bin  # of a block that several storages share
        bin = holder.bin
        if isinstance(bin, Bin):
            if bin.stream != stream:
                holder.bin = SharedBin(bin, {stream})
        elif bin.streams is not None:
            bin.streams.add(stream)

    # ---- Kernels ---------------------------------------------------------------------------------------------------------

    def groups(self, threads: int) -> int:
        """How many groups a kernel for so many threads gets."""
        return max(1, min(self.most_groups, -(-threads // THREADS)))

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
