"""The runtime over a driver, with functions of this process in the place of the driver's. Memory of the device is memory of the host."""

import ctypes
import itertools
import threading

import pytest

import weft
from weft.cuda._devices import DeviceProperties
from weft.devices._gpu import amd, cublas, cuda, hip, nvidia
from weft.devices._gpu.backend import Gpu
from weft.devices._gpu.capture import CapturedMark
from weft.devices.base import Mark
from weft.families.array_op import to_device
from weft.nn import functional

ADDRESS = 4711  # of a kernel
OUT_OF_MEMORY, INVALID, NOT_READY, ALREADY_ENABLED = 2, 1, 600, 704
# By CUdevice_attribute and hipDeviceAttribute_t: multiprocessors, the capability, threads of a warp, the cache, threads of a multiprocessor.
CUDA_ATTRIBUTES = {16: 132, 75: 9, 76: 0, 10: 32, 38: 5 << 20, 39: 2048}
HIP_ATTRIBUTES = {63: 132, 23: 9, 61: 0, 87: 64, 19: 5 << 20, 57: 2048}


def function(*kinds):
    """Make a method a function of C that returns the driver's code."""
    return ctypes.CFUNCTYPE(ctypes.c_int, *kinds)


class Library:
    """The functions of NVIDIA's driver that the runtime calls.

    `calls` has the names of those that order work, and `streams` the streams that got launches and copies within the device.
    """

    attributes = CUDA_ATTRIBUTES

    def __init__(self):
        self.calls, self.blocks, self.launched, self.streams, self.made = [], {}, [], [], []
        self.is_done = self.reaches = True
        number, pointer = ctypes.c_uint, ctypes.c_void_p
        self.cuCtxSetCurrent = function(pointer)(self._enter)
        self.cuLaunchKernel = function(pointer, *[number] * 7, pointer, pointer, pointer)(self._launch)

    def _enter(self, context):
        self.calls.append(("enter", context))
        return 0

    def _launch(self, function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra):
        entries = (ctypes.c_void_p * 5).from_address(extra)
        nbytes = ctypes.c_size_t.from_address(entries[3]).value
        words = list((ctypes.c_int64 * (nbytes // 8)).from_address(entries[1]))
        self.streams.append(stream)
        self.launched.append((function, gx, bx, words, entries[4]))
        return 0

    def cuDeviceGet(self, handle, index):
        handle._obj.value = index + 10
        return 0

    def cuDevicePrimaryCtxRetain(self, context, handle):
        context._obj.value = handle.value + 100
        return 0

    def cuDeviceGetName(self, room, size, handle):
        room.value = b"a test"
        return 0

    def cuDeviceGetAttribute(self, value, number, handle):
        value._obj.value = self.attributes[number]
        return 0

    def cuDeviceTotalMem_v2(self, total, handle):
        total._obj.value = 1 << 20
        return 0

    def cuMemGetInfo_v2(self, free, total):
        free._obj.value = (1 << 20) - sum(map(len, self.blocks.values()))
        return 0

    def cuMemAlloc_v2(self, address, nbytes):
        if nbytes.value > 1 << 20:
            return OUT_OF_MEMORY
        block = ctypes.create_string_buffer(nbytes.value)
        address._obj.value = ctypes.addressof(block)
        self.blocks[ctypes.addressof(block)] = block
        return 0

    def cuMemHostAlloc(self, address, nbytes, flags):
        return self.cuMemAlloc_v2(address, nbytes)

    def cuMemFree_v2(self, address):
        return 0 if self.blocks.pop(address.value, None) else INVALID

    cuMemFreeHost = cuMemFree_v2

    def _copy(self, target, source, nbytes, stream=None):
        self.calls.append("copy")
        ctypes.memmove(target, source if source.__class__ is int else source.value, nbytes.value)
        return 0

    def cuMemcpyDtoHAsync_v2(self, target, source, nbytes, stream):
        self.calls.append(("read", stream.value))
        return self._copy(target, source, nbytes)

    def cuMemcpyHtoDAsync_v2(self, target, source, nbytes, stream):
        self.calls.append(("send", stream.value))
        return self._copy(target.value, source, nbytes)

    def cuMemcpyDtoDAsync_v2(self, target, source, nbytes, stream):
        self.streams.append(stream.value)
        return self._copy(target.value, source, nbytes)

    def cuDeviceCanAccessPeer(self, found, handle, other):
        found._obj.value = self.reaches
        return 0

    def cuCtxEnablePeerAccess(self, context, flags):
        self.calls.append(("enable", context.value))
        return ALREADY_ENABLED

    def cuMemcpyPeerAsync(self, target, context, source, other, nbytes, stream):
        self.calls.append(("peer", context.value, other.value, stream.value))
        return self._copy(target.value, source, nbytes)

    def cuStreamWaitEvent(self, stream, event, flags):
        self.calls.append(("wait", stream.value))
        return 0

    def cuStreamQuery(self, stream):
        return 0 if self.is_done else NOT_READY

    def cuStreamSynchronize(self, stream):
        self.calls.append(("finish", stream.value))
        return 0

    def cuCtxGetStreamPriorityRange(self, least, greatest):
        least._obj.value, greatest._obj.value = 0, -5
        return 0

    def cuStreamCreateWithPriority(self, stream, flags, priority):
        assert flags == 1  # non-blocking: the default stream does not wait for it
        self.made.append(priority)
        stream._obj.value = 0x10000 * len(self.made)
        return 0

    def cuStreamCreate(self, stream, flags):
        stream._obj.value = 55
        return 0

    def cuGraphInstantiateWithFlags(self, runnable, graph, flags):
        self.calls.append("instantiate")
        return 0

    def cuGraphLaunch(self, runnable, stream):
        self.calls.append(("replay", stream.value))
        return 0

    def _done(self, *arguments):
        return 0

    cuStreamBeginCapture_v2 = cuStreamEndCapture = cuStreamDestroy_v2 = _done
    cuGraphDestroy = cuGraphExecDestroy = _done

    def cuCtxSynchronize(self):
        self.calls.append("synchronize")
        return 0

    def cuEventCreate(self, event, flags):
        event._obj.value = 1
        return 0

    def cuEventRecord(self, event, stream):
        self.calls.append(("record", stream.value))
        return 0

    def cuEventQuery(self, event):
        return 0 if self.is_done else NOT_READY

    def cuEventSynchronize(self, event):
        self.is_done = True
        return 0

    def cuEventElapsedTime(self, found, start, end):
        found._obj.value = 1.5
        return 0

    def cuEventDestroy_v2(self, event):
        return 0

    def cuModuleLoadDataEx(self, module, image, count, options, values):
        self.image = image
        module._obj.value = 7
        return 0

    def cuModuleGetFunction(self, function, module, name):
        assert name == b"kernel"
        function._obj.value = ADDRESS
        return 0

    def cuGetErrorString(self, code, text):
        text._obj.value = f"text of {code}".encode()
        return 0


class HipLibrary:
    """The same functions under HIP's names, and those that HIP alone has."""

    same = {
        "hipDeviceGet": "cuDeviceGet",
        "hipDeviceGetName": "cuDeviceGetName",
        "hipDeviceGetAttribute": "cuDeviceGetAttribute",
        "hipDeviceTotalMem": "cuDeviceTotalMem_v2",
        "hipSetDevice": "cuCtxSetCurrent",
        "hipDeviceSynchronize": "cuCtxSynchronize",
        "hipMemGetInfo": "cuMemGetInfo_v2",
        "hipMalloc": "cuMemAlloc_v2",
        "hipFree": "cuMemFree_v2",
        "hipHostMalloc": "cuMemHostAlloc",
        "hipHostFree": "cuMemFreeHost",
        "hipMemcpyDtoHAsync": "cuMemcpyDtoHAsync_v2",
        "hipMemcpyHtoDAsync": "cuMemcpyHtoDAsync_v2",
        "hipMemcpyDtoDAsync": "cuMemcpyDtoDAsync_v2",
        "hipMemcpyPeerAsync": "cuMemcpyPeerAsync",
        "hipDeviceEnablePeerAccess": "cuCtxEnablePeerAccess",
        "hipDeviceCanAccessPeer": "cuDeviceCanAccessPeer",
        "hipStreamWaitEvent": "cuStreamWaitEvent",
        "hipEventCreateWithFlags": "cuEventCreate",
        "hipEventRecord": "cuEventRecord",
        "hipEventQuery": "cuEventQuery",
        "hipEventSynchronize": "cuEventSynchronize",
        "hipEventElapsedTime": "cuEventElapsedTime",
        "hipEventDestroy": "cuEventDestroy_v2",
        "hipModuleLoadDataEx": "cuModuleLoadDataEx",
        "hipModuleGetFunction": "cuModuleGetFunction",
        "hipModuleLaunchKernel": "cuLaunchKernel",
        "hipStreamCreateWithFlags": "cuStreamCreate",
        "hipStreamCreateWithPriority": "cuStreamCreateWithPriority",
        "hipDeviceGetStreamPriorityRange": "cuCtxGetStreamPriorityRange",
        "hipStreamQuery": "cuStreamQuery",
        "hipStreamSynchronize": "cuStreamSynchronize",
        "hipStreamBeginCapture": "cuStreamBeginCapture_v2",
        "hipStreamEndCapture": "cuStreamEndCapture",
        "hipStreamDestroy": "cuStreamDestroy_v2",
        "hipGraphInstantiateWithFlags": "cuGraphInstantiateWithFlags",
        "hipGraphLaunch": "cuGraphLaunch",
        "hipGraphDestroy": "cuGraphDestroy",
        "hipGraphExecDestroy": "cuGraphExecDestroy",
    }

    def __init__(self, library):
        library.attributes = HIP_ATTRIBUTES
        self.library = library
        self.hipGetErrorString = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int)(self._text)

    def __getattr__(self, name):
        return getattr(self.library, self.same[name])

    def _text(self, code):
        self.text = ctypes.create_string_buffer(f"text of {code}".encode())
        return ctypes.addressof(self.text)

    def hipGetDevicePropertiesR0600(self, room, index):
        text = b"gfx90a:sramecc+:xnack-\0"
        ctypes.memmove(ctypes.addressof(room) + 1160, text, len(text))
        return 0


@pytest.fixture
def library():
    return Library()


@pytest.fixture(params=["CUDA", "HIP"])
def api(request):
    return request.param


@pytest.fixture
def runtime(api, library, monkeypatch):
    monkeypatch.setattr(cublas, "library", lambda: None)
    monkeypatch.setattr(cuda, "library", lambda: nvidia.Driver(library))
    monkeypatch.setattr(hip, "library", lambda: amd.HipDriver(HipLibrary(library)))
    return cuda.Cuda(1) if api == "CUDA" else hip.Hip(1)


def test_a_device_is_described_by_the_driver(api, runtime):
    assert (runtime.name, runtime.capability, runtime.multiprocessors) == ("a test", (9, 0), 132)
    assert (runtime.warp_size, runtime.threads_per_multiprocessor) == ({"CUDA": 32, "HIP": 64}[api], 2048)
    assert (runtime.cache_size, runtime.total_memory) == (5 << 20, 1 << 20)
    assert runtime.architecture == {"CUDA": "", "HIP": "gfx90a:sramecc+:xnack-"}[api]


def test_the_properties_of_a_device_name_its_architecture(api, runtime):
    properties = DeviceProperties(runtime)
    assert properties.gcnArchName == {"CUDA": "a test", "HIP": "gfx90a:sramecc+:xnack-"}[api]
    assert ("gcnArchName='gfx90a:sramecc+:xnack-'" in repr(properties)) == (api == "HIP")


def test_each_thread_enters_the_device_before_work(api, runtime, library):
    library.calls.clear()
    runtime.synchronize()
    handle = 11  # see cuDeviceGet
    assert library.calls == [("enter", {"CUDA": handle + 100, "HIP": handle}[api]), "synchronize"]


def test_bytes_are_written_copied_and_read(runtime, library):
    a, b = runtime.allocate(8), runtime.allocate(8)
    runtime.write(a, b"weft1234")
    runtime.copy(b, a, 8)
    assert runtime.read(b, 8) == b"weft1234"
    assert runtime.free_memory() == (1 << 20) - 16
    runtime.release(a)
    runtime.release_host(runtime.allocate_host(8))
    assert list(library.blocks) == [b]


@pytest.mark.parametrize("reaches", [True, False])
def test_devices_copy_from_each_other_in_the_order_of_the_work_of_both(runtime, library, reaches):
    library.reaches = reaches
    other = type(runtime)(2)
    assert runtime.can_access(other) == reaches
    source, target = other.allocate(8), runtime.allocate(8)
    other.write(source, b"weft1234")
    library.calls.clear()
    assert runtime.copy_from(other, target, source, 8)
    here, there = runtime.context, other.context
    copied = [("enter", here), ("peer", here, there, None), "copy"]
    enabled = [("enable", there)] if reaches else []
    waits = (
        [("enter", there), ("record", None), ("enter", here), ("wait", None)],
        [("enter", here), ("record", None), ("enter", there), ("wait", None)],
    )
    assert library.calls == [("enter", here), *enabled, *waits[0], *copied[1:], *waits[1]]
    assert runtime.read(target, 8) == b"weft1234"
    library.calls.clear()
    runtime.copy_from(other, target, source, 8)
    assert ("enable", there) not in library.calls
    with pytest.raises(weft.AcceleratorError, match="not permitted when stream is capturing"):
        runtime.begin_recording()
        runtime.copy_from(other, target, source, 8)


def test_a_tensor_goes_to_another_device_without_the_host(api, runtime, library, monkeypatch):
    first, second = (weft.device("cuda", k) for k in ((7, 8) if api == "CUDA" else (9, 10)))
    for where, own in ((first, runtime), (second, type(runtime)(2))):
        monkeypatch.setattr(where, "_backend", Gpu(where, own))
        monkeypatch.setattr(own, "_code", lambda ir: b"")
    x = to_device(weft.tensor([1.0, 2.0, 3.0]), first)
    monkeypatch.setattr(library, "cuMemcpyDtoHAsync_v2", None)
    monkeypatch.setattr(library, "cuMemcpyHtoDAsync_v2", None)
    y = to_device(x, second)
    assert y.device == second
    assert list((ctypes.c_float * 3).from_address(y.data_ptr())) == [1, 2, 3]


def test_pinned_memory_lives_until_it_is_copied(runtime, library):
    gpu = Gpu(weft.device("cuda", 0), runtime)
    target, pinned = gpu.allocate(8), gpu.pinned(8)
    ctypes.memmove(pinned.ptr, b"weft1234", 8)
    address = pinned.ptr
    library.calls.clear()
    library.is_done = False
    assert gpu.send(target.ptr, pinned.owner, address, 8)
    assert ("send", None) in library.calls and not {("finish", None), "synchronize"} & {*library.calls}
    del pinned
    assert address in library.blocks  # the copy is not done
    library.is_done = True
    other = gpu.pinned(8)
    gpu.send(target.ptr, other.owner, other.ptr, 8)
    assert address not in library.blocks
    last = other.ptr
    del other
    gpu.synchronize()
    assert last not in library.blocks


def test_no_bytes_need_no_driver(runtime, library):
    library.calls.clear()
    runtime.write(1, b"")
    runtime.copy(1, 2, 0)
    assert runtime.read(1, 0) == b"" and library.calls == []


def test_events(runtime, library):
    start, end = runtime.mark(0), runtime.mark(0)
    library.is_done = False
    assert not end.is_done()
    end.wait()
    assert end.is_done() and start.until(end) == 1.5


def test_errors_of_the_driver_are_raised(api, runtime):
    with pytest.raises(MemoryError, match="2097152 bytes of memory"):
        runtime.allocate(2 << 20)
    with pytest.raises(nvidia.DriverError, match=rf"{api} error: text of 1 \(1\) in cuMemFree"):
        runtime.release(1)


def test_a_kernel_is_loaded_and_launched(api, runtime, library):
    def write(target, kernel):
        return target.kernel(["start", "n"], [])

    launch = runtime.launch(runtime.load(write, "nothing"), 5, "p", [7])
    assert launch.entry(1000, launch.meta, launch.count) == 1000
    assert runtime.chain(runtime.load(write, "nothing"), 6, ["p"], [[8]], []).entry(2000) == 2000
    if api == "CUDA":
        assert b".target sm_90" in library.image and b".entry kernel(" in library.image
    else:
        assert library.image.startswith(b"\x7fELF") and b"gfx90a" in library.image
    end = {"CUDA": None, "HIP": 3}[api]
    assert library.launched == [(ADDRESS, 5, 256, [1000, 7], end), (ADDRESS, 6, 256, [2000, 8], end)]


def test_work_is_recorded_on_a_stream_and_replayed(runtime, library):
    def write(target, kernel):
        return target.kernel(["start", "n"], [])

    launch = runtime.launch(runtime.load(write, "nothing"), 5, "p", [7])
    a, b = runtime.allocate(8), runtime.allocate(8)
    runtime.begin_recording()
    for work in (runtime.synchronize, lambda: runtime.read(a, 8), lambda: runtime.write(a, b"12345678")):
        with pytest.raises(weft.AcceleratorError, match="not permitted when stream is capturing"):
            work()
    launch.entry(1000, launch.meta, launch.count)
    runtime.copy(a, b, 8)
    replay = runtime.end_recording()
    library.calls.clear()
    replay(), replay()
    assert library.calls == [("enter", runtime.context), ("replay", None)] * 2
    launch.entry(1000, launch.meta, launch.count)
    runtime.copy(a, b, 8)
    assert library.streams == [55, 55, None, None]


_numbers = itertools.count(20)


@pytest.fixture
def gpu(runtime, monkeypatch):
    """A device whose kernels are not compiled. It has a new number, because plans keep the launches of a device."""
    where = weft.device("cuda", next(_numbers))
    monkeypatch.setattr(where, "_backend", Gpu(where, runtime))
    monkeypatch.setattr(runtime, "_code", lambda ir: b"")
    return where


def test_work_goes_to_the_current_stream_of_its_thread(gpu, runtime, library):
    x = weft.empty(5, device=gpu)
    first, second = weft.Stream(gpu), weft.Stream(gpu, priority=-9)
    assert library.made == [0, -5]
    handles = [each.native_handle() for each in (first, second)]
    assert handles == [0x10000, 0x20000]
    turns = threading.Semaphore(0), threading.Semaphore(0)

    def work():
        with second:
            for _ in range(3):
                turns[1].acquire()
                x.add_(1)
                turns[0].release()

    thread = threading.Thread(target=work)
    thread.start()
    with first:
        for _ in range(3):
            x.add_(1)
            turns[1].release()
            turns[0].acquire()
    thread.join()
    x.add_(1)
    assert library.streams == [*handles * 3, None]


def test_copies_to_and_from_the_host_wait_for_their_stream_alone(gpu, runtime, library):
    address, stream = runtime.allocate(8), weft.Stream(gpu)
    with stream:
        library.calls.clear()
        gpu.backend.write(address, b"weft1234")
        assert gpu.backend.read(address, 8) == b"weft1234"
    handle = stream.native_handle()
    assert [each for each in library.calls if each[0] != "enter" and each != "copy"] == [
        *(("send", handle), ("finish", handle)),
        *(("read", handle), ("finish", handle)),
    ]


def test_streams_and_events_wait_for_each_other(gpu, runtime, library):
    first, second = weft.Stream(gpu), weft.Stream(gpu)
    library.calls.clear()
    second.wait_stream(first)
    one, two = first.native_handle(), second.native_handle()
    context = ("enter", runtime.context)
    assert library.calls == [context, ("record", one), context, ("wait", two)]
    library.calls.clear()
    event = first.record_event()
    event.wait(second)
    first.wait_event(event)
    assert library.calls == [context, ("record", one), context, ("wait", two), context, ("wait", one)]
    library.is_done = False
    assert not first.query() and not event.query()
    library.is_done = True
    assert first.query()
    first.synchronize()
    assert library.calls[-1] == ("finish", one)
    library.calls.clear()
    first.wait_stream(first)
    assert library.calls == []


def test_the_host_waits_for_another_driver(gpu, library):
    waits = []

    class Other(Mark):
        def is_done(self):
            return bool(waits)

        def wait(self):
            waits.append(1)

        def until(self, later):
            raise NotImplementedError

    stream = weft.Stream(gpu)
    library.calls.clear()
    gpu.backend.wait(stream.stream_id, Other())
    assert waits and library.calls == []
    with pytest.raises(weft.AcceleratorError, match="last recorded in a capturing stream"):
        gpu.backend.wait(stream.stream_id, CapturedMark())


def test_a_program_has_32_streams_of_each_priority(gpu, library):
    made = [weft.Stream(gpu) for _ in range(33)]
    assert len(library.made) == 32 and made[0] == made[32] != made[1]
    assert weft.Stream(gpu, priority=-1) not in made and library.made[-1] == -1
    with pytest.raises(RuntimeError, match="no stream with the number 99"):
        weft.Stream(gpu, stream_id=99).synchronize()


def test_recorded_work_of_all_streams_is_one_queue(gpu, runtime, library):
    x, stream = weft.empty(5, device=gpu), weft.Stream(gpu)
    x.add_(1)
    library.streams.clear()
    runtime.begin_recording()
    x.add_(1)
    with stream:
        x.add_(1)
    replay = runtime.end_recording()
    with stream:
        x.add_(1)
        library.calls.clear()
        replay()
    assert library.streams == [55, 55, stream.native_handle()]
    assert library.calls[-1] == ("replay", stream.native_handle())


@pytest.mark.parametrize("is_own", [True, False])
def test_a_deferred_result_takes_over_memory_of_its_own_stream_only(gpu, runtime, is_own):
    """The memory goes back to the stream on which it was made, which does not wait for the stream of the result."""
    runtime.total_memory = 1 << 30
    gpu.backend.most_deferred = 1 << 30
    n, stream = 1 << 17, weft.Stream(gpu)
    for _ in range(6):  # single operations are deferred once they have been part of chains
        x = weft.empty(n, device=gpu)
        address = x._storage.ptr
        with stream if not is_own else weft.Stream(gpu, stream_id=0):
            x = x * 2 + 1
            assert (x._storage.ptr == address) == is_own


def test_each_stream_has_a_handle_of_cublas(gpu, runtime, library):
    blas = Blas()
    runtime.blas = cublas.Cublas(runtime, blas)
    a, stream = weft.empty(3, 3, device=gpu), weft.Stream(gpu)
    handle = stream.native_handle()
    for _ in range(2):
        a @ a
        with stream:
            a @ a
    runtime.begin_recording()
    a @ a
    runtime.end_recording()
    runtime.begin_recording()
    a @ a
    runtime.end_recording()
    assert blas.multiplied == [1, 2, 1, 2, 3, 3]
    assert blas.used == [(1, None), (2, handle), (3, 55), (3, 55)]


class Blas:
    """cuBLAS, whose handles are numbers."""

    def __init__(self):
        self.used, self.multiplied = [], []
        number, wide, pointer = ctypes.c_int, ctypes.c_longlong, ctypes.c_void_p
        operand = [pointer, number, number, wide]
        kinds = pointer, *[number] * 5, pointer, *operand, *operand, pointer, *operand, *[number] * 3
        self.cublasGemmStridedBatchedEx = function(*kinds)(self._multiply)

    def _multiply(self, handle, *arguments):
        self.multiplied.append(handle)
        return 0

    def cublasCreate_v2(self, handle):  # noqa: N802 (cuBLAS's name)
        handle._obj.value = len({one for one, _ in self.used}) + 1
        return 0

    def cublasSetStream_v2(self, handle, stream):  # noqa: N802
        self.used.append((handle.value, stream.value))
        return 0


def test_functions_that_have_no_name_in_hip(library):
    with pytest.raises(NotImplementedError, match="cuNothing"):
        amd.HipDriver(library).cuNothing()


@pytest.mark.parametrize(
    "function",
    [
        lambda new, n: new(n, 7) + new(n, 7),
        lambda new, n: new(n, 7).softmax(-1),  # a chain
        lambda new, n: new(n, 7).sum(0),
        lambda new, n: new(n, 7) @ new(7, n),
        lambda new, n: new(n, 7)[new(3, dtype=weft.int64)],
        lambda new, n: functional.linear(new(n, 7), new(5, 7), new(5)),
    ],
    ids=["map", "softmax", "sum", "product", "gather", "linear"],
)
def test_new_sizes_need_no_planning(api, runtime, monkeypatch, function):
    where = weft.device("cuda", 5 if api == "CUDA" else 6)
    monkeypatch.setattr(where, "_backend", Gpu(where, runtime))
    monkeypatch.setattr(runtime, "_code", lambda ir: b"")
    loaded, load = [], runtime.load
    monkeypatch.setattr(runtime, "load", lambda *given: loaded.append(given) or load(*given))

    def run(n):
        function(lambda *shape, **options: weft.empty(shape, device=where, **options), n)

    for n in range(
        16, 80
    ):  # the more kinds of calls an op has had in this process, the later it gets a template
        run(n)
    assert loaded
    loaded.clear()
    for n in range(80, 84):
        run(n)
    assert not loaded
